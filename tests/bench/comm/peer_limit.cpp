// The limit kernels as a library under test.
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>

#include "limit.h"
#include "rank_main.h"

namespace penstock::bench {
namespace {

std::byte* shared_memory(std::size_t bytes) {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::fprintf(stderr, "bench: no %zu bytes of shared memory\n", bytes);
    std::exit(2);
  }
  return static_cast<std::byte*>(memory);
}

int run(int argc, char** argv) {
  const RankOptions options = parse_rank_options(argc, argv);
  if (__builtin_cpu_supports("avx2") == 0) {
    std::fprintf(stderr, "bench: the limit kernels need AVX2\n");
    return 2;
  }
  const std::size_t bytes =
      std::max<std::size_t>((options.largest() + 4095) / 4096 * 4096, std::size_t{4} << 20);
  auto* const shared = reinterpret_cast<LimitShared*>(shared_memory(sizeof(LimitShared)));
  std::byte* const memory = shared_memory(bytes * 3 * options.ranks);
  const std::uint32_t rank = fork_ranks(options.ranks);
  const bool yields = options.ranks > allowed_cpus().size();
  LimitPeer peer(*shared, memory, bytes, rank, options.ranks, limit_loops(), yields);
  return run_rank(peer, options);
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) { return penstock::bench::run(argc, argv); }
