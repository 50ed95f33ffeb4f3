#include "penstock/serve/http_server.h"

#include <httplib.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <array>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "penstock/base/log.h"
#include "penstock/base/platform.h"
#include "penstock/base/socket_linux.h"
#include "penstock/serve/http_connection.h"

namespace penstock {
namespace {

using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

// True while the thread that accepts runs a connection only to refuse it.
thread_local bool refusing = false;
// The connection that this thread serves, for the library's callbacks.
thread_local HttpConnection* current = nullptr;

std::string ssl_reason() {
  const unsigned long code = ERR_get_error();
  std::array<char, 160> text{};
  ERR_error_string_n(code, text.data(), text.size());
  ERR_clear_error();
  return code == 0 ? "no reason given" : text.data();
}

Result<Context> make_context(const TlsFiles& files) {
  Context context(nullptr, SSL_CTX_free);
  if (files.certificate.empty() && files.key.empty() && files.client_ca.empty()) return context;
  if (files.certificate.empty() || files.key.empty()) {
    return error(Code::invalid_argument, "TLS needs a certificate and its key; found only {}",
                 !files.certificate.empty() ? "the certificate"
                 : !files.key.empty()       ? "the key"
                                            : "the clients' authority");
  }
  context.reset(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return error(Code::internal, "no TLS: {}", ssl_reason());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (SSL_CTX_use_certificate_chain_file(context.get(), files.certificate.c_str()) != 1) {
    return error(Code::invalid_argument, "{}: no certificate in PEM form: {}", files.certificate,
                 ssl_reason());
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    return error(Code::invalid_argument, "{}: no key in PEM form that belongs to {}: {}", files.key,
                 files.certificate, ssl_reason());
  }
  if (!files.client_ca.empty()) {
    if (SSL_CTX_load_verify_locations(context.get(), files.client_ca.c_str(), nullptr) != 1) {
      return error(Code::invalid_argument, "{}: no certificates in PEM form: {}", files.client_ca,
                   ssl_reason());
    }
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  return context;
}

// As many threads as connections at once, made when they are first needed.
class Connections : public httplib::TaskQueue {
 public:
  explicit Connections(std::uint32_t most) : most_(most) {}

  void enqueue(std::function<void()> serve) override {
    {
      const std::lock_guard lock(mutex_);
      if (busy_ < most_) {
        ++busy_;
        waiting_.push_back(std::move(serve));
        if (idle_ < waiting_.size()) threads_.emplace_back([this] { work(); });
        ready_.notify_one();
        return;
      }
    }
    refusing = true;
    serve();
    refusing = false;
  }

  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    ready_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      ready_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
      --idle_;
      if (waiting_.empty()) return;
      std::function<void()> serve = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      serve();
      lock.lock();
      --busy_;
    }
  }

  const std::uint32_t most_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  std::uint32_t busy_ = 0;
  bool stopping_ = false;
};

std::string refusal_text(int status, const HttpLimits& limits) {
  switch (status) {
    case 408:
      return fmt::format("the request was not complete within {} ms", limits.request_ms);
    case 413:
      return fmt::format("the body is larger than {} bytes", limits.body_bytes);
    case 429:
      return fmt::format("there are {} connections already, the most that are served at once",
                         limits.connections);
    case 431:
      return fmt::format("request line and headers are larger than {} bytes", limits.header_bytes);
    default:
      return "no HTTP/1.1 request";
  }
}

class Server final : public HttpServer, private httplib::Server {
 public:
  Server(const HttpServerConfig& config, std::vector<HttpRoute> routes,
         std::function<void(const HttpAccess&)> observer, Context context)
      : config_(config),
        routes_(std::move(routes)),
        observer_(std::move(observer)),
        context_(std::move(context)) {}
  ~Server() override { Server::stop(); }

  Status listen();
  std::uint16_t port() const override { return port_; }
  void stop() override;

 private:
  bool process_and_close_socket(socket_t socket) override;
  void serve(HttpConnection* connection);
  HandlerResponse look_at(const httplib::Request& request, httplib::Response& response);
  void answer(const HttpRoute& route, const httplib::Request& request, httplib::Response& response);
  void observe(const std::string& path, int status, std::uint64_t started_ns) const;

  HttpServerConfig config_;
  std::vector<HttpRoute> routes_;
  std::function<void(const HttpAccess&)> observer_;
  Context context_;
  std::uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  std::once_flag stopped_;
  std::thread acceptor_;
};

Status Server::listen() {
  set_payload_max_length(config_.limits.body_bytes);
  set_tcp_nodelay(true);
  set_socket_options([](socket_t socket) { socket_io::reuse_address(socket); });
  // Only said to clients; the connection holds to its limits.
  set_keep_alive_timeout(config_.limits.idle_ms / 1000);
  set_keep_alive_max_count(1000000);
  new_task_queue = [this] { return new Connections(config_.limits.connections); };
  set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    return look_at(request, response);
  });
  set_expect_100_continue_handler([this](const httplib::Request& request, httplib::Response&) {
    // The body that is announced is refused before it is sent.
    return request.get_header_value<std::uint64_t>("Content-Length") > config_.limits.body_bytes
               ? 413
               : 100;
  });
  set_exception_handler(
      [](const httplib::Request&, httplib::Response& response, const std::exception_ptr&) {
        const HttpResponse out = http_error(500, "internal error");
        response.status = out.status;
        response.set_content(out.body, out.content_type);
      });
  set_error_handler([](const httplib::Request&, httplib::Response& response) {
    if (!response.body.empty()) return;
    response.set_content(
        http_error(response.status,
                   response.status == 413 ? "the body is too large" : "no request that can be read")
            .body,
        "application/json");
  });
  set_logger([this](const httplib::Request& request, const httplib::Response& response) {
    observe(request.path, response.status, current->request_started_ns());
  });
  for (const HttpRoute& route : routes_) {
    const auto handler = [this, &route](const httplib::Request& request,
                                        httplib::Response& response) {
      answer(route, request, response);
    };
    if (route.method == "GET") {
      Get(route.path, handler);
    } else {
      Post(route.path, handler);
    }
  }
  if (config_.port == 0) {
    const int port = bind_to_any_port(config_.host);
    if (port <= 0) return error(Code::io_error, "{}: no port can be had there", config_.host);
    port_ = static_cast<std::uint16_t>(port);
  } else {
    if (!bind_to_port(config_.host, config_.port)) {
      return error(Code::io_error, "{}:{}: the address is in use, or not one of this host",
                   config_.host, config_.port);
    }
    port_ = config_.port;
  }
  acceptor_ = std::thread([this] { listen_after_bind(); });
  while (!is_running()) std::this_thread::yield();
  return {};
}

void Server::stop() {
  std::call_once(stopped_, [this] {
    stopping_.store(true);
    httplib::Server::stop();
    if (acceptor_.joinable()) acceptor_.join();
  });
}

// Before the body is read. A body that is not read ends the connection.
httplib::Server::HandlerResponse Server::look_at(const httplib::Request& request,
                                                 httplib::Response& response) {
  const auto refuse = [&](int status, const std::string& why) {
    const HttpResponse out = http_error(status, why);
    response.status = out.status;
    response.set_content(out.body, out.content_type);
    response.set_header("Connection", "close");
    current->set_last();
    return HandlerResponse::Handled;
  };
  const std::string& method = request.method;
  const bool get = method == "GET" || method == "HEAD";
  const HttpRoute* route = nullptr;
  bool known = false;
  for (const HttpRoute& one : routes_) {
    if (one.path != request.path) continue;
    known = true;
    if (one.method == (get ? "GET" : method)) route = &one;
  }
  if (!known) {
    std::string paths;
    for (const HttpRoute& one : routes_) paths += (paths.empty() ? "" : ", ") + one.path;
    return refuse(404, "there is nothing at this path; there are " + paths);
  }
  if (route == nullptr) return refuse(405, method + " is not served at this path");
  if (get) return HandlerResponse::Unhandled;
  const std::string type = request.get_header_value("Content-Type");
  if (type.rfind("application/json", 0) != 0) {
    return refuse(415, "the body must be JSON, said by Content-Type: application/json");
  }
  if (request.has_header("Content-Encoding")) {
    return refuse(415, "a compressed body is not read; send it without Content-Encoding");
  }
  const bool chunked = request.has_header("Transfer-Encoding");
  if (!chunked && !request.has_header("Content-Length")) {
    return refuse(411, "a POST needs Content-Length or Transfer-Encoding: chunked");
  }
  if (!chunked &&
      request.get_header_value<std::uint64_t>("Content-Length") > config_.limits.body_bytes) {
    return refuse(413, refusal_text(413, config_.limits));
  }
  return HandlerResponse::Unhandled;
}

void Server::answer(const HttpRoute& route, const httplib::Request& request,
                    httplib::Response& response) {
  if (request.body.size() > config_.limits.body_bytes) {
    const HttpResponse out = http_error(413, refusal_text(413, config_.limits));
    response.status = out.status;
    response.set_content(out.body, out.content_type);
    return;
  }
  HttpResponse out = route.handler({request.method, request.path, request.body});
  response.status = out.status;
  response.body = std::move(out.body);
  response.set_header("Content-Type", out.content_type);
  if (stopping_.load()) {
    response.set_header("Connection", "close");
    current->set_last();
  }
}

void Server::observe(const std::string& path, int status, std::uint64_t started_ns) const {
  if (!observer_) return;
  observer_({path, status, started_ns == 0 ? 0 : Platform::host().now_ns() - started_ns});
}

bool Server::process_and_close_socket(socket_t socket) {
  HttpConnection connection(socket, context_.get(), config_.limits, stopping_);
  if (refusing) {
    // In TLS nothing can be said before a handshake, for which the accepting thread has no time.
    if (context_ == nullptr) connection.refuse(429, refusal_text(429, config_.limits));
    observe("", 429, 0);
    return true;
  }
  if (!connection.handshake()) {
    log::debug("a connection ended in the TLS handshake: {}", ssl_reason());
    observe("", 400, 0);
    return true;
  }
  current = &connection;
  serve(&connection);
  current = nullptr;
  connection.finish();
  return true;
}

void Server::serve(HttpConnection* connection) {
  while (connection->wait_for_request()) {
    bool closed = false;
    std::string path;
    const bool served =
        process_request(*connection, stopping_.load(), closed, [&](httplib::Request& request) {
          connection->begin_body();
          path = request.path;
          // Answers go to a neighbour: packing them costs more
          // than it saves.
          request.headers.erase("Accept-Encoding");
        });
    if (const int why = connection->refused(); why != 0) {
      connection->refuse(why, refusal_text(why, config_.limits));
      observe(path, why, connection->request_started_ns());
      return;
    }
    if (!served || closed || connection->is_last() || stopping_.load()) return;
  }
}

}  // namespace

HttpResponse http_error(int status, const std::string& message) {
  nlohmann::json body;
  body["error"] = message;
  return {status, "application/json",
          body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(
    const HttpServerConfig& config, std::vector<HttpRoute> routes,
    std::function<void(const HttpAccess&)> observer) {
  auto context = make_context(config.tls);
  if (!context.ok()) return context.status();
  auto server = std::make_unique<Server>(config, std::move(routes), std::move(observer),
                                         std::move(context).value());
  PENSTOCK_TRY(server->listen());
  return std::unique_ptr<HttpServer>(std::move(server));
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0;
}

Result<HttpServerConfig> parse_listen(const std::string& text) {
  const auto wrong = [&text] {
    return error(Code::invalid_argument,
                 "'{}' is no address to listen at, expected HOST:PORT, for example 127.0.0.1:8888",
                 text);
  };
  HttpServerConfig config;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return wrong();
  config.host = text.substr(0, colon);
  if (config.host.starts_with('[') && config.host.ends_with(']') && config.host.size() > 2) {
    config.host = config.host.substr(1, config.host.size() - 2);
  } else if (config.host.find_first_of(":[] /") != std::string::npos) {
    return wrong();
  }
  if (config.host.empty()) config.host = "0.0.0.0";
  const char* end = text.data() + text.size();
  const auto [at, problem] = std::from_chars(text.data() + colon + 1, end, config.port);
  if (problem != std::errc() || at != end) return wrong();
  return config;
}

}  // namespace penstock
