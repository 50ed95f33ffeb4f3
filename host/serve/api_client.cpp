#include "penstock/serve/api_client.h"

#include <httplib.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/base/log.h"
#include "penstock/base/platform.h"
#include "penstock/sched/csv.h"

namespace penstock {
namespace {

constexpr std::uint64_t kMs = 1000000;
constexpr std::uint64_t kTokenBytes = 64 << 10;
constexpr std::uint64_t kTokenLifeNs = 60000 * kMs;
constexpr std::size_t kIdleClients = 32;

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) {
    text.pop_back();
  }
  return text;
}

class Client final : public Api {
 public:
  Client(ApiEndpoint endpoint, const ApiClientOptions& options)
      : endpoint_(std::move(endpoint)), options_(options) {}

  // A first connection object, so that an unusable endpoint is told at once.
  Status check();
  Result<ApiReply> call(const std::string& method, const std::string& path, const std::string& body,
                        const std::string& content_type) override;
  Result<ApiReply> stream(const std::string& path, std::uint64_t idle_ms, const StopFlag& stop,
                          const std::function<bool(std::string_view)>& on_data) override;

 private:
  using Connection = std::unique_ptr<httplib::Client>;
  Result<Connection> connect() const;
  Result<Connection> borrow();
  void give_back(Connection connection);
  Result<std::string> token();
  Status failure(const std::string& method, const std::string& path, httplib::Error problem) const;

  const ApiEndpoint endpoint_;
  const ApiClientOptions options_;
  std::mutex mutex_;
  std::vector<Connection> idle_;
  std::string token_;
  std::uint64_t token_read_ns_ = 0;
};

void set_timeouts(httplib::Client* connection, std::uint64_t connect_ms, std::uint64_t read_ms) {
  connection->set_connection_timeout(std::chrono::milliseconds(connect_ms));
  connection->set_read_timeout(std::chrono::milliseconds(read_ms));
  connection->set_write_timeout(std::chrono::milliseconds(read_ms));
}

Result<Client::Connection> Client::connect() const {
  Connection connection;
  const bool with_key = !endpoint_.client_certificate.empty();
  connection = with_key ? std::make_unique<httplib::Client>(
                              endpoint_.url, endpoint_.client_certificate, endpoint_.client_key)
                        : std::make_unique<httplib::Client>(endpoint_.url);
  if (!connection->is_valid()) {
    return error(Code::invalid_argument, "{}: no endpoint that can be used{}", endpoint_.url,
                 with_key ? ", or the client's certificate and key do not fit" : "");
  }
  connection->set_keep_alive(true);
  connection->set_tcp_nodelay(true);
  connection->set_url_encode(false);
  connection->set_follow_location(false);
  if (!endpoint_.ca_file.empty()) connection->set_ca_cert_path(endpoint_.ca_file.c_str());
  connection->enable_server_certificate_verification(true);
  return connection;
}

Status Client::check() {
  PENSTOCK_ASSIGN(Connection connection, connect());
  PENSTOCK_ASSIGN(const std::string text, token());
  return {};
}

Result<Client::Connection> Client::borrow() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      Connection connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  return connect();
}

void Client::give_back(Connection connection) {
  const std::lock_guard lock(mutex_);
  if (idle_.size() < kIdleClients) idle_.push_back(std::move(connection));
}

Result<std::string> Client::token() {
  if (endpoint_.token_file.empty()) return std::string();
  const std::uint64_t now = Platform::host().now_ns();
  const std::lock_guard lock(mutex_);
  if (token_.empty() || now - token_read_ns_ > kTokenLifeNs) {
    auto text = read_file(endpoint_.token_file, kTokenBytes);
    // A token that cannot be read at the moment is tried as it was.
    if (!text.ok() && token_.empty()) return text.status();
    if (text.ok()) token_ = trimmed(std::move(text).value());
    if (token_.empty() || token_.find_first_of("\r\n") != std::string::npos) {
      token_.clear();
      return error(Code::invalid_argument, "{}: found no token, expected one line",
                   endpoint_.token_file);
    }
    token_read_ns_ = now;
  }
  return token_;
}

Status Client::failure(const std::string& method, const std::string& path,
                       httplib::Error problem) const {
  const bool late = problem == httplib::Error::ConnectionTimeout;
  return error(late ? Code::deadline_exceeded : Code::io_error, "{}: {} {}: no answer: {}",
               endpoint_.url, method, path, httplib::to_string(problem));
}

Result<ApiReply> Client::call(const std::string& method, const std::string& path,
                              const std::string& body, const std::string& content_type) {
  PENSTOCK_ASSIGN(Connection connection, borrow());
  PENSTOCK_ASSIGN(const std::string bearer, token());
  set_timeouts(connection.get(), options_.connect_ms, options_.call_ms);
  httplib::Request request;
  request.method = method;
  request.path = path;
  if (!bearer.empty()) request.headers.emplace("Authorization", "Bearer " + bearer);
  request.headers.emplace("Accept", "application/json");
  if (!body.empty()) {
    request.body = body;
    request.headers.emplace("Content-Type", content_type);
  }
  ApiReply reply;
  bool too_large = false;
  request.content_receiver = [&](const char* data, std::size_t bytes, std::uint64_t,
                                 std::uint64_t) {
    too_large = reply.body.size() + bytes > options_.list_bytes;
    if (!too_large) reply.body.append(data, bytes);
    return !too_large;
  };
  const httplib::Result result = connection->send(request);
  if (too_large) {
    return error(Code::out_of_range, "{}: {} {}: the answer is larger than {} bytes", endpoint_.url,
                 method, path, options_.list_bytes);
  }
  if (!result) return failure(method, path, result.error());
  reply.status = result->status;
  give_back(std::move(connection));
  return reply;
}

Result<ApiReply> Client::stream(const std::string& path, std::uint64_t idle_ms,
                                const StopFlag& stop,
                                const std::function<bool(std::string_view)>& on_data) {
  PENSTOCK_ASSIGN(Connection connection, connect());
  PENSTOCK_ASSIGN(const std::string bearer, token());
  set_timeouts(connection.get(), options_.connect_ms, idle_ms);
  httplib::Request request;
  request.method = "GET";
  request.path = path;
  if (!bearer.empty()) request.headers.emplace("Authorization", "Bearer " + bearer);
  request.headers.emplace("Accept", "application/json");
  ApiReply reply;
  bool enough = false;
  constexpr std::size_t kRefusalBytes = 64 << 10;
  request.response_handler = [&reply](const httplib::Response& response) {
    reply.status = response.status;
    return true;
  };
  request.content_receiver = [&](const char* data, std::size_t bytes, std::uint64_t,
                                 std::uint64_t) {
    if (stop.requested()) return false;
    if (reply.status == 200) {
      enough = !on_data({data, bytes});
      return !enough;
    }
    reply.body.append(data, std::min(bytes, kRefusalBytes - reply.body.size()));
    return true;
  };
  // A read that waits for the next event is ended from beside it.
  std::atomic<bool> done{false};
  std::thread watchdog([&] {
    while (!done.load()) {
      if (stop.requested()) connection->stop();
      Platform::host().sleep_ns(20 * kMs);
    }
  });
  const httplib::Result result = connection->send(request);
  done.store(true);
  watchdog.join();
  if (stop.requested()) return error(Code::cancelled, "{}: stopped", path);
  if (!result && !enough) return failure("GET", path, result.error());
  return reply;
}

}  // namespace

bool StopFlag::sleep_ms(std::uint64_t ms) const {
  Platform& platform = Platform::host();
  const std::uint64_t end = platform.now_ns() + ms * kMs;
  for (std::uint64_t now = platform.now_ns(); !requested() && now < end; now = platform.now_ns()) {
    platform.sleep_ns(std::min<std::uint64_t>(end - now, 20 * kMs));
  }
  return requested();
}

Result<ApiEndpoint> in_cluster_endpoint(const std::string& folder) {
  const char* host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* port = std::getenv("KUBERNETES_SERVICE_PORT");
  if (host == nullptr || port == nullptr || *host == 0 || *port == 0) {
    return error(
        Code::not_found,
        "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, as they are in a "
        "pod; outside of one give the API server's address");
  }
  ApiEndpoint endpoint;
  const std::string name = host;
  const bool v6 = name.find(':') != std::string::npos;
  endpoint.url = fmt::format("https://{}{}{}:{}", v6 ? "[" : "", name, v6 ? "]" : "", port);
  endpoint.ca_file = folder + "/ca.crt";
  endpoint.token_file = folder + "/token";
  for (const std::string& path : {endpoint.ca_file, endpoint.token_file}) {
    if (!Platform::host().exists(path)) {
      return error(Code::not_found, "{}: the service account's file is missing", path);
    }
  }
  return endpoint;
}

Result<std::unique_ptr<Api>> make_api_client(const ApiEndpoint& endpoint,
                                             const ApiClientOptions& options) {
  const bool tls = endpoint.url.rfind("https://", 0) == 0;
  if (!tls && endpoint.url.rfind("http://", 0) != 0) {
    return error(Code::invalid_argument,
                 "'{}' is no API server, expected http://HOST:PORT or https://HOST:PORT",
                 endpoint.url);
  }
  ApiEndpoint used = endpoint;
  while (used.url.ends_with('/')) used.url.pop_back();
  if (used.url.find('/', used.url.find("://") + 3) != std::string::npos) {
    return error(Code::invalid_argument, "'{}': an API server's address has no path", endpoint.url);
  }
  if (used.client_certificate.empty() != used.client_key.empty()) {
    return error(Code::invalid_argument, "a client's certificate and its key come together");
  }
  if (!tls && (!used.ca_file.empty() || !used.client_key.empty())) {
    return error(Code::invalid_argument, "'{}': certificates are for https://", endpoint.url);
  }
  if (!tls && !used.token_file.empty()) {
    log::warn("{}: the token is sent without encryption", used.url);
  }
  for (const std::string* file : {&used.ca_file, &used.client_certificate, &used.client_key}) {
    if (!file->empty() && !Platform::host().exists(*file)) {
      return error(Code::not_found, "{}: there is no such file", *file);
    }
  }
  auto client = std::make_unique<Client>(std::move(used), options);
  PENSTOCK_TRY(client->check());
  return std::unique_ptr<Api>(std::move(client));
}

std::string encode_url(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::string api_message(const ApiReply& reply) {
  const auto status = nlohmann::json::parse(reply.body, nullptr, false);
  if (status.is_object()) {
    const auto message = status.find("message");
    if (message != status.end() && message->is_string()) return message->get<std::string>();
  }
  return reply.body.substr(0, 200);
}

}  // namespace penstock
