#include "penstock/serve/http_connection.h"

#include <algorithm>
#include <cstring>

#include "penstock/base/platform.h"
#include "penstock/base/socket_linux.h"

namespace penstock {
namespace {

constexpr std::uint64_t kMs = 1000000;
// A stopped server is noticed within this time by a connection that waits for a request.
constexpr std::uint64_t kLookMs = 50;
// Framing of a chunked body in excess of its content; a client that sends one byte a chunk is
// beyond it.
constexpr std::uint64_t kFramingBytes = 64 << 10;
// How long, and how much of, a refused request is still taken.
constexpr std::uint64_t kLingerMs = 500;
constexpr std::uint64_t kLingerBytes = 4 << 20;

std::uint64_t now_ns() { return Platform::host().now_ns(); }

const char* status_words(int status) {
  switch (status) {
    case 408:
      return "Request Timeout";
    case 413:
      return "Payload Too Large";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Bad Request";
  }
}

}  // namespace

HttpConnection::HttpConnection(int socket, SSL_CTX* context, const HttpLimits& limits,
                               const std::atomic<bool>& stopping)
    : socket_(socket), limits_(limits), stopping_(&stopping), ssl_(nullptr, SSL_free) {
  const bool set = socket_io::make_nonblocking(socket).ok();
  if (context != nullptr) {
    ssl_.reset(SSL_new(context));
    if (ssl_ != nullptr) SSL_set_fd(ssl_.get(), socket);
  }
  if (!set || (context != nullptr && ssl_ == nullptr)) refused_ = 400;
}

HttpConnection::~HttpConnection() {
  ssl_.reset();
  socket_io::close(socket_);
}

bool HttpConnection::wait(Wait what, std::uint64_t end_ns) const {
  const std::uint64_t now = now_ns();
  const std::uint64_t left_ms = end_ns > now ? (end_ns - now + kMs - 1) / kMs : 0;
  return what == Wait::read ? socket_io::wait_readable(socket_, left_ms)
                            : socket_io::wait_writable(socket_, left_ms);
}

bool HttpConnection::handshake() {
  if (refused_ != 0) return false;
  if (ssl_ == nullptr) return true;
  const std::uint64_t end = now_ns() + limits_.request_ms * kMs;
  for (;;) {
    const int done = SSL_accept(ssl_.get());
    if (done == 1) return true;
    const int why = SSL_get_error(ssl_.get(), done);
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) return false;
    if (!wait(why == SSL_ERROR_WANT_READ ? Wait::read : Wait::write, end)) return false;
  }
}

HttpConnection::Attempt HttpConnection::try_read(char* data, std::size_t bytes) {
  if (ssl_ == nullptr) {
    const auto n = socket_io::receive(socket_, data, bytes);
    if (n.ok()) return {static_cast<ssize_t>(n.value()), Wait::none};
    return {-1, n.status().code() == Code::busy ? Wait::read : Wait::none};
  }
  const int n = SSL_read(ssl_.get(), data, static_cast<int>(std::min<std::size_t>(bytes, 1 << 30)));
  if (n > 0) return {n, Wait::none};
  const int why = SSL_get_error(ssl_.get(), n);
  if (why == SSL_ERROR_ZERO_RETURN) return {0, Wait::none};
  if (why == SSL_ERROR_WANT_READ) return {-1, Wait::read};
  return {-1, why == SSL_ERROR_WANT_WRITE ? Wait::write : Wait::none};
}

HttpConnection::Attempt HttpConnection::try_write(const char* data, std::size_t bytes) {
  if (ssl_ == nullptr) {
    const auto n = socket_io::send(socket_, data, bytes);
    if (n.ok()) return {static_cast<ssize_t>(n.value()), Wait::none};
    return {-1, n.status().code() == Code::busy ? Wait::write : Wait::none};
  }
  const int n =
      SSL_write(ssl_.get(), data, static_cast<int>(std::min<std::size_t>(bytes, 1 << 30)));
  if (n > 0) return {n, Wait::none};
  const int why = SSL_get_error(ssl_.get(), n);
  if (why == SSL_ERROR_WANT_READ) return {-1, Wait::read};
  return {-1, why == SSL_ERROR_WANT_WRITE ? Wait::write : Wait::none};
}

bool HttpConnection::wait_for_request() {
  header_bytes_ = body_bytes_ = 0;
  in_body_ = false;
  const std::uint64_t end = now_ns() + limits_.idle_ms * kMs;
  while (begin_ == end_) {
    const Attempt attempt = try_read(buffer_.data(), buffer_.size());
    if (attempt.bytes > 0) {
      begin_ = 0;
      end_ = static_cast<std::size_t>(attempt.bytes);
      break;
    }
    if (attempt.wait == Wait::none || stopping_->load() || now_ns() >= end) return false;
    wait(attempt.wait, std::min(end, now_ns() + kLookMs * kMs));
  }
  started_ns_ = now_ns();
  return true;
}

ssize_t HttpConnection::fill() {
  const std::uint64_t end = started_ns_ + limits_.request_ms * kMs;
  for (;;) {
    const Attempt attempt = try_read(buffer_.data(), buffer_.size());
    if (attempt.bytes >= 0) {
      begin_ = 0;
      end_ = static_cast<std::size_t>(attempt.bytes);
      return attempt.bytes;
    }
    if (attempt.wait == Wait::none) return -1;
    if (now_ns() >= end || !wait(attempt.wait, end)) {
      refused_ = 408;
      return -1;
    }
  }
}

ssize_t HttpConnection::read(char* data, std::size_t bytes) {
  if (refused_ != 0) return -1;
  if (begin_ == end_) {
    const ssize_t filled = fill();
    if (filled <= 0) return filled;
  }
  // Time is looked at here as well: a client that sends without a pause never waits in fill().
  if (now_ns() - started_ns_ > limits_.request_ms * kMs) {
    refused_ = 408;
    return -1;
  }
  const std::size_t n = std::min(bytes, end_ - begin_);
  std::memcpy(data, buffer_.data() + begin_, n);
  begin_ += n;
  std::uint64_t& count = in_body_ ? body_bytes_ : header_bytes_;
  count += n;
  if (!in_body_ && count > limits_.header_bytes) refused_ = 431;
  if (in_body_ && count > limits_.body_bytes + limits_.body_bytes / 8 + kFramingBytes) {
    refused_ = 413;
  }
  return refused_ != 0 ? -1 : static_cast<ssize_t>(n);
}

ssize_t HttpConnection::write(const char* data, std::size_t bytes) {
  if (refused_ != 0) return -1;
  std::size_t done = 0;
  while (done < bytes) {
    const Attempt attempt = try_write(data + done, bytes - done);
    if (attempt.bytes > 0) {
      done += static_cast<std::size_t>(attempt.bytes);
    } else if (attempt.wait == Wait::none ||
               !wait(attempt.wait, now_ns() + limits_.write_ms * kMs)) {
      return -1;
    }
  }
  return static_cast<ssize_t>(done);
}

void HttpConnection::refuse(int status, const std::string& message) {
  refused_ = 0;
  const std::string body = http_error(status, message).body;
  const std::string text = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n"
      "Connection: close\r\n\r\n{}",
      status, status_words(status), body.size(), body);
  write(text.data(), text.size());
  last_ = true;
}

void HttpConnection::finish() {
  if (ssl_ != nullptr) SSL_shutdown(ssl_.get());
  socket_io::shutdown_write(socket_);
  const std::uint64_t end = now_ns() + kLingerMs * kMs;
  std::uint64_t taken = 0;
  while (taken < kLingerBytes && now_ns() < end) {
    const auto n = socket_io::receive(socket_, buffer_.data(), buffer_.size());
    if (n.ok() && n.value() == 0) return;
    if (n.ok()) {
      taken += n.value();
    } else if (n.status().code() != Code::busy || !wait(Wait::read, end)) {
      return;
    }
  }
}

bool HttpConnection::is_readable() const { return begin_ != end_ || wait(Wait::read, 0); }

bool HttpConnection::is_writable() const { return refused_ == 0 && wait(Wait::write, 0); }

void HttpConnection::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip = socket_io::peer_address(socket_, &port);
}

void HttpConnection::get_local_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

}  // namespace penstock
