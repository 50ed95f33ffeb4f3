// A value of a JSON document that knows where it stands, so that an error can say so.
#ifndef PENSTOCK_SCHED_JSON_FIELD_H_
#define PENSTOCK_SCHED_JSON_FIELD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/base/status.h"

namespace penstock {

// null and a member that is absent are the same. Refers to its parent and to the document, which
// outlive it.
class JsonField {
 public:
  using Json = nlohmann::json;

  // `name` stands for the document in messages.
  JsonField(const Json& root, std::string_view name) : value_(&root), key_(name) {}

  bool present() const { return value_ != nullptr && !value_->is_null(); }
  const Json& json() const { return *value_; }
  // The result refers to this field.
  JsonField member(std::string_view key) const&;
  JsonField member(std::string_view key) const&& = delete;

  // "FILE: items[2].spec.taints".
  std::string where() const;
  // invalid_argument "WHERE: found ..., expected `expected`".
  Status wrong(const std::string& expected) const;

  // Absent values give "", 0, false and no calls; those of another type an error.
  Result<std::string> text() const;
  Result<std::int64_t> integer(std::int64_t min, std::int64_t max) const;
  Result<bool> boolean() const;
  Status each(const std::function<Status(const JsonField& item)>& visit) const;
  Status each_member(
      const std::function<Status(const std::string& key, const JsonField& item)>& visit) const;
  Result<std::map<std::string, std::string>> texts() const;  // an object of texts
  // ok for an object or what is absent.
  Status expect_object() const;

 private:
  JsonField(const JsonField* parent, const Json* value, std::string_view key, std::size_t index)
      : parent_(parent), value_(value), key_(key), index_(index) {}

  const JsonField* parent_ = nullptr;
  const Json* value_ = nullptr;
  std::string_view key_;  // empty for an entry of an array
  std::size_t index_ = 0;
};

// One value for each item of an array; read_one gives a Result<T>.
template <typename T, typename ReadOne>
Result<std::vector<T>> read_list(const JsonField& field, const ReadOne& read_one) {
  std::vector<T> list;
  const Status status = field.each([&](const JsonField& item) -> Status {
    Result<T> one = read_one(item);
    if (!one.ok()) return one.status();
    list.push_back(std::move(one).value());
    return {};
  });
  if (!status.ok()) return status;
  return list;
}

// Parses the text; invalid_argument names line and column, or that it nests deeper than max_depth.
Result<nlohmann::json> parse_json(std::string_view bytes, const std::string& name, int max_depth);

}  // namespace penstock
#endif
