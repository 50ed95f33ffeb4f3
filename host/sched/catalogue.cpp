#include "penstock/sched/catalogue.h"

#include <algorithm>
#include <charconv>

#include "penstock/descriptor/node_table.h"

namespace penstock {
namespace {

constexpr std::string_view kFirstLine = "penstock-names\t1";
const NodeFacts kNoNode;

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\\\";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\n':
        out += "\\n";
        break;
      default:
        out += c;
    }
  }
  return out;
}

void write_line(std::string* out, const std::vector<std::string>& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) *out += '\t';
    *out += escape(fields[i]);
  }
  *out += '\n';
}

// The fields of the line, without their escapes; takes the line away from *text.
std::vector<std::string> read_line(std::string_view* text) {
  const std::size_t end = std::min(text->find('\n'), text->size());
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  std::vector<std::string> fields(1);
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\t') {
      fields.emplace_back();
    } else if (line[i] == '\\' && i + 1 < line.size()) {
      const char c = line[++i];
      fields.back() += c == 't' ? '\t' : c == 'n' ? '\n' : c;
    } else {
      fields.back() += line[i];
    }
  }
  return fields;
}

bool read_number(const std::string& text, std::uint32_t limit, std::uint32_t* out) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return problem == std::errc() && end == text.data() + text.size() && *out < limit;
}

// node ROW NAME MODEL LABELS (KEY VALUE)... TAINTS (KEY VALUE EFFECT)...
bool read_node(const std::vector<std::string>& fields, std::uint32_t* row, NodeFacts* facts) {
  if (fields.size() < 6 || !read_number(fields[1], PENSTOCK_MAX_ROWS, row)) return false;
  facts->name = fields[2];
  facts->model = fields[3];
  const auto limit = static_cast<std::uint32_t>(std::min<std::size_t>(fields.size(), 1u << 24));
  std::uint32_t labels = 0, taints = 0;
  if (facts->name.empty() || !read_number(fields[4], limit, &labels)) return false;
  std::size_t at = 5;
  if (fields.size() < at + 2 * std::size_t{labels} + 1) return false;
  for (std::uint32_t i = 0; i < labels; ++i, at += 2) facts->labels[fields[at]] = fields[at + 1];
  if (!read_number(fields[at], limit, &taints)) return false;
  ++at;
  if (fields.size() != at + 3 * std::size_t{taints}) return false;
  for (std::uint32_t i = 0; i < taints; ++i, at += 3) {
    facts->taints.push_back({fields[at], fields[at + 1], fields[at + 2]});
  }
  return true;
}

}  // namespace

Catalogue::Catalogue(std::vector<ResourceName> resources, std::vector<std::string> free_columns,
                     std::uint32_t bit_columns)
    : resources_(std::move(resources)), free_columns_(std::move(free_columns)), bits_(bit_columns) {
  PENSTOCK_CHECK(bit_columns >= PENSTOCK_BIT_FIRST_FREE && bit_columns <= PENSTOCK_MAX_BIT_COLUMNS);
  for (std::uint32_t column = 0; column < PENSTOCK_BIT_FIRST_FREE; ++column) {
    bits_[column].key = column == PENSTOCK_BIT_NODE ? "node" : "unschedulable";
    bits_[column].state = true;
  }
}

std::int32_t Catalogue::find_resource(std::string_view name) const {
  for (std::size_t i = 0; i < resources_.size(); ++i) {
    if (resources_[i].name == name) return static_cast<std::int32_t>(i);
  }
  return -1;
}

std::int32_t Catalogue::find_free_column(std::string_view name) const {
  const auto found = std::find(free_columns_.begin(), free_columns_.end(), name);
  return found == free_columns_.end() ? -1
                                      : static_cast<std::int32_t>(found - free_columns_.begin());
}

std::int32_t Catalogue::find_node(const std::string& name) const {
  const auto found = row_of_.find(name);
  return found == row_of_.end() ? -1 : static_cast<std::int32_t>(found->second);
}

const NodeFacts& Catalogue::node(std::uint32_t row) const {
  return row < nodes_.size() ? nodes_[row] : kNoNode;
}

std::uint32_t Catalogue::next_row() const {
  return free_rows_.empty() ? rows() : *free_rows_.begin();
}

void Catalogue::put_node(std::uint32_t row, NodeFacts facts) {
  PENSTOCK_CHECK(!facts.name.empty() && node(row).name.empty());
  for (std::uint32_t gap = rows(); gap < row; ++gap) free_rows_.insert(gap);
  if (row >= nodes_.size()) nodes_.resize(row + 1);
  free_rows_.erase(row);
  row_of_[facts.name] = row;
  nodes_[row] = std::move(facts);
}

void Catalogue::take_node(std::uint32_t row) {
  PENSTOCK_CHECK(!node(row).name.empty());
  row_of_.erase(nodes_[row].name);
  nodes_[row] = {};
  free_rows_.insert(row);
  uses_.erase(uses_.lower_bound({row, 0}), uses_.lower_bound({row + 1, 0}));
}

std::int32_t Catalogue::touch(const std::string& key) {
  const auto found = column_of_.find(key);
  if (found == column_of_.end()) return -1;
  bits_[found->second].last_batch = batch_;
  return found->second;
}

Result<std::uint16_t> Catalogue::assign(const std::string& key, NodePredicate predicate,
                                        bool state) {
  PENSTOCK_CHECK(!key.empty() && !column_of_.contains(key));
  std::uint32_t chosen = 0;
  for (std::uint32_t column = PENSTOCK_BIT_FIRST_FREE; column < bits_.size(); ++column) {
    const BitColumn& candidate = bits_[column];
    if (candidate.key.empty()) {
      chosen = column;
      break;
    }
    if (candidate.state || candidate.last_batch == batch_) continue;
    if (chosen == 0 || candidate.last_batch < bits_[chosen].last_batch) chosen = column;
  }
  if (chosen == 0) {
    return error(Code::no_space,
                 "all {} bit columns of the table are in use, and '{}' needs one; make the table "
                 "with more, or place fewer tasks at a time",
                 bits_.size(), key);
  }
  BitColumn& column = bits_[chosen];
  if (!column.key.empty()) {
    column_of_.erase(column.key);
    ++evictions_;
  }
  column = {key, std::move(predicate), state, batch_};
  column_of_[key] = static_cast<std::uint16_t>(chosen);
  return static_cast<std::uint16_t>(chosen);
}

void Catalogue::set_predicate(std::uint16_t column, NodePredicate predicate) {
  bits_[column].predicate = std::move(predicate);
}

void Catalogue::drop_unknown_columns() {
  for (std::uint32_t i = PENSTOCK_BIT_FIRST_FREE; i < bits_.size(); ++i) {
    if (bits_[i].key.empty() || bits_[i].state || bits_[i].predicate) continue;
    column_of_.erase(bits_[i].key);
    bits_[i] = {};
  }
}

std::uint32_t Catalogue::add_use(std::uint32_t row, std::uint16_t column) {
  return ++uses_[{row, column}];
}

std::uint32_t Catalogue::drop_use(std::uint32_t row, std::uint16_t column) {
  const auto found = uses_.find({row, column});
  if (found == uses_.end()) return 0;
  if (--found->second > 0) return found->second;
  uses_.erase(found);
  return 0;
}

std::string Catalogue::serialise() const {
  std::string out(kFirstLine);
  out += '\n';
  for (const ResourceName& resource : resources_) {
    write_line(&out, {"resource", resource.name, resource.unit});
  }
  for (const std::string& column : free_columns_) write_line(&out, {"free", column});
  write_line(&out, {"bits", std::to_string(bits_.size())});
  for (std::uint32_t i = PENSTOCK_BIT_FIRST_FREE; i < bits_.size(); ++i) {
    if (bits_[i].key.empty()) continue;
    write_line(&out, {"bit", std::to_string(i), bits_[i].state ? "1" : "0", bits_[i].key});
  }
  for (std::uint32_t row = 0; row < nodes_.size(); ++row) {
    const NodeFacts& facts = nodes_[row];
    if (facts.name.empty()) continue;
    std::vector<std::string> fields = {"node", std::to_string(row), facts.name, facts.model,
                                       std::to_string(facts.labels.size())};
    for (const auto& [key, value] : facts.labels) fields.insert(fields.end(), {key, value});
    fields.push_back(std::to_string(facts.taints.size()));
    for (const Taint& taint : facts.taints) {
      fields.insert(fields.end(), {taint.key, taint.value, taint.effect});
    }
    write_line(&out, fields);
  }
  for (const auto& [place, count] : uses_) {
    write_line(&out, {"use", std::to_string(place.first), std::to_string(place.second),
                      std::to_string(count)});
  }
  return out;
}

// One line of serialise() after "bits"; false if it makes no sense.
bool Catalogue::parse_line(const std::vector<std::string>& fields) {
  std::uint32_t row = 0, column = 0, number = 0;
  const auto columns = static_cast<std::uint32_t>(bits_.size());
  if (fields[0] == "bit") {
    if (fields.size() != 4 || fields[3].empty() || !read_number(fields[1], columns, &column) ||
        !read_number(fields[2], 2, &number) || column < PENSTOCK_BIT_FIRST_FREE ||
        !bits_[column].key.empty() || column_of_.contains(fields[3])) {
      return false;
    }
    bits_[column] = {fields[3], {}, number == 1, 0};
    column_of_[fields[3]] = static_cast<std::uint16_t>(column);
    return true;
  }
  if (fields[0] == "node") {
    NodeFacts facts;
    if (!read_node(fields, &row, &facts)) return false;
    if (!node(row).name.empty() || row_of_.contains(facts.name)) return false;
    put_node(row, std::move(facts));
    return true;
  }
  if (fields[0] != "use" || fields.size() != 4) return false;
  if (!read_number(fields[1], PENSTOCK_MAX_ROWS, &row) ||
      !read_number(fields[2], columns, &column) || !read_number(fields[3], UINT32_MAX, &number)) {
    return false;
  }
  uses_[{row, static_cast<std::uint16_t>(column)}] = number;
  return number > 0;
}

Result<Catalogue> Catalogue::parse(std::string_view text) {
  const auto corrupt = [](std::size_t line, const std::string& found) {
    return error(Code::corrupt, "names of the node table, line {}: '{}' makes no sense", line,
                 found.substr(0, 40));
  };
  std::vector<ResourceName> resources;
  std::vector<std::string> free_columns;
  Catalogue catalogue;
  if (text.substr(0, text.find('\n')) != kFirstLine) return corrupt(1, "the first line");
  std::size_t line = 1;
  read_line(&text);
  for (; !text.empty(); ++line) {
    const std::vector<std::string> fields = read_line(&text);
    std::uint32_t number = 0;
    if (!catalogue.bits_.empty()) {
      if (!catalogue.parse_line(fields)) return corrupt(line + 1, fields[0]);
    } else if (fields[0] == "resource" && fields.size() == 3) {
      resources.push_back({fields[1], fields[2]});
    } else if (fields[0] == "free" && fields.size() == 2) {
      free_columns.push_back(fields[1]);
    } else if (fields[0] == "bits" && fields.size() == 2 &&
               read_number(fields[1], PENSTOCK_MAX_BIT_COLUMNS + 1, &number) &&
               number >= PENSTOCK_BIT_FIRST_FREE) {
      catalogue = Catalogue(std::move(resources), std::move(free_columns), number);
    } else {
      return corrupt(line + 1, fields[0]);
    }
  }
  if (catalogue.bits_.empty()) return corrupt(line, "the end");
  return catalogue;
}

}  // namespace penstock
