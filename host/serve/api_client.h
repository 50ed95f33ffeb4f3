// Calls to a Kubernetes API server: plain HTTP as `kubectl proxy` gives it, or TLS with a service
// account's token and the cluster's authority.
#ifndef PENSTOCK_SERVE_API_CLIENT_H_
#define PENSTOCK_SERVE_API_CLIENT_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "penstock/base/status.h"

namespace penstock {

struct ApiEndpoint {
  std::string url;         // http://HOST:PORT or https://HOST:PORT
  std::string ca_file;     // PEM; "" with https: the system's authorities
  std::string token_file;  // a bearer token, read again every minute; "" for none
  std::string client_certificate, client_key;  // PEM; both or none
};

// What a pod finds: KUBERNETES_SERVICE_HOST and _PORT, and the service account's files under
// `folder`. not_found says which is missing.
Result<ApiEndpoint> in_cluster_endpoint(
    const std::string& folder = "/var/run/secrets/kubernetes.io/serviceaccount");

struct ApiReply {
  int status = 0;  // of HTTP, whatever it says
  std::string body;
};

// Where a stop can be asked for from another thread. A stream that runs ends soon.
class StopFlag {
 public:
  void request() { stopped_.store(true); }
  bool requested() const { return stopped_.load(); }
  // Waits that long unless stopped; true if it is stopped.
  bool sleep_ms(std::uint64_t ms) const;

 private:
  std::atomic<bool> stopped_{false};
};

// Thread-safe.
class Api {
 public:
  virtual ~Api() = default;
  // `path` begins with / and is encoded already. io_error, deadline_exceeded when no answer came;
  // whether the server acted is then unknown.
  virtual Result<ApiReply> call(const std::string& method, const std::string& path,
                                const std::string& body = {},
                                const std::string& content_type = "application/json") = 0;
  // A GET whose body is handed over as it comes, if its status is 200, until on_data returns false;
  // another status comes back with the body. Ends with 200 when the server or on_data ends it, with
  // io_error when it breaks or is silent for idle_ms, with cancelled on a stop.
  virtual Result<ApiReply> stream(const std::string& path, std::uint64_t idle_ms,
                                  const StopFlag& stop,
                                  const std::function<bool(std::string_view)>& on_data) = 0;
};

struct ApiClientOptions {
  std::uint64_t connect_ms = 5000;
  std::uint64_t call_ms = 10000;                      // without any byte of an answer
  std::uint64_t list_bytes = std::uint64_t{2} << 30;  // most of an answer's body
};

// invalid_argument names what is wrong with the endpoint. Connects to nothing yet.
Result<std::unique_ptr<Api>> make_api_client(const ApiEndpoint& endpoint,
                                             const ApiClientOptions& options = {});

// For a path segment or a query's value.
std::string encode_url(std::string_view text);
// The `message` of a Kubernetes Status object, or the beginning of the body.
std::string api_message(const ApiReply& reply);

}  // namespace penstock
#endif
