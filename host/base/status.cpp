#include "penstock/base/status.h"

#include <cstdio>
#include <cstdlib>

namespace penstock {

const char* code_name(Code code) {
  switch (code) {
    case Code::ok:
      return "ok";
    case Code::invalid_argument:
      return "invalid_argument";
    case Code::unsupported:
      return "unsupported";
    case Code::out_of_range:
      return "out_of_range";
    case Code::no_space:
      return "no_space";
    case Code::not_found:
      return "not_found";
    case Code::already_exists:
      return "already_exists";
    case Code::permission_denied:
      return "permission_denied";
    case Code::deadline_exceeded:
      return "deadline_exceeded";
    case Code::cancelled:
      return "cancelled";
    case Code::peer_dead:
      return "peer_dead";
    case Code::revoked:
      return "revoked";
    case Code::mismatch:
      return "mismatch";
    case Code::corrupt:
      return "corrupt";
    case Code::io_error:
      return "io_error";
    case Code::busy:
      return "busy";
    case Code::internal:
      return "internal";
  }
  return "?";
}

Status::Status(Code code, std::string message) {
  if (code != Code::ok) error_ = std::make_unique<Error>(Error{code, std::move(message)});
}

Status::Status(const Status& other)
    : error_(other.error_ ? std::make_unique<Error>(*other.error_) : nullptr) {}

Status& Status::operator=(const Status& other) {
  if (this != &other) error_ = other.error_ ? std::make_unique<Error>(*other.error_) : nullptr;
  return *this;
}

const std::string& Status::message() const {
  static const std::string none;
  return error_ ? error_->message : none;
}

std::string Status::to_string() const {
  return error_ ? fmt::format("{}: {}", code_name(error_->code), error_->message) : "ok";
}

Status Status::with_context(const std::string& context) const {
  return error_ ? Status(error_->code, context + ": " + error_->message) : Status();
}

void fail_check(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "%s:%d: check failed: %s%s%s\n", file, line, condition,
               message.empty() ? "" : ": ", message.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace penstock
