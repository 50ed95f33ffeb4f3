#include "penstock/sched/yaml_document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <exception>
#include <istream>
#include <optional>
#include <streambuf>
#include <unordered_map>
#include <utility>
#include <vector>

#include "penstock/sched/csv.h"

namespace penstock {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kValueWeight = 16;

// Leaves the library's parser with the reason; never leaves this file.
struct Refused : std::exception {
  explicit Refused(Status why) : status(std::move(why)) {}
  Status status;
};

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

std::optional<Json> whole_number(std::string_view digits, bool negative) {
  int base = 10;
  if (digits.size() > 1 && digits[0] == '0') {
    const char kind = digits[1];
    base = kind == 'x' || kind == 'X' ? 16 : kind == 'b' || kind == 'B' ? 2 : 8;
    digits.remove_prefix(base != 8 || kind == 'o' ? 2 : 1);
  }
  std::uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, problem] = std::from_chars(digits.data(), end, value, base);
  if (digits.empty() || stop != end || problem != std::errc()) return std::nullopt;
  constexpr std::uint64_t kMost = static_cast<std::uint64_t>(INT64_MAX);
  if (!negative) return value <= kMost ? Json(static_cast<std::int64_t>(value)) : Json(value);
  if (value > kMost) return std::nullopt;
  return Json(-static_cast<std::int64_t>(value));
}

// Digits with at most one '.', and an exponent: what from_chars takes, less "inf" and "nan".
std::optional<Json> fraction(std::string_view text, bool negative) {
  if (text.empty() || text.find_first_not_of("0123456789.eE+-") != std::string_view::npos ||
      text.find_first_of("0123456789") == std::string_view::npos) {
    return std::nullopt;
  }
  double value = 0;
  const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (stop != text.data() + text.size() || problem != std::errc()) return std::nullopt;
  if (negative) value = -value;
  constexpr double kExact = 9007199254740992.0;
  if (std::trunc(value) == value && std::abs(value) <= kExact) {
    return Json(static_cast<std::int64_t>(value));
  }
  return Json(value);
}

// The value of a plain scalar.
Result<Json> plain_value(const std::string& text) {
  if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) return Json(nullptr);
  if (is_one_of(text, {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})) {
    return Json(true);
  }
  if (is_one_of(text,
                {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})) {
    return Json(false);
  }
  std::string digits = text;
  const bool negative = digits[0] == '-';
  if (negative || digits[0] == '+') digits.erase(0, 1);
  if (is_one_of(digits, {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"})) {
    return error(Code::invalid_argument, "found {}, expected a finite number", text);
  }
  if (digits.empty() || (digits[0] != '.' && (digits[0] < '0' || digits[0] > '9'))) {
    return Json(text);
  }
  std::erase(digits, '_');
  if (const auto number = whole_number(digits, negative)) return *number;
  if (const auto number = fraction(digits, negative)) return *number;
  return Json(text);
}

class Builder : public YAML::EventHandler {
 public:
  Builder(const std::string& name, const YamlLimits& limits) : name_(name), limits_(limits) {}

  bool done() const { return documents_ > 0; }
  Json take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0) refuse(mark, Code::invalid_argument, "a second document, expected one");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (wants_key()) refuse(mark, Code::invalid_argument, "a key without a name, expected a text");
    put(mark, Json(nullptr), kValueWeight, anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    if (wants_key()) return take_key(mark, text);
    // "?" is a plain scalar, "!" one in quotes.
    const bool is_text = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (!is_text && tag != "?" && !tag.empty()) refuse_tag(mark, tag);
    Json value(text);
    if (!is_text) {
      Result<Json> plain = plain_value(text);
      if (!plain.ok()) refuse(mark, plain.status().code(), plain.status().message());
      value = std::move(plain).value();
    }
    put(mark, std::move(value), kValueWeight + text.size(), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (wants_key()) refuse(mark, Code::unsupported, "an alias as a key, expected a text");
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      refuse(mark, Code::invalid_argument, "an alias within what it stands for");
    }
    weigh(mark, found->second.weight);  // before the copy is made
    place(Json(found->second.value));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    begin(mark, tag, anchor, Json::array());
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    begin(mark, tag, anchor, Json::object());
  }
  void OnMapEnd() override { end(); }
  void OnAnchor(const YAML::Mark& /*mark*/, const std::string& /*anchor*/) override {}

  [[noreturn]] void refuse(const YAML::Mark& mark, Code code, const std::string& what) const {
    throw Refused(error(code, "{}:{}:{}: {}", name_, mark.line + 1, mark.column + 1, what));
  }

 private:
  struct Open {
    Json value;
    std::string key;
    bool has_key = false;
    YAML::anchor_t anchor = 0;
    std::size_t weight_before = 0;
  };
  struct Anchored {
    Json value;
    std::size_t weight = 0;
  };

  bool wants_key() const {
    return !open_.empty() && open_.back().value.is_object() && !open_.back().has_key;
  }

  [[noreturn]] void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    refuse(mark, Code::unsupported, fmt::format("the tag {}, expected none", printable(tag)));
  }

  void weigh(const YAML::Mark& mark, std::size_t weight) {
    weight_ += weight;  // each is at most `expanded`
    if (weight_ > limits_.expanded) {
      refuse(mark, Code::out_of_range,
             fmt::format("the aliases make more than {} bytes of values", limits_.expanded));
    }
  }

  void take_key(const YAML::Mark& mark, const std::string& text) {
    if (text == "<<") refuse(mark, Code::unsupported, "a merge key (<<), expected the members");
    Open& map = open_.back();
    if (map.value.contains(text)) {
      refuse(mark, Code::invalid_argument,
             fmt::format("the key '{}' stands twice in its map", printable(text)));
    }
    weigh(mark, kValueWeight + text.size());
    map.key = text;
    map.has_key = true;
  }

  void place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return;
    }
    Open& owner = open_.back();
    if (owner.value.is_array()) {
      owner.value.push_back(std::move(value));
    } else {
      owner.value[owner.key] = std::move(value);
      owner.has_key = false;
    }
  }

  void put(const YAML::Mark& mark, Json value, std::size_t weight, YAML::anchor_t anchor) {
    weigh(mark, weight);
    if (anchor != 0) anchors_[anchor] = {value, weight};
    place(std::move(value));
  }

  void begin(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Json value) {
    if (wants_key()) refuse(mark, Code::invalid_argument, "a key that is no text");
    if (!is_one_of(tag, {"", "?", "!"})) refuse_tag(mark, tag);
    if (open_.size() >= static_cast<std::size_t>(limits_.depth)) {
      refuse(mark, Code::out_of_range, fmt::format("nests deeper than {} levels", limits_.depth));
    }
    open_.push_back({std::move(value), {}, false, anchor, weight_});
    weigh(mark, kValueWeight);
  }

  void end() {
    Open closed = std::move(open_.back());
    open_.pop_back();
    if (closed.anchor != 0)
      anchors_[closed.anchor] = {closed.value, weight_ - closed.weight_before};
    place(std::move(closed.value));
  }

  const std::string& name_;
  const YamlLimits& limits_;
  int documents_ = 0;
  Json root_;
  std::vector<Open> open_;
  std::unordered_map<YAML::anchor_t, Anchored> anchors_;
  std::size_t weight_ = 0;
};

// The library reads from a stream; this one is the text itself.
class TextBuffer : public std::streambuf {
 public:
  explicit TextBuffer(std::string_view text) {
    char* begin = const_cast<char*>(text.data());  // only read
    setg(begin, begin, begin + text.size());
  }
};

}  // namespace

Result<Json> parse_yaml(std::string_view bytes, const std::string& name, const YamlLimits& limits) {
  if (bytes.size() > limits.bytes) {
    return error(Code::out_of_range, "{}: {} bytes, expected at most {}", name, bytes.size(),
                 limits.bytes);
  }
  Builder builder(name, limits);
  try {
    TextBuffer buffer(bytes);
    std::istream stream(&buffer);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Refused& refused) {
    return refused.status;
  } catch (const YAML::Exception& problem) {
    return error(Code::invalid_argument, "{}:{}:{}: no YAML: {}", name, problem.mark.line + 1,
                 problem.mark.column + 1, printable(problem.msg, 160));
  } catch (const std::exception& problem) {  // memory
    return error(Code::invalid_argument, "{}: no YAML that can be read: {}", name,
                 printable(problem.what(), 160));
  }
  if (!builder.done()) return error(Code::invalid_argument, "{}: no document in it", name);
  return builder.take();
}

}  // namespace penstock
