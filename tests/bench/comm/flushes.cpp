// Counts the cache lines that Penstock writes back and invalidates per call under software
// coherence, beside the least that the collective needs (least_lines.h).
//
//   flushes RANKS COLLECTIVE,... BYTES,...     one JSON object a line for each
//
// Buffers are in the pool. A rank that waits looks at the same line again and again, as often as it
// has to wait; only the first look counts, the others are `polls`.
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>

#include "control.h"
#include "least_lines.h"
#include "penstock/base/forwarding_platform_test.h"
#include "penstock/comm/comm.h"
#include "rank_main.h"

namespace penstock::bench {
namespace {

constexpr int kCalls = 8;

class CountingPlatform final : public ForwardingPlatform {
 public:
  struct Counters {
    std::uint64_t written_back = 0;
    std::uint64_t invalidated = 0;
    std::uint64_t polls = 0;
  };

  void write_back(const void* data, std::size_t bytes) override {
    counters.written_back += lines_of(data, bytes);
    ForwardingPlatform::write_back(data, bytes);
  }
  void invalidate(const void* data, std::size_t bytes) override {
    const std::uint64_t lines = lines_of(data, bytes);
    const auto line = reinterpret_cast<std::uintptr_t>(data) / 64;
    const bool again = std::find(recent_.begin(), recent_.end(), line) != recent_.end();
    if (lines == 1 && again) {
      ++counters.polls;
    } else {
      counters.invalidated += lines;
      if (lines == 1) recent_[next_++ % recent_.size()] = line;
    }
    ForwardingPlatform::invalidate(data, bytes);
  }
  void begin_call() { recent_.fill(0); }

  Counters counters;

 private:
  static std::uint64_t lines_of(const void* data, std::size_t bytes) {
    const auto at = reinterpret_cast<std::uintptr_t>(data);
    return bytes == 0 ? 0 : (at + bytes - 1) / 64 - at / 64 + 1;
  }
  std::array<std::uintptr_t, 64> recent_{};
  std::size_t next_ = 0;
};

[[noreturn]] void give_up(const Status& status) {
  std::fprintf(stderr, "flushes: %s\n", status.message().c_str());
  std::_Exit(2);
}
template <typename T>
T value_of(Result<T> result) {
  if (!result.ok()) give_up(result.status());
  return std::move(result).value();
}

penstock::Collective library_collective(Collective collective) {
  constexpr std::array kSame = {
      penstock::Collective::all_reduce,     penstock::Collective::broadcast,
      penstock::Collective::reduce,         penstock::Collective::all_gather,
      penstock::Collective::reduce_scatter, penstock::Collective::all_to_all,
      penstock::Collective::gather,         penstock::Collective::scatter,
      penstock::Collective::send_recv,      penstock::Collective::barrier};
  return kSame.at(static_cast<std::size_t>(collective));
}

struct Job {
  std::uint32_t ranks = 2;
  std::vector<Collective> collectives;
  std::vector<std::uint64_t> sizes;
  std::string pool;
  std::string control;
};

class Counter {
 public:
  Counter(const Job& job, std::uint32_t rank)
      : job_(job), rank_(rank), control_(job.control, rank, job.ranks, false) {
    MapOptions options;
    options.coherence = Coherence::software;
    pool_ = value_of(Pool::map(platform_, job.pool, options));
    CommConfig config;
    config.name = "flushes";
    config.rank = rank;
    config.size = job.ranks;
    comm_ = value_of(Comm::join(*pool_, config));
    const std::uint64_t bytes = *std::max_element(job.sizes.begin(), job.sizes.end()) + 4096;
    send_ = allocate(bytes);
    recv_ = allocate(bytes);
  }

  void count(const Problem& problem, std::uint64_t bytes) {
    fill(problem, rank_, send_, recv_);
    call(problem);
    if (!is_right(problem, rank_, recv_)) {
      give_up(error(Code::internal, "rank {}: the result of {} is wrong", rank_,
                    collective_name(problem.collective)));
    }
    call(problem);
    const CountingPlatform::Counters before = platform_.counters;
    for (int i = 0; i < kCalls; ++i) call(problem);
    const CountingPlatform::Counters& after = platform_.counters;
    const auto per_call = [](std::uint64_t a, std::uint64_t b) {
      return static_cast<double>(b - a) / kCalls;
    };
    const std::vector<double> all = control_.exchange(
        {per_call(before.written_back, after.written_back),
         per_call(before.invalidated, after.invalidated), per_call(before.polls, after.polls)});
    if (rank_ != 0) return;
    std::array<double, 3> sum{};
    for (std::size_t at = 0; at < all.size(); ++at) sum[at % 3] += all[at];
    const LeastLines least = least_lines(problem);
    fmt::print(R"({{"collective": "{}", "ranks": {}, "bytes": {}, "written_back": {:.2f}, )"
               R"("invalidated": {:.2f}, "polls": {:.2f}, "least_written_back": {}, )"
               R"("least_invalidated": {}}})"
               "\n",
               collective_name(problem.collective), problem.ranks, bytes, sum[0], sum[1], sum[2],
               least.written_back, least.invalidated);
  }

 private:
  void* allocate(std::uint64_t bytes) {
    const Region region = value_of(pool_->allocate({"", RegionKind::user, bytes, -1, false}));
    return pool_->resolve(region.address, bytes);
  }

  void call(const Problem& problem) {
    constexpr std::array<std::uint32_t, 3> kTypes = {PENSTOCK_F32, PENSTOCK_BF16, PENSTOCK_INT8};
    control_.barrier();
    platform_.begin_call();
    Call call;
    call.collective = library_collective(problem.collective);
    call.send = problem.collective == Collective::broadcast ? recv_ : send_;
    call.recv = recv_;
    call.count = problem.count;
    call.type = kTypes[static_cast<std::size_t>(problem.type)];
    if (problem.collective == Collective::send_recv) {
      call.sender = rank_ % 2 == 0;
      call.root = rank_ ^ 1;
      if (call.root >= problem.ranks) return;
    }
    const Status status = comm_->run(call);
    if (!status.ok()) give_up(status);
  }

  const Job& job_;
  const std::uint32_t rank_;
  Control control_;
  CountingPlatform platform_;
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<Comm> comm_;
  void* send_ = nullptr;
  void* recv_ = nullptr;
};

Job g_job;

void clean_up() {
  (void)Pool::destroy(Platform::host(), g_job.pool, true);
  ::unlink(g_job.control.c_str());
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
  return words;
}

int run(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: flushes RANKS COLLECTIVE,... BYTES,...\n");
    return 2;
  }
  g_job.ranks = static_cast<std::uint32_t>(std::strtoul(argv[1], nullptr, 10));
  for (const std::string& word : words_of(argv[2])) {
    const auto collective = parse_collective(word);
    if (collective) g_job.collectives.push_back(*collective);
  }
  for (const std::string& word : words_of(argv[3])) {
    g_job.sizes.push_back(std::strtoull(word.c_str(), nullptr, 10));
  }
  if (g_job.ranks < 1 || g_job.ranks > kMaxRanks || g_job.sizes.empty()) {
    std::fprintf(stderr, "flushes: RANKS is 1..%u, and there is at least one size\n", kMaxRanks);
    return 2;
  }
  g_job.pool = fmt::format("/dev/shm/penstock-bench-flushes-{}", ::getpid());
  g_job.control = g_job.pool + ".control";
  const int file = ::open(g_job.control.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0 || ::ftruncate(file, 16384) != 0) {
    std::fprintf(stderr, "flushes: cannot make %s\n", g_job.control.c_str());
    return 2;
  }
  PoolConfig config;
  config.spec = g_job.pool;
  const std::uint64_t most = *std::max_element(g_job.sizes.begin(), g_job.sizes.end());
  config.bytes_per_device =
      (std::uint64_t{64} << 20) + g_job.ranks * 2 * (most + (std::uint64_t{4} << 20));
  const Status made = Pool::create(Platform::host(), config);
  if (!made.ok()) {
    ::unlink(g_job.control.c_str());
    give_up(made);
  }
  const std::uint32_t rank = fork_ranks(g_job.ranks, clean_up);
  Counter counter(g_job, rank);
  for (const Collective collective : g_job.collectives) {
    for (const std::uint64_t bytes : g_job.sizes) {
      if (collective == Collective::barrier && bytes != g_job.sizes[0]) continue;
      counter.count(Problem::make(collective, Type::f32, g_job.ranks, bytes), bytes);
    }
  }
  return 0;
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) { return penstock::bench::run(argc, argv); }
