// An HTTP/1.1 server with bounds on everything that a client can send: bytes of header and body,
// connections, and the time in which a request must have arrived whole. A request beyond a bound is
// answered with 4xx and a sentence, and its connection is closed.
#ifndef PENSTOCK_SERVE_HTTP_SERVER_H_
#define PENSTOCK_SERVE_HTTP_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/status.h"

namespace penstock {

struct HttpLimits {
  std::uint64_t header_bytes = 16 << 10;  // request line and headers together
  std::uint64_t body_bytes = 256 << 20;
  std::uint32_t connections = 64;    // at once; each has a thread
  std::uint32_t request_ms = 10000;  // from the first byte of a request to its last
  std::uint32_t idle_ms = 90000;     // between two requests of a connection
  std::uint32_t write_ms = 10000;    // without any progress of an answer
};

// PEM files. All empty: no TLS. With client_ca only clients whose certificate it signed are served.
struct TlsFiles {
  std::string certificate;
  std::string key;
  std::string client_ca;
};

struct HttpServerConfig {
  std::string host = "127.0.0.1";  // a name or address; IPv6 without brackets
  std::uint16_t port = 0;          // 0: one that is free
  TlsFiles tls;
  HttpLimits limits;
};

struct HttpRequest {
  std::string method;  // GET or POST
  std::string path;
  std::string body;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
};

// What the server answers itself is told, too, with the path "" where none was read.
struct HttpAccess {
  std::string path;
  int status = 0;
  std::uint64_t ns = 0;  // from the first byte to the answer
};

struct HttpRoute {
  std::string method;  // GET or POST; a POST takes JSON
  std::string path;
  std::function<HttpResponse(const HttpRequest&)> handler;  // called from several threads at once
};

// Thread-safe.
class HttpServer {
 public:
  // Listens and serves until it is stopped. invalid_argument for TLS files that cannot be used,
  // io_error for an address that cannot be had; both name it.
  static Result<std::unique_ptr<HttpServer>> start(
      const HttpServerConfig& config, std::vector<HttpRoute> routes,
      std::function<void(const HttpAccess&)> observer = {});
  virtual ~HttpServer() = default;

  virtual std::uint16_t port() const = 0;
  // Accepts nothing more, answers what has arrived, and returns when all connections are closed.
  virtual void stop() = 0;

 protected:
  HttpServer() = default;
};

// {"error": "..."} with the status.
HttpResponse http_error(int status, const std::string& message);

// "127.0.0.1:8888", "[::1]:8888", ":8888" (every address), "host:0".
Result<HttpServerConfig> parse_listen(const std::string& text);
bool is_loopback(const std::string& host);

}  // namespace penstock
#endif
