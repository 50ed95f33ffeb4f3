#include "penstock/serve/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <mutex>
#include <utility>

namespace penstock {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

// From 10 microseconds, a decision on a small table, to the 5 seconds that an extender is given.
const Histogram::BucketBoundaries kSeconds = {1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4,
                                              1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2,
                                              0.1,  0.25,   0.5,  1,    2.5,    5};

double seconds(std::uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

struct Metrics::State {
  prometheus::Registry registry;
  Family<Counter>& requests = prometheus::BuildCounter()
                                  .Name("penstock_http_requests_total")
                                  .Help("Requests by verb and HTTP status")
                                  .Register(registry);
  Family<Histogram>& request_seconds = prometheus::BuildHistogram()
                                           .Name("penstock_http_request_duration_seconds")
                                           .Help("From the first byte of a request to its answer")
                                           .Register(registry);
  Family<Counter>& decisions = prometheus::BuildCounter()
                                   .Name("penstock_decisions_total")
                                   .Help("Decisions by result")
                                   .Register(registry);
  Histogram& decision_seconds = prometheus::BuildHistogram()
                                    .Name("penstock_decision_duration_seconds")
                                    .Help("What a decision took")
                                    .Register(registry)
                                    .Add({}, kSeconds);
  Family<Counter>& bindings = prometheus::BuildCounter()
                                  .Name("penstock_bindings_total")
                                  .Help("Bindings by result")
                                  .Register(registry);
  Counter& conflicts = prometheus::BuildCounter()
                           .Name("penstock_conflicts_total")
                           .Help("Bindings refused because the pod or the object had changed")
                           .Register(registry)
                           .Add({});
  Counter& victims = prometheus::BuildCounter()
                         .Name("penstock_preemption_victims_total")
                         .Help("Pods deleted so that one of higher priority fits")
                         .Register(registry)
                         .Add({});
  Family<Counter>& restarts = prometheus::BuildCounter()
                                  .Name("penstock_watch_restarts_total")
                                  .Help("Watches that began again, by kind and reason")
                                  .Register(registry);
  std::mutex mutex;
  std::function<void()> refresh;
};

Metrics::Metrics() : state_(std::make_unique<State>()) {
  // They are there from the start, at 0.
  for (const char* result : {"placed", "unschedulable", "error"}) {
    state_->decisions.Add({{"result", result}});
  }
}

Metrics::~Metrics() = default;

void Metrics::request(const std::string& verb, int code, std::uint64_t ns) {
  state_->requests.Add({{"verb", verb}, {"code", std::to_string(code)}}).Increment();
  state_->request_seconds.Add({{"verb", verb}}, kSeconds).Observe(seconds(ns));
}

void Metrics::decision(const std::string& result, std::uint64_t ns) {
  state_->decisions.Add({{"result", result}}).Increment();
  state_->decision_seconds.Observe(seconds(ns));
}

void Metrics::binding(const std::string& result) {
  state_->bindings.Add({{"result", result}}).Increment();
  if (result == "conflict") conflict();
}

void Metrics::conflict() { state_->conflicts.Increment(); }

void Metrics::preempted() { state_->victims.Increment(); }

void Metrics::watch_restart(const std::string& kind, const std::string& reason) {
  state_->restarts.Add({{"kind", kind}, {"reason", reason}}).Increment();
}

void Metrics::gauge(const std::string& name, const std::string& help, double value) {
  // Registering a name again gives the family that is there.
  prometheus::BuildGauge().Name(name).Help(help).Register(state_->registry).Add({}).Set(value);
}

void Metrics::on_scrape(std::function<void()> refresh) {
  const std::lock_guard lock(state_->mutex);
  state_->refresh = std::move(refresh);
}

std::string Metrics::text() const {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->refresh) state_->refresh();
  }
  return prometheus::TextSerializer().Serialize(state_->registry.Collect());
}

}  // namespace penstock
