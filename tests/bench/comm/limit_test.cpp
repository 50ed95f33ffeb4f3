// Every kernel of the limit gives right results: all collectives, types, variants, sizes around
// lines and shards, several calls one after another.
#include "limit.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "control.h"

namespace penstock::bench {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{6} << 20;
constexpr int kCalls = 18;  // slots of small payloads are reused after 16

void* shared_memory(std::size_t bytes) {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

std::string control_file() {
  char path[] = "/tmp/limit-test-XXXXXX";
  const int file = ::mkstemp(path);
  EXPECT_GE(file, 0);
  EXPECT_EQ(::ftruncate(file, 16384), 0);
  ::close(file);
  return path;
}

// The first wrong one is named on standard error.
bool try_problem(LimitPeer& peer, Control& control, const Problem& problem, int calls) {
  void* const send = peer.allocate(Buffer::send, 0);
  void* const recv = peer.allocate(Buffer::recv, 0);
  const std::vector<std::string> variants = peer.prepare(problem, send, recv);
  for (std::size_t variant = 0; variant < variants.size(); ++variant) {
    control.barrier();
    peer.select(variant);
    for (int call = 0; call < calls; ++call) {
      fill(problem, peer.rank(), send, recv);
      control.barrier();
      peer.run();
      const bool right = is_right(problem, peer.rank(), recv);
      if (control.max(right ? 0 : 1) == 0) continue;
      if (!right) {
        std::fprintf(stderr, "rank %u: %s %s count %llu %s, call %d\n", peer.rank(),
                     collective_name(problem.collective), type_name(problem.type),
                     static_cast<unsigned long long>(problem.count), variants[variant].c_str(),
                     call);
      }
      return false;
    }
  }
  return !variants.empty();
}

bool try_all(LimitPeer& peer, Control& control) {
  for (int collective = 0; collective < static_cast<int>(Collective::count); ++collective) {
    for (const Type type : {Type::f32, Type::bf16, Type::int8}) {
      for (const std::uint64_t bytes : {4u, 60u, 250u, 1000u, 1796u, 9000u, 70000u}) {
        const Problem problem =
            Problem::make(static_cast<Collective>(collective), type, peer.size(), bytes);
        if (!try_problem(peer, control, problem, bytes == 60 ? kCalls : 3)) return false;
      }
    }
    const Problem large = Problem::make(static_cast<Collective>(collective), Type::f32, peer.size(),
                                        std::uint64_t{5} << 20);
    if (!try_problem(peer, control, large, 1)) return false;
  }
  return true;
}

class Limit : public testing::TestWithParam<std::pair<std::uint32_t, const LimitLoops*>> {};

TEST_P(Limit, EveryKernelIsRight) {
  const auto [ranks, loops] = GetParam();
  if (__builtin_cpu_supports("avx2") == 0 ||
      (loops == &kAvx512Loops && &limit_loops() != &kAvx512Loops)) {
    GTEST_SKIP() << "this processor has no " << loops->name;
  }
  auto* const shared = static_cast<LimitShared*>(shared_memory(sizeof(LimitShared)));
  auto* const memory = static_cast<std::byte*>(shared_memory(kBufferBytes * 3 * ranks));
  ASSERT_NE(shared, nullptr);
  ASSERT_NE(memory, nullptr);
  const std::string path = control_file();
  std::vector<pid_t> children;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Control control(path, rank, ranks, true);
      LimitPeer peer(*shared, memory, kBufferBytes, rank, ranks, *loops, true);
      std::_Exit(try_all(peer, control) ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  ::unlink(path.c_str());
  ::munmap(shared, sizeof(LimitShared));
  ::munmap(memory, kBufferBytes * 3 * ranks);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Limit,
                         testing::Values(std::pair(1u, &kAvx2Loops), std::pair(2u, &kAvx512Loops),
                                         std::pair(3u, &kAvx2Loops), std::pair(4u, &kAvx512Loops)),
                         [](const auto& test) {
                           return std::string(test.param.second->name) + "_" +
                                  std::to_string(test.param.first);
                         });

}  // namespace
}  // namespace penstock::bench
