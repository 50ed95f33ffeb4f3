// Windows: put, get, signals and published blocks between caches that know nothing of each other.
#include <cstring>

#include "penstock/comm/window.h"
#include "penstock/sim/incoherent/exercise.h"

namespace penstock::sim {
namespace {

CommWindowConfig draw_window(Run& run, std::uint64_t what) {
  const std::uint64_t chance = run.value(4000 + what, 0, 0);
  CommWindowConfig config;
  config.signals = 2;
  config.bytes = 64 * (1 + chance % 60);
  config.timeout_ms = 3000;
  return config;
}

// Round after round, every rank puts into its right neighbour's part, which looks at it, and may be
// written again once it has said so.
Status pass_round(Run& run, Pool& pool, CommWindow& window, std::uint64_t rounds, Random& own) {
  const std::uint32_t size = window.size();
  const std::uint32_t right = (window.rank() + 1) % size;
  const std::uint32_t left = (window.rank() + size - 1) % size;
  std::vector<std::byte> got(window.bytes(window.rank()));
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    const auto draw = [&](std::uint32_t writer, std::uint64_t limit) {
      return std::pair(run.value(round, writer, 1) % (limit / 64) * 64,
                       run.value(round, writer, 2) % limit);
    };
    auto [offset, bytes] = draw(window.rank(), window.bytes(right));
    bytes = std::min(bytes, window.bytes(right) - offset);
    std::vector<std::byte> data(bytes);
    for (std::uint64_t i = 0; i < bytes; ++i) {
      data[i] = static_cast<std::byte>(run.value(round * 1000, window.rank(), i));
    }
    PENSTOCK_TRY(window.put(right, offset, data.data(), bytes));
    PENSTOCK_TRY(window.signal(right, 0, round));
    PENSTOCK_TRY(window.wait_signal(left, 0, round));
    auto [at, length] = draw(left, window.bytes(window.rank()));
    length = std::min(length, window.bytes(window.rank()) - at);
    if (own.chance(2)) {
      PENSTOCK_TRY(window.get(window.rank(), at, got.data(), length));
    } else {
      PENSTOCK_TRY(window.observe(at, length));
      std::memcpy(got.data(), window.data() + at, length);
    }
    for (std::uint64_t i = 0; i < length; ++i) {
      const auto right_byte = static_cast<std::byte>(run.value(round * 1000, left, i));
      if (got[i] == right_byte) continue;
      return error(Code::internal, "round {}: byte {} of {} at {} is not what rank {} put", round,
                   i, length, at, left);
    }
    PENSTOCK_TRY(window.signal(left, 1, round));
    PENSTOCK_TRY(window.wait_signal(right, 1, round));
    if (own.chance(4)) pool.platform().yield();
  }
  return Status();
}

// Ranks spawn, make a comm and do this; what they leave is taken back.
using Body = std::function<Status(Pool& pool, Comm& comm, std::uint32_t rank)>;
Outcome run_ranks(Run& run, const Body& body) {
  run.make_world(4);  // a comm takes what it finds in a small pool
  for (std::uint32_t rank = 0; rank < run.ranks() && !run.failed(); ++rank) {
    run.spawn_rank(rank, [&run, rank, &body](Pool& pool) -> Status {
      PENSTOCK_ASSIGN(const auto comm, Comm::join(pool, draw_comm(run, rank, "world")));
      return body(pool, *comm, rank);
    });
  }
  run.run();
  // A region of a host whose rank left before others stays until that host makes another window,
  // or its process has ended.
  run.reclaim();
  run.check_and_destroy();
  return run.finish();
}

Outcome window_put(const Options& options) {
  Run run("window_put", options);
  run.limit_ranks(2, 5);
  const std::uint32_t windows = 1 + run.random().below(3);
  const std::uint32_t rounds = 1 + run.random().below(6);
  return run_ranks(run, [&](Pool& pool, Comm& comm, std::uint32_t rank) -> Status {
    Random own(run.value(4500, rank, 0));
    for (std::uint32_t w = 0; w < windows; ++w) {
      PENSTOCK_ASSIGN(const auto window, CommWindow::make(pool, comm, draw_window(run, w)));
      PENSTOCK_TRY(pass_round(run, pool, *window, rounds, own));
    }
    return Status();
  });
}

// One rank writes its block over and over; the others must never get one that is not whole, nor one
// that is older than what they had.
Outcome window_blocks(const Options& options) {
  Run run("window_blocks", options);
  run.limit_ranks(2, 5);
  const std::uint64_t versions = 2 + run.random().below(12);
  CommWindowConfig config = draw_window(run, 9);
  config.blocks = 1 + run.random().below(2);
  config.block_bytes = 8 * (1 + run.random().below(60));
  config.block_copies = 1 + run.random().below(3);
  const std::uint32_t slot = config.blocks - 1;
  return run_ranks(run, [&](Pool& pool, Comm& comm, std::uint32_t rank) -> Status {
    Random own(run.value(4600, rank, 0));
    PENSTOCK_ASSIGN(const auto window, CommWindow::make(pool, comm, config));
    std::vector<std::uint64_t> words(config.block_bytes / 8);
    std::uint64_t seen = 0;
    for (std::uint64_t version = 1; rank == 0 && version <= versions; ++version) {
      for (std::uint64_t i = 0; i < words.size(); ++i) words[i] = run.value(version, 77, i);
      PENSTOCK_TRY(window->publish_block(slot, 5, words.data(), config.block_bytes).status());
      if (own.chance(3)) pool.platform().yield();
    }
    while (rank != 0 && seen < versions) {
      PENSTOCK_ASSIGN(const BlockInfo info,
                      window->fetch_block(0, slot, seen, words.data(), config.block_bytes));
      if (info.version < seen || info.key != 5) {
        return error(Code::internal, "version {} with key {} after version {}", info.version,
                     info.key, seen);
      }
      seen = info.version;
      for (std::uint64_t i = 0; i < words.size(); ++i) {
        if (words[i] == run.value(seen, 77, i)) continue;
        return error(Code::internal, "word {} of {} is not version {}'s", i, words.size(), seen);
      }
    }
    return comm.run(Call());
  });
}

}  // namespace

std::vector<Scenario> window_scenarios() {
  return {
      {"window_put", "puts and signals go round; windows come and go", window_put},
      {"window_blocks", "a block is rewritten while others fetch it", window_blocks},
  };
}

}  // namespace penstock::sim
