// An operating error is a value: a code and a sentence. Programmer errors abort (PENSTOCK_CHECK).
#ifndef PENSTOCK_BASE_STATUS_H_
#define PENSTOCK_BASE_STATUS_H_

#include <fmt/core.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace penstock {

// Codes are part of the ABI: new ones are only appended. The descriptor's completion status and the
// C header use the same numbers (held by a test).
enum class Code : std::uint32_t {
  ok = 0,
  invalid_argument = 1,
  unsupported = 2,
  out_of_range = 3,
  no_space = 4,
  not_found = 5,
  already_exists = 6,
  permission_denied = 7,
  deadline_exceeded = 8,
  cancelled = 9,
  peer_dead = 10,
  revoked = 11,
  mismatch = 12,
  corrupt = 13,
  io_error = 14,
  busy = 15,
  internal = 16,
};

// "invalid_argument" and so on; "?" for a number that is no code. Static storage.
const char* code_name(Code code);

// A success is a null pointer, so that passing one around costs a register. Value type; a const
// Status may be read from several threads.
class [[nodiscard]] Status {
 public:
  Status() = default;  // success
  Status(Code code, std::string message);
  Status(const Status& other);
  Status& operator=(const Status& other);
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;

  bool ok() const { return !error_; }
  Code code() const { return error_ ? error_->code : Code::ok; }
  // A sentence that names what is wrong, where, and what would be right. Empty on success.
  const std::string& message() const;
  // "corrupt: pool.0: ..." or "ok".
  std::string to_string() const;
  // The same code with "context: " before the sentence; a success stays one.
  Status with_context(const std::string& context) const;

 private:
  struct Error {
    Code code;
    std::string message;
  };
  std::unique_ptr<Error> error_;
};

// error(Code::corrupt, "{}: bad magic {:#x}", path, magic)
template <typename... Args>
Status error(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return Status(code, fmt::format(format, std::forward<Args>(args)...));
}

// Prints to standard error and aborts. For broken invariants only, never for input.
[[noreturn]] void fail_check(const char* file, int line, const char* condition,
                             const std::string& message);

// A value or the reason why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    if (status_.ok()) fail_check(__FILE__, __LINE__, "!status.ok()", "a Result without a value");
  }
  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  // Only after ok(); anything else is a programmer error and aborts.
  T& value() & {
    require();
    return *value_;
  }
  const T& value() const& {
    require();
    return *value_;
  }
  T&& value() && {
    require();
    return std::move(*value_);
  }
  T* operator->() { return &value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }

 private:
  void require() const {
    if (!value_) fail_check(__FILE__, __LINE__, "result.ok()", status_.to_string());
  }
  std::optional<T> value_;
  Status status_;
};

}  // namespace penstock

// Stays on in release builds.
#define PENSTOCK_CHECK(condition, ...)                                                       \
  do {                                                                                       \
    if (!(condition)) [[unlikely]]                                                           \
      ::penstock::fail_check(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)); \
  } while (false)

#define PENSTOCK_CONCAT_INNER(a, b) a##b
#define PENSTOCK_CONCAT(a, b) PENSTOCK_CONCAT_INNER(a, b)

// Returns the status from the enclosing function unless it is ok.
#define PENSTOCK_TRY(expression)                                                          \
  do {                                                                                    \
    if (::penstock::Status penstock_try_status = (expression); !penstock_try_status.ok()) \
      return penstock_try_status;                                                         \
  } while (false)

// PENSTOCK_ASSIGN(auto pool, Pool::map(...)): declares or returns the status.
#define PENSTOCK_ASSIGN(declaration, expression) \
  PENSTOCK_ASSIGN_INNER(PENSTOCK_CONCAT(penstock_result_, __LINE__), declaration, expression)
#define PENSTOCK_ASSIGN_INNER(result, declaration, expression) \
  auto result = (expression);                                  \
  if (!result.ok()) return result.status();                    \
  declaration = std::move(result).value()

#endif
