// Fused collectives between processes, against arithmetic that is written here.
#include "penstock/comm/fused.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "ranks.h"

namespace penstock::test {
namespace {

// An f32 between -2 and 2 with all its bits, the same for everybody.
float input(std::uint32_t rank, std::uint64_t index) {
  std::uint64_t z = (rank + 1) * 0x9e3779b97f4a7c15u + index * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 30)) * 0x94d049bb133111ebu;
  return static_cast<float>(static_cast<std::int32_t>(z >> 32)) * 0x1p-30f;
}

// Operations that round on their own.
float add(float a, float b) {
  const volatile float r = a + b;
  return r;
}
float multiply(float a, float b) {
  const volatile float r = a * b;
  return r;
}
float divide(float a, float b) {
  const volatile float r = a / b;
  return r;
}
std::uint16_t bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

std::vector<float> vector_of(std::uint32_t rank, std::uint64_t count) {
  std::vector<float> out(count);
  for (std::uint64_t i = 0; i < count; ++i) out[i] = input(rank, i);
  return out;
}

std::string differs(const char* what, std::uint64_t count, std::uint64_t at, double expected,
                    double got) {
  return fmt::format("{} of {}: element {} is {}, not {}", what, count, at, got, expected);
}

constexpr std::uint64_t kCounts[] = {0, 1, 63, 1000, 4096};

std::string check_conversion(Fused& fused, std::uint32_t ranks, std::uint32_t rank) {
  for (const std::uint64_t count : kCounts) {
    const std::vector<float> send = vector_of(rank, count);
    std::vector<std::uint16_t> recv(count + 1, 0xabcd);
    FusedCall call;
    call.send = send.data();
    call.recv = recv.data();
    call.count = count;
    call.out_type = PENSTOCK_BF16;
    if (const Status s = fused.all_reduce(call); !s.ok()) return s.to_string();
    for (std::uint64_t i = 0; i < count; ++i) {
      float sum = input(0, i);
      for (std::uint32_t r = 1; r < ranks; ++r) sum = add(sum, input(r, i));
      if (recv[i] != bf16(sum)) return differs("bf16", count, i, bf16(sum), recv[i]);
    }
    if (recv[count] != 0xabcd) return "written beyond the end";
  }
  return "";
}

// Members come and go: in round k rank (k mod ranks) is absent, and its vector is all NaN.
std::string check_average(Fused& fused, std::uint32_t ranks, std::uint32_t rank) {
  for (std::uint32_t round = 0; round < 4; ++round) {
    for (const std::uint64_t count : kCounts) {
      const auto weight = [&](std::uint32_t r) {
        return r == round % ranks && ranks > 1 ? 0.0f : static_cast<float>(r + 1) * 1.5f;
      };
      std::vector<float> send = vector_of(rank, count);
      if (weight(rank) == 0) send.assign(count, std::numeric_limits<float>::quiet_NaN());
      std::vector<float> recv(count);
      FusedCall call;
      call.send = send.data();
      call.recv = round % 2 == 0 ? recv.data() : send.data();  // in place in every other round
      call.count = count;
      call.redop = PENSTOCK_AVG;
      if (const Status s = fused.average(call, weight(rank)); !s.ok()) return s.to_string();
      const float* got = static_cast<const float*>(call.recv);
      for (std::uint64_t i = 0; i < count; ++i) {
        float sum = 0, total = 0;
        for (std::uint32_t r = 0; r < ranks; ++r) {
          if (weight(r) == 0) continue;
          const float product = multiply(input(r, i), weight(r));
          sum = total == 0 ? product : add(sum, product);
          total = add(total, weight(r));
        }
        const float average = multiply(sum, divide(1, total));
        if (got[i] != average) return differs("avg", count, i, average, got[i]);
      }
    }
  }
  return "";
}

std::string check_nobody_there(Fused& fused, Comm& comm) {
  std::vector<double> vector(10, 5.0);
  FusedCall call;
  call.send = call.recv = vector.data();
  call.count = vector.size();
  call.type = call.out_type = PENSTOCK_F64;
  call.redop = PENSTOCK_AVG;
  const Status refused = fused.average(call, 0);
  if (refused.code() != Code::invalid_argument) return "all absent: " + refused.to_string();
  if (vector[0] != 5) return "all absent, and the vector was written";
  if (const Status s = fused.average(call, comm.rank() + 1); !s.ok()) return s.to_string();
  if (vector[9] != 5) return fmt::format("the average of fives is {}", vector[9]);
  call.type = PENSTOCK_INT32;
  call.out_type = PENSTOCK_F32;
  call.scale = 0;
  const Status unsupported = fused.all_reduce(call);
  if (unsupported.code() != Code::unsupported) return "int32 to f32: " + unsupported.to_string();
  return comm.health().ok() ? "" : comm.health().to_string();
}

std::string check_outer_step(Fused& fused, std::uint32_t ranks, std::uint32_t rank) {
  const float rate = 0.7f, factor = 0.9f;
  for (const std::uint64_t count : kCounts) {
    std::vector<float> parameters = vector_of(100, count);
    std::vector<float> momentum(fused.shard(count));
    std::vector<float> want_p = parameters, want_m(count);
    for (std::uint32_t step = 0; step < 3; ++step) {
      const std::vector<float> deltas = vector_of(rank + 7 * step, count);
      OuterStepCall call;
      call.deltas = deltas.data();
      call.parameters = parameters.data();
      call.momentum = momentum.data();
      call.count = count;
      call.learning_rate = rate;
      call.momentum_factor = factor;
      if (const Status s = fused.outer_step(call); !s.ok()) return s.to_string();
      for (std::uint64_t i = 0; i < count; ++i) {
        float g = input(7 * step, i);
        for (std::uint32_t r = 1; r < ranks; ++r) g = add(g, input(r + 7 * step, i));
        g = multiply(g, divide(1, static_cast<float>(ranks)));
        want_m[i] = add(multiply(factor, want_m[i]), g);
        const float direction = add(multiply(factor, want_m[i]), g);
        want_p[i] = add(want_p[i], -multiply(rate, direction));
        if (parameters[i] != want_p[i])
          return differs("parameters", count, i, want_p[i], parameters[i]);
      }
    }
  }
  return "";
}

std::string check_blocks(Fused& fused, Comm& comm, std::uint32_t block) {
  const std::uint32_t ranks = comm.size();
  for (const std::uint64_t count : kCounts) {
    const std::vector<float> send = vector_of(comm.rank(), count);
    std::vector<float> recv(count + 1, 3);
    FusedCall call;
    call.send = send.data();
    call.recv = recv.data();
    call.count = count;
    call.block = block;
    if (const Status s = fused.all_reduce(call); !s.ok()) return s.to_string();
    // Inputs are below 2 and sums below 2 * ranks: each scale is at most the 127th part.
    const double step = (0.5 + 0x1p-15) / 127;
    const double bound = ranks * 2 * step + (2.0 * ranks + ranks * 2 * step) * step + 1e-5;
    for (std::uint64_t i = 0; i < count; ++i) {
      double sum = 0;
      for (std::uint32_t r = 0; r < ranks; ++r) sum += input(r, i);
      if (std::fabs(sum - recv[i]) > bound) return differs("blocks", count, i, sum, recv[i]);
    }
    if (recv[count] != 3) return "written beyond the end";
    // The same bits on every rank.
    std::vector<float> first = recv;
    Call broadcast;
    broadcast.collective = Collective::broadcast;
    broadcast.send = broadcast.recv = first.data();
    broadcast.count = first.size() * sizeof(float);
    if (const Status s = comm.run(broadcast); !s.ok()) return s.to_string();
    if (std::memcmp(first.data(), recv.data(), first.size() * sizeof(float)) != 0)
      return "another result than rank 0's";
  }
  return "";
}

class FusedRanksTest : public testing::TestWithParam<std::uint32_t> {};

TEST_P(FusedRanksTest, GivesTheDefinedResults) {
  const std::uint32_t ranks = GetParam();
  const ScopedPool pool(1);
  const std::string wrong = run_ranks(ranks, [&](std::uint32_t rank) -> std::string {
    auto member = join(pool.spec(), rank, ranks);
    if (!member.ok()) return member.status().to_string();
    Comm& comm = *member->comm;
    auto fused = Fused::create(comm);
    if (!fused.ok()) return fused.status().to_string();
    for (const std::string& found :
         {check_conversion(**fused, ranks, rank), check_average(**fused, ranks, rank),
          check_nobody_there(**fused, comm), check_outer_step(**fused, ranks, rank),
          check_blocks(**fused, comm, 32), check_blocks(**fused, comm, 64)})
      if (!found.empty()) return found;
    return "";
  });
  EXPECT_EQ(wrong, "");
}

INSTANTIATE_TEST_SUITE_P(Ranks, FusedRanksTest, testing::Values(1u, 2u, 3u, 9u));

}  // namespace
}  // namespace penstock::test
