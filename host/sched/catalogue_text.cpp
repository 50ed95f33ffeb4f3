// A catalogue as lines of text, and back.
#include <algorithm>
#include <charconv>

#include "penstock/descriptor/node_table.h"
#include "penstock/sched/catalogue.h"

namespace penstock {
namespace {

constexpr std::string_view kFirstLine = "penstock-names\t2";

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

std::string Catalogue::serialise() const {
  std::string out(kFirstLine);
  out += '\n';
  for (const ResourceName& resource : resources_) {
    write_line(&out, {"resource", resource.name, resource.unit});
  }
  for (const std::string& column : free_columns_) write_line(&out, {"free", column});
  write_line(&out, {"bits", std::to_string(bits_.size()), std::to_string(domains_.size()),
                    std::to_string(counts_.size())});
  for (std::uint32_t i = PENSTOCK_BIT_FIRST_FREE; i < bits_.size(); ++i) {
    if (bits_[i].key.empty()) continue;
    write_line(&out, {"bit", std::to_string(i), bits_[i].state ? "1" : "0", bits_[i].key});
  }
  for (std::uint32_t i = 0; i < domains_.size(); ++i) {
    if (!domains_[i].key.empty()) write_line(&out, {"domain", std::to_string(i), domains_[i].key});
  }
  for (std::uint32_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i].key.empty()) continue;
    write_line(&out, {"count", std::to_string(i), std::to_string(counts_[i].domain),
                      std::to_string(counts_[i].eligible), counts_[i].key});
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
  if (fields[0] == "domain") {
    if (fields.size() != 3 || !read_number(fields[1], domain_columns(), &column) ||
        fields[2].size() < 2 || (fields[2][0] != '=' && fields[2][0] != '#') ||
        !domains_[column].key.empty() || domain_column_of_.contains(fields[2])) {
      return false;
    }
    domains_[column].key = fields[2];
    domain_column_of_[fields[2]] = static_cast<std::uint16_t>(column);
    return true;
  }
  if (fields[0] == "count") return parse_count(fields);
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
  if (number == 0 || !uses_.try_emplace({row, static_cast<std::uint16_t>(column)}, number).second) {
    return false;
  }
  ++rows_using_[column];
  return true;
}

bool Catalogue::parse_count(const std::vector<std::string>& fields) {
  std::uint32_t column = 0, domain = 0, eligible = 0;
  if (fields.size() != 5 || fields[4].empty() ||
      !read_number(fields[1], count_columns(), &column) ||
      !read_number(fields[2], PENSTOCK_ROW_DOMAIN + 1, &domain) ||
      !read_number(fields[3], bit_columns(), &eligible) || !counts_[column].key.empty() ||
      count_column_of_.contains(fields[4])) {
    return false;
  }
  if (domain != PENSTOCK_ROW_DOMAIN &&
      (domain >= domains_.size() || domains_[domain].key.empty())) {
    return false;
  }
  counts_[column] = {fields[4], static_cast<std::uint16_t>(domain),
                     static_cast<std::uint16_t>(eligible), ++serial_, 0};
  count_column_of_[fields[4]] = static_cast<std::uint16_t>(column);
  return true;
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
    std::uint32_t number = 0, domains = 0, counts = 0;
    if (!catalogue.bits_.empty()) {
      if (!catalogue.parse_line(fields)) return corrupt(line + 1, fields[0]);
    } else if (fields[0] == "resource" && fields.size() == 3) {
      resources.push_back({fields[1], fields[2]});
    } else if (fields[0] == "free" && fields.size() == 2) {
      free_columns.push_back(fields[1]);
    } else if (fields[0] == "bits" && fields.size() == 4 &&
               read_number(fields[1], PENSTOCK_MAX_BIT_COLUMNS + 1, &number) &&
               number >= PENSTOCK_BIT_FIRST_FREE &&
               read_number(fields[2], PENSTOCK_MAX_DOMAIN_COLUMNS + 1, &domains) &&
               read_number(fields[3], PENSTOCK_MAX_COUNT_COLUMNS + 1, &counts)) {
      catalogue = Catalogue(std::move(resources), std::move(free_columns), number, domains, counts);
    } else {
      return corrupt(line + 1, fields[0]);
    }
  }
  if (catalogue.bits_.empty()) return corrupt(line, "the end");
  return catalogue;
}

}  // namespace penstock
