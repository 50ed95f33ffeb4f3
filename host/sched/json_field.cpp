#include "penstock/sched/json_field.h"

#include <algorithm>

#include "penstock/sched/csv.h"

namespace penstock {
namespace {

std::string position(std::string_view bytes, std::size_t at) {
  const std::string_view before = bytes.substr(0, std::min(at, bytes.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n');
  const std::size_t column = start == std::string_view::npos ? at : at - start - 1;
  return fmt::format("{}:{}", line, std::max<std::size_t>(column, 1));
}

// The parser has no bound of its own, and what walks the values recurses.
Status check_depth(std::string_view bytes, const std::string& name, int max_depth) {
  int depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    if (in_text) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_text = false;
      }
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{' || c == '[') {
      if (++depth > max_depth) {
        return error(Code::invalid_argument, "{}:{}: nests deeper than {} levels", name,
                     position(bytes, i + 1), max_depth);
      }
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return {};
}

}  // namespace

JsonField JsonField::member(std::string_view key) const& {
  const Json* found = nullptr;
  if (present() && value_->is_object()) {
    const auto it = value_->find(key);
    if (it != value_->end()) found = &*it;
  }
  return {this, found, key, 0};
}

std::string JsonField::where() const {
  if (parent_ == nullptr) return std::string(key_) + ":";
  std::string path = parent_->where();
  if (key_.empty()) return path + fmt::format("[{}]", index_);
  return path + (path.ends_with(':') ? " " : ".") + printable(key_, 80);
}

Status JsonField::wrong(const std::string& expected) const {
  std::string found = "nothing";
  if (present()) {
    found = value_->is_structured()
                ? std::string(value_->type_name())
                : printable(value_->dump(-1, ' ', false, Json::error_handler_t::replace), 60);
  }
  return error(Code::invalid_argument, "{}{} found {}, expected {}", where(),
               parent_ == nullptr ? "" : ":", found, expected);
}

Result<std::string> JsonField::text() const {
  if (!present()) return std::string();
  if (!value_->is_string()) return wrong("a text");
  return value_->get_ref<const std::string&>();
}

Result<std::int64_t> JsonField::integer(std::int64_t min, std::int64_t max) const {
  if (!present()) return std::int64_t{0};
  const bool fits = value_->is_number_integer() &&
                    (!value_->is_number_unsigned() || value_->get<std::uint64_t>() <= INT64_MAX);
  const std::int64_t value = fits ? value_->get<std::int64_t>() : 0;
  if (!fits || value < min || value > max) {
    return wrong(fmt::format("a whole number from {} to {}", min, max));
  }
  return value;
}

Result<bool> JsonField::boolean() const {
  if (!present()) return false;
  if (!value_->is_boolean()) return wrong("true or false");
  return value_->get<bool>();
}

Status JsonField::expect_object() const {
  return !present() || value_->is_object() ? Status() : wrong("an object");
}

Status JsonField::each(const std::function<Status(const JsonField& item)>& visit) const {
  if (!present()) return {};
  if (!value_->is_array()) return wrong("an array");
  std::size_t index = 0;
  for (const Json& item : *value_) {
    PENSTOCK_TRY(visit(JsonField(this, &item, {}, index)));
    ++index;
  }
  return {};
}

Status JsonField::each_member(
    const std::function<Status(const std::string& key, const JsonField& item)>& visit) const {
  PENSTOCK_TRY(expect_object());
  if (!present()) return {};
  for (auto it = value_->begin(); it != value_->end(); ++it) {
    PENSTOCK_TRY(visit(it.key(), JsonField(this, &*it, it.key(), 0)));
  }
  return {};
}

Result<std::map<std::string, std::string>> JsonField::texts() const {
  std::map<std::string, std::string> out;
  PENSTOCK_TRY(each_member([&out](const std::string& key, const JsonField& item) -> Status {
    PENSTOCK_ASSIGN(out[key], item.text());
    return {};
  }));
  return out;
}

Result<nlohmann::json> parse_json(std::string_view bytes, const std::string& name, int max_depth) {
  PENSTOCK_TRY(check_depth(bytes, name, max_depth));
  try {
    return nlohmann::json::parse(bytes.begin(), bytes.end());
  } catch (const nlohmann::json::parse_error& problem) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while ..."
    std::string_view what = problem.what();
    if (const std::size_t colon = what.find(": "); colon != std::string_view::npos) {
      what.remove_prefix(colon + 2);
    }
    return error(Code::invalid_argument, "{}:{}: no JSON: {}", name, position(bytes, problem.byte),
                 printable(what, 160));
  } catch (const std::exception& problem) {  // a number out of range, memory
    return error(Code::invalid_argument, "{}: no JSON that can be read: {}", name,
                 printable(problem.what(), 160));
  }
}

}  // namespace penstock
