// What a live front end counts, in Prometheus' text form.
#ifndef PENSTOCK_SERVE_METRICS_H_
#define PENSTOCK_SERVE_METRICS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace penstock {

// Thread-safe. Names begin with penstock_; times are in seconds.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // penstock_http_requests_total{verb,code}, penstock_http_request_duration_seconds{verb}.
  void request(const std::string& verb, int code, std::uint64_t ns);
  // penstock_decisions_total{result}: "placed", "unschedulable", "error";
  // penstock_decision_duration_seconds.
  void decision(const std::string& result, std::uint64_t ns);
  // penstock_bindings_total{result}: "bound", "conflict", "gone", "failed".
  void binding(const std::string& result);
  // penstock_conflicts_total: bindings that the API server refused because somebody was faster.
  void conflict();
  // penstock_preemption_victims_total.
  void preempted();
  // penstock_watch_restarts_total{kind,reason}.
  void watch_restart(const std::string& kind, const std::string& reason);
  // Any gauge, by its full name; its value as of the last call.
  void gauge(const std::string& name, const std::string& help, double value);

  // Called before each text() to set gauges.
  void on_scrape(std::function<void()> refresh);
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock
#endif
