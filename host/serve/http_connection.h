// One accepted connection as a stream for the HTTP library, plain or TLS, that holds a request to
// its bounds. Used by one thread.
#ifndef PENSTOCK_SERVE_HTTP_CONNECTION_H_
#define PENSTOCK_SERVE_HTTP_CONNECTION_H_

#include <httplib.h>
#include <openssl/ssl.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "penstock/serve/http_server.h"

namespace penstock {

class HttpConnection : public httplib::Stream {
 public:
  // Takes the socket over. `context` null: no TLS. `stopping` ends the wait for a request.
  HttpConnection(int socket, SSL_CTX* context, const HttpLimits& limits,
                 const std::atomic<bool>& stopping);
  ~HttpConnection() override;
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // TLS only; false when the other side isn't whom it should be, or took too long.
  bool handshake();
  // True when the first byte of a request is there; its time begins.
  bool wait_for_request();
  // The header is complete: from here on the bound of the body holds.
  void begin_body() { in_body_ = true; }
  // 0, or the status with which the request is refused because a bound was passed.
  int refused() const { return refused_; }
  std::uint64_t request_started_ns() const { return started_ns_; }
  // Answers 4xx by itself, where the library cannot.
  void refuse(int status, const std::string& message);
  // The answer to the present request is the last of this connection.
  void set_last() { last_ = true; }
  bool is_last() const { return last_; }
  // Says that nothing more comes, and takes what is still under way for a moment, so that the other
  // side sees the answer and no reset.
  void finish();

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* data, std::size_t bytes) override;
  ssize_t write(const char* data, std::size_t bytes) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  // The library refuses descriptors beyond what select() can carry; nothing here uses select().
  socket_t socket() const override { return 0; }

 private:
  enum class Wait { read, write, none };
  // What one read or write came to, without waiting.
  struct Attempt {
    ssize_t bytes = -1;
    Wait wait = Wait::none;
  };
  Attempt try_read(char* data, std::size_t bytes);
  Attempt try_write(const char* data, std::size_t bytes);
  bool wait(Wait what, std::uint64_t end_ns) const;
  // Bytes in the buffer; <= 0 at the end, on an error, or at a bound.
  ssize_t fill();

  int socket_;
  HttpLimits limits_;
  const std::atomic<bool>* stopping_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  std::array<char, 16384> buffer_{};
  std::size_t begin_ = 0, end_ = 0;
  std::uint64_t started_ns_ = 0;
  std::uint64_t header_bytes_ = 0, body_bytes_ = 0;  // of the present request
  bool in_body_ = false;
  bool last_ = false;
  int refused_ = 0;
};

}  // namespace penstock
#endif
