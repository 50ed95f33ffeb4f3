#include "control.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

namespace penstock::bench {
namespace {

constexpr double kDeadlineNs = 60e9;
constexpr double kLeadNs = 700;  // from the last arrival to the common start

double clock_ns() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

}  // namespace

#ifdef __x86_64__
std::uint64_t ticks() {
  _mm_lfence();
  const std::uint64_t now = __rdtsc();
  _mm_lfence();
  return now;
}
double ticks_per_ns() {
  static const double rate = [] {
    const double began = clock_ns();
    const std::uint64_t first = ticks();
    while (clock_ns() - began < 2e7) {
    }
    return static_cast<double>(ticks() - first) / (clock_ns() - began);
  }();
  return rate;
}
void pause_cpu() { _mm_pause(); }
#else
std::uint64_t ticks() { return static_cast<std::uint64_t>(clock_ns()); }
double ticks_per_ns() { return 1; }
void pause_cpu() {}
#endif

const std::vector<int>& allowed_cpus() {
  static const std::vector<int> cpus = [] {
    std::vector<int> found;
    cpu_set_t set;
    CPU_ZERO(&set);
    ::sched_getaffinity(0, sizeof set, &set);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) found.push_back(cpu);
    }
    return found;
  }();
  return cpus;
}

namespace {
void set_affinity(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}
}  // namespace

void pin_to(int cpu) {
  allowed_cpus();
  set_affinity({cpu});
}
void unpin() { set_affinity(allowed_cpus()); }

Control::Control(const std::string& path, std::uint32_t rank, std::uint32_t size, bool has_helpers)
    : rank_(rank), size_(size), has_helpers_(has_helpers) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  void* const memory =
      file < 0 ? MAP_FAILED
               : ::mmap(nullptr, sizeof(ControlPage), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED || size > kMaxRanks) {
    std::fprintf(stderr, "bench: cannot map %s for %u ranks\n", path.c_str(), size);
    std::_Exit(2);
  }
  ::close(file);
  page_ = static_cast<ControlPage*>(memory);
}

template <typename Ready>
void Control::wait(const Ready& ready, const char* what) {
  const bool yields_at_once = oversubscribed();
  double began = 0;
  for (std::uint64_t turn = 0; !ready(); ++turn) {
    if (!yields_at_once && turn < (has_helpers_ ? 2000 : 20000)) {
      pause_cpu();
      continue;
    }
    if (has_helpers_) {
      ::usleep(20);
    } else {
      ::sched_yield();
    }
    if (turn % 1024 != 0) continue;
    if (began == 0) began = clock_ns();
    if (clock_ns() - began > kDeadlineNs) {
      std::fprintf(stderr, "bench: rank %u waited a minute for %s\n", rank_, what);
      std::_Exit(3);
    }
  }
}

std::uint64_t Control::meet(bool together) {
  ++turn_;
  page_->arrived[rank_].value.store(turn_, std::memory_order_release);
  if (rank_ == 0) {
    for (std::uint32_t peer = 1; peer < size_; ++peer) {
      wait([&] { return page_->arrived[peer].value.load(std::memory_order_acquire) >= turn_; },
           "the other ranks");
    }
    if (together) {
      const auto lead = static_cast<std::uint64_t>(kLeadNs * ticks_per_ns());
      page_->go.start.store(ticks() + lead, std::memory_order_relaxed);
    }
    page_->go.value.store(turn_, std::memory_order_release);
  } else {
    wait([&] { return page_->go.value.load(std::memory_order_acquire) >= turn_; }, "rank 0");
  }
  return together ? page_->go.start.load(std::memory_order_relaxed) : 0;
}

void Control::barrier() { meet(false); }

std::uint64_t Control::start_together() {
  if (oversubscribed() || has_helpers_) {
    meet(false);
    return ticks();
  }
  const std::uint64_t start = meet(true);
  std::uint64_t now = ticks();
  while (static_cast<std::int64_t>(start - now) > 0) now = ticks();
  // Who was kept off its CPU starts late, and that is not the library's fault.
  const auto late = static_cast<double>(now - start);
  return late > 100 * ticks_per_ns() ? now : start;
}

std::vector<double> Control::exchange(const std::vector<double>& mine) {
  barrier();
  std::copy(mine.begin(), mine.end(), page_->values[rank_].begin());
  barrier();
  std::vector<double> all;
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    const auto& values = page_->values[rank];
    all.insert(all.end(), values.begin(),
               values.begin() + static_cast<std::ptrdiff_t>(mine.size()));
  }
  return all;
}

double Control::max(double mine) {
  const std::vector<double> all = exchange({mine});
  return *std::max_element(all.begin(), all.end());
}

double Control::probe(bool pinned) {
  if (size_ < 2 || allowed_cpus().size() < 2) return 0;
  constexpr int kBatches = 8;
  constexpr int kTurns = 8;
  double best = 1e9;
  barrier();
  if (rank_ > 1) {
    ::usleep(200);
  } else {
    pin_to(allowed_cpus()[rank_]);
    auto& mine = page_->probe[rank_].value;
    auto& theirs = page_->probe[1 - rank_].value;
    for (int batch = 0; batch < kBatches; ++batch) {
      const std::uint64_t began = ticks();
      for (int turn = 0; turn < kTurns; ++turn) {
        ++probes_;
        if (rank_ == 0) mine.store(probes_, std::memory_order_release);
        // A pause would take longer than the line does.
        for (int spins = 0; theirs.load(std::memory_order_acquire) < probes_; ++spins) {
          if (spins == 100000) {
            wait([&] { return theirs.load(std::memory_order_acquire) >= probes_; }, "the probe");
            break;
          }
        }
        if (rank_ == 1) mine.store(probes_, std::memory_order_release);
      }
      const double ns = static_cast<double>(ticks() - began) / ticks_per_ns();
      best = std::min(best, ns / kTurns / 2);
    }
    if (!pinned) unpin();
  }
  return exchange({best})[0];
}

}  // namespace penstock::bench
