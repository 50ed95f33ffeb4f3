#include "penstock/base/trace.h"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "penstock/base/env.h"
#include "penstock/base/log.h"
#include "penstock/base/platform.h"

namespace penstock::trace {
namespace {

constexpr std::size_t kMaxThreads = 256;
constexpr std::uint64_t kMaxEvents = 100'000'000;

struct Event {
  std::uint64_t start_ns;
  std::uint64_t duration_ns;
  const char* name;
  std::uint64_t arg0;
  std::uint64_t arg1;
  Kind kind;
};
static_assert(sizeof(Event) == 48);

// Written by one thread; `used` is released after the event that it counts.
struct Buffer {
  explicit Buffer(std::uint64_t capacity_in)
      : capacity(capacity_in), events(new Event[capacity_in]) {}
  const std::uint64_t capacity;
  const std::unique_ptr<Event[]> events;  // not initialised: pages come as they are used
  std::atomic<std::uint64_t> used{0};
  std::atomic<std::uint64_t> dropped{0};
};

// What a process records. Never destroyed, so that a static destructor may still trace.
struct Recorder {
  std::mutex mutex;
  Config config;
  std::vector<std::shared_ptr<Buffer>> buffers;
  std::vector<std::string> reports;
  std::atomic<std::uint64_t> generation{1};       // of start(): tells a thread's buffer from an old
  std::atomic<std::uint64_t> dropped_threads{0};  // events of threads that got no buffer
  bool registered = false;                        // the handlers of exit and fork
};

Recorder& recorder() {
  static auto* const instance = new Recorder;
  return *instance;
}

struct ThreadState {
  std::uint64_t generation = 0;
  std::shared_ptr<Buffer> buffer;
};
thread_local ThreadState thread_state;
thread_local Times times_of_thread;

Buffer* buffer_of_thread() {
  Recorder& all = recorder();
  const std::uint64_t generation = all.generation.load(std::memory_order_acquire);
  if (thread_state.generation == generation) return thread_state.buffer.get();
  const std::lock_guard<std::mutex> lock(all.mutex);
  thread_state.generation = generation;
  thread_state.buffer.reset();
  if (all.buffers.size() < kMaxThreads) {
    thread_state.buffer = std::make_shared<Buffer>(all.config.max_events);
    all.buffers.push_back(thread_state.buffer);
  }
  return thread_state.buffer.get();
}

struct ArgumentNames {
  const char* kind;
  const char* first;  // null: none
  const char* second;
};
constexpr ArgumentNames kNames[kKinds] = {
    {"call", "bytes", "root"},      {"pass", "pass", "bytes"}, {"copy", "bytes", nullptr},
    {"reduce", "bytes", "sources"}, {"wait", "rank", "value"}, {"signal", "value", nullptr},
    {"put", "rank", "bytes"},       {"get", "rank", "bytes"},
};

// Microseconds with the nanoseconds behind the point.
std::string microseconds(std::uint64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

std::string event_line(std::uint32_t rank, std::size_t thread, const Event& event) {
  const ArgumentNames& names = kNames[static_cast<std::size_t>(event.kind)];
  std::string arguments;
  if (names.first != nullptr) arguments = fmt::format("\"{}\":{}", names.first, event.arg0);
  if (names.second != nullptr) arguments += fmt::format(",\"{}\":{}", names.second, event.arg1);
  return fmt::format(
      "{{\"pid\":{},\"tid\":{},\"ph\":\"X\",\"ts\":{},\"dur\":{},\"cat\":\"{}\",\"name\":\"{}\","
      "\"args\":{{{}}}}}",
      rank, thread, microseconds(event.start_ns), microseconds(event.duration_ns), names.kind,
      event.name, arguments);
}

Totals count(const Recorder& all) {
  Totals sum;
  for (const auto& buffer : all.buffers) {
    sum.events += buffer->used.load(std::memory_order_acquire);
    sum.dropped += buffer->dropped.load(std::memory_order_relaxed);
  }
  sum.dropped += all.dropped_threads.load(std::memory_order_relaxed);
  return sum;
}

// Slices in the order of their begin, the longer first, so that a reader nests them at once.
std::vector<Event> sorted_events(const Buffer& buffer) {
  const Event* first = buffer.events.get();
  std::vector<Event> events(first, first + buffer.used.load(std::memory_order_acquire));
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
    return a.duration_ns > b.duration_ns;
  });
  return events;
}

bool write_part(const Recorder& all, std::FILE* file) {
  const Config& config = all.config;
  const Totals sum = count(all);
  const std::uint32_t pid = Platform::host().self().pid;
  fmt::print(file,
             "{{\"otherData\":{{\"format\":\"penstock-trace-1\",\"rank\":{},\"size\":{},"
             "\"os_pid\":{},\"events\":{},\"dropped\":{}}},\"traceEvents\":[\n",
             config.rank, config.size, pid, sum.events, sum.dropped);
  fmt::print(file,
             "{{\"pid\":{0},\"ph\":\"M\",\"name\":\"process_name\","
             "\"args\":{{\"name\":\"rank {0} (pid {1})\"}}}},\n"
             "{{\"pid\":{0},\"ph\":\"M\",\"name\":\"process_sort_index\","
             "\"args\":{{\"sort_index\":{0}}}}}",
             config.rank, pid);
  for (std::size_t thread = 0; thread < all.buffers.size(); ++thread) {
    for (const Event& event : sorted_events(*all.buffers[thread])) {
      fmt::print(file, ",\n{}", event_line(config.rank, thread, event));
    }
  }
  fmt::print(file, "\n]}}\n");
  return std::ferror(file) == 0;
}

void at_exit() {
  if (Status status = flush(); !status.ok()) log::warn("{}", status.message());
}

// The mutex is held across a fork, so that no thread that is missing in the child holds it there.
void before_fork() { recorder().mutex.lock(); }
void in_parent() { recorder().mutex.unlock(); }
// What the parent recorded is the parent's to write.
void in_child() {
  detail::mode.store(0, std::memory_order_relaxed);
  recorder().mutex.unlock();
}

}  // namespace

namespace detail {

std::uint64_t now_ns() { return Platform::host().now_ns(); }

void end(Kind kind, const char* name, std::uint64_t arg0, std::uint64_t arg1,
         std::uint64_t start_ns) {
  const std::uint32_t on = mode.load(std::memory_order_relaxed);
  const std::uint64_t duration_ns = now_ns() - start_ns;
  if ((on & kTimes) != 0) {
    times_of_thread.ns[static_cast<std::size_t>(kind)] += duration_ns;
    ++times_of_thread.count[static_cast<std::size_t>(kind)];
    if (kind == Kind::wait && arg0 < kTimedRanks) {
      times_of_thread.waited_for_ns[arg0] += duration_ns;
    }
  }
  if ((on & kEvents) == 0) return;
  Buffer* const buffer = buffer_of_thread();
  if (buffer == nullptr) {
    recorder().dropped_threads.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const std::uint64_t used = buffer->used.load(std::memory_order_relaxed);
  if (used == buffer->capacity) {
    buffer->dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  buffer->events[used] = {start_ns, duration_ns, name, arg0, arg1, kind};
  buffer->used.store(used + 1, std::memory_order_release);
}

}  // namespace detail

const char* kind_name(Kind kind) {
  const auto index = static_cast<std::size_t>(kind);
  PENSTOCK_CHECK(index < kKinds, "no kind {}", index);
  return kNames[index].kind;
}

const Times& thread_times() { return times_of_thread; }

std::string part_name(const std::string& file, std::uint32_t rank, std::uint32_t size) {
  return size <= 1 ? file : fmt::format("{}.{}", file, rank);
}

Status start(const Config& config) {
  if (config.max_events < 1 || config.max_events > kMaxEvents) {
    return error(Code::invalid_argument, "trace: {} events per thread; 1 to {} are supported",
                 config.max_events, kMaxEvents);
  }
  Recorder& all = recorder();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.config = config;
  all.buffers.clear();
  all.reports.clear();
  all.dropped_threads.store(0, std::memory_order_relaxed);
  all.generation.fetch_add(1, std::memory_order_release);
  if (!all.registered) {
    all.registered = true;
    std::atexit(at_exit);
    ::pthread_atfork(before_fork, in_parent, in_child);
  }
  detail::mode.store(
      (config.file.empty() ? 0 : detail::kEvents) | (config.times ? detail::kTimes : 0),
      std::memory_order_relaxed);
  return {};
}

Status start_from_environment(std::uint32_t rank, std::uint32_t size) {
  const std::string file = env::text(env::Id::trace);
  const bool times = env::is_set(env::Id::stats);
  if (enabled() || (file.empty() && !times)) return {};
  Config config;
  config.file = file;
  config.times = times;
  config.reports = env::text(env::Id::stats);
  config.rank = rank;
  config.size = size;
  PENSTOCK_ASSIGN(config.max_events, env::number(env::Id::trace_events, 1, kMaxEvents));
  return start(config);
}

Status flush() {
  if ((detail::mode.load(std::memory_order_relaxed) & detail::kEvents) == 0) return {};
  Recorder& all = recorder();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const std::string name = part_name(all.config.file, all.config.rank, all.config.size);
  std::FILE* const file = std::fopen(name.c_str(), "w");
  if (file == nullptr) {
    return error(Code::io_error, "trace: cannot write {}: {}; PENSTOCK_TRACE names the file", name,
                 std::strerror(errno));
  }
  const bool written = write_part(all, file);
  if (std::fclose(file) != 0 || !written) {
    return error(Code::io_error, "trace: {} could not be written to its end: {}", name,
                 std::strerror(errno));
  }
  return {};
}

Status report(const std::string& json) {
  Recorder& all = recorder();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const Config& config = all.config;
  if (config.reports.empty() || all.reports.size() == kMaxReports) return {};
  const std::string head =
      fmt::format("{{\"rank\":{},\"size\":{},\"reports\":[\n", config.rank, config.size);
  if (config.reports == "1") {
    fmt::print(stderr, "{}{}\n]}}\n", head, json);
    return {};
  }
  all.reports.push_back(json);
  std::string text = head;
  for (const std::string& each : all.reports) {
    text += (&each == all.reports.data() ? "" : ",\n") + each;
  }
  text += "\n]}\n";
  const std::string name = part_name(config.reports, config.rank, config.size);
  std::FILE* const file = std::fopen(name.c_str(), "w");
  if (file == nullptr) {
    return error(Code::io_error, "statistics: cannot write {}: {}; PENSTOCK_STATS names the file",
                 name, std::strerror(errno));
  }
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !written) {
    return error(Code::io_error, "statistics: {} could not be written to its end", name);
  }
  return {};
}

Totals totals() {
  Recorder& all = recorder();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return count(all);
}

}  // namespace penstock::trace
