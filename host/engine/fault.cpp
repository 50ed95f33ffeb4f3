#include "penstock/engine/fault.h"

#include <atomic>
#include <charconv>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace penstock {
namespace {

constexpr std::uint64_t kNsPerUs = 1000;

// splitmix64 (Steele, Lea, Flood 2014), as a hash of the seed and a number.
std::uint64_t draw(std::uint64_t seed, std::uint64_t number) {
  std::uint64_t z = seed + number * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

bool parse_number(const std::string& text, std::uint64_t* out) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return code == std::errc() && end == text.data() + text.size();
}

Status parse_part(const std::string& part, FaultPlan* plan) {
  const std::size_t equals = part.find('=');
  const std::string key = part.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : part.substr(equals + 1);
  const auto wrong = [&] {
    return error(Code::invalid_argument,
                 "fault plan: \"{}\"; a part is fail=NUMBER:STATUS, fail_per_million=0..1000000, "
                 "stall=NUMBER, lost=NUMBER, delay_us=N, delay_random_us=N (up to 10^9) or seed=N",
                 part);
  };
  if (key == "fail") {
    const std::size_t colon = value.find(':');
    std::uint64_t number = 0;
    if (colon == std::string::npos || !parse_number(value.substr(0, colon), &number) || number == 0)
      return wrong();
    for (std::uint32_t status = 1; status < PENSTOCK_STATUS_COUNT; ++status) {
      if (value.substr(colon + 1) != penstock_status_name(status)) continue;
      plan->fail[number] = status;
      return {};
    }
    return wrong();
  }
  std::uint64_t number = 0;
  if (!parse_number(value, &number)) return wrong();
  if (key == "seed") {
    plan->seed = number;
  } else if (key == "stall") {
    plan->stall = number;
  } else if (key == "lost") {
    plan->lost = number;
  } else if (key == "fail_per_million" && number <= 1'000'000) {
    plan->fail_per_million = static_cast<std::uint32_t>(number);
  } else if (key == "delay_us" && number <= 1'000'000'000) {
    plan->delay_ns = number * kNsPerUs;
  } else if (key == "delay_random_us" && number <= 1'000'000'000) {
    plan->delay_random_ns = number * kNsPerUs;
  } else {
    return wrong();
  }
  return {};
}

class FaultEngine final : public Engine {
 public:
  FaultEngine(std::shared_ptr<Engine> inner, const FaultPlan& plan)
      : inner_(std::move(inner)), plan_(plan), capabilities_(inner_->capabilities()) {
    capabilities_.name = "fault:" + capabilities_.name;
    capabilities_.description = "injected faults over " + capabilities_.description;
    capabilities_.synchronous = false;
  }

  const Capabilities& capabilities() const override { return capabilities_; }
  Status accepts(const penstock_descriptor& descriptor) const override {
    if (lost_.load(std::memory_order_relaxed))
      return error(Code::io_error, "{}: it is lost, as planned", capabilities_.name);
    return inner_->accepts(descriptor);
  }
  std::uint32_t advance(Queue& queue) override;
  bool reaches_device_memory(const void* data) const override {
    return inner_->reaches_device_memory(data);
  }
  std::uint64_t busy_cycles() override { return inner_->busy_cycles(); }

 private:
  // The descriptor at a queue's front.
  struct Current {
    std::uint64_t number = 0;
    std::uint64_t not_before_ns = 0;
    std::unique_ptr<Queue> inner;  // once the inner engine has it
  };
  enum class Progress { completed, blocked };

  Current begin(Queue& queue);
  Progress step(Queue& queue, Current& current);
  std::uint32_t planned_status(std::uint64_t number) const;

  static std::uint64_t now_ns(const Queue& queue) {
    return (queue.pool() != nullptr ? queue.pool()->platform() : Platform::host()).now_ns();
  }

  const std::shared_ptr<Engine> inner_;
  const FaultPlan plan_;
  Capabilities capabilities_;
  std::atomic<bool> lost_{false};
  std::mutex mutex_;  // guards the two below; a Current is its queue's thread's alone
  std::uint64_t seen_ = 0;
  std::unordered_map<const Queue*, Current> current_;
};

std::uint32_t FaultEngine::planned_status(std::uint64_t number) const {
  if (const auto planned = plan_.fail.find(number); planned != plan_.fail.end())
    return planned->second;
  return draw(plan_.seed, number) % 1'000'000 < plan_.fail_per_million ? PENSTOCK_IO_ERROR
                                                                       : PENSTOCK_OK;
}

FaultEngine::Current FaultEngine::begin(Queue& queue) {
  Current current;
  current.number = ++seen_;
  std::uint64_t delay = plan_.delay_ns;
  if (plan_.delay_random_ns != 0)
    delay += draw(~plan_.seed, current.number) % (plan_.delay_random_ns + 1);
  if (delay != 0) current.not_before_ns = now_ns(queue) + delay;
  return current;
}

FaultEngine::Progress FaultEngine::step(Queue& queue, Current& current) {
  if (current.inner == nullptr) {
    if (queue.cancelled()) {
      queue.complete(PENSTOCK_CANCELLED);
      return Progress::completed;
    }
    if (current.number == plan_.stall) return Progress::blocked;
    if (current.not_before_ns != 0 && now_ns(queue) < current.not_before_ns)
      return Progress::blocked;
    if (plan_.lost != 0 && current.number >= plan_.lost) {
      lost_.store(true, std::memory_order_relaxed);
      queue.complete(PENSTOCK_IO_ERROR);
      return Progress::completed;
    }
    if (const std::uint32_t status = planned_status(current.number); status != PENSTOCK_OK) {
      queue.complete(status);
      return Progress::completed;
    }
    QueueConfig config = queue.config();
    config.depth = 2;
    Result<std::unique_ptr<Queue>> inner = Queue::create(queue.pool(), config);
    if (!inner.ok() || !inner.value()->submit(*queue.front())) {
      queue.complete(PENSTOCK_INTERNAL);
      return Progress::completed;
    }
    current.inner = std::move(inner).value();
  }
  if (queue.cancelled()) current.inner->cancel();
  inner_->advance(*current.inner);
  penstock_completion completion;
  if (!current.inner->poll(&completion)) return Progress::blocked;
  queue.complete(completion.status, completion.field, completion.detail);
  return Progress::completed;
}

std::uint32_t FaultEngine::advance(Queue& queue) {
  std::uint32_t completions = 0;
  while (queue.front() != nullptr) {
    Current* current = nullptr;
    {
      const std::lock_guard lock(mutex_);
      const auto [entry, is_new] = current_.try_emplace(&queue);
      if (is_new) entry->second = begin(queue);
      current = &entry->second;  // stays where it is when others come and go
    }
    if (step(queue, *current) == Progress::blocked) break;
    ++completions;
    const std::lock_guard lock(mutex_);
    current_.erase(&queue);
  }
  return completions;
}

}  // namespace

Result<FaultPlan> FaultPlan::parse(const std::string& text) {
  FaultPlan plan;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find(';', start), text.size());
    PENSTOCK_TRY(parse_part(text.substr(start, end - start), &plan));
    start = end + 1;
  }
  return plan;
}

std::shared_ptr<Engine> make_fault_engine(std::shared_ptr<Engine> inner, const FaultPlan& plan) {
  return std::make_shared<FaultEngine>(std::move(inner), plan);
}

Result<std::shared_ptr<Engine>> make_fault_engine(const std::string& text) {
  const std::size_t end = std::min(text.find(';'), text.size());
  if (end == 0)
    return error(Code::invalid_argument,
                 "engine fault: name the engine to decorate, such as fault:scalar;fail=3:io_error");
  PENSTOCK_ASSIGN(const FaultPlan plan,
                  FaultPlan::parse(end < text.size() ? text.substr(end + 1) : std::string()));
  PENSTOCK_ASSIGN(std::shared_ptr<Engine> inner, make_engine(text.substr(0, end)));
  return make_fault_engine(std::move(inner), plan);
}

}  // namespace penstock
