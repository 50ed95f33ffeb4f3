// Pairwise averaging between processes: convergence, the mean, equal bits.
#include "penstock/comm/pairwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "ranks.h"

namespace penstock::test {
namespace {

// Starting values in [-1, 1), known to every rank.
float start_value(std::uint32_t rank, std::size_t i) {
  const auto mixed = static_cast<std::uint32_t>((rank * 7919 + i * 104729 + 17) * 2654435761u);
  return static_cast<float>(mixed >> 8) / 8388608.0f - 1.0f;
}

std::vector<float> start_vector(std::uint32_t rank, std::size_t count) {
  std::vector<float> vector(count);
  for (std::size_t i = 0; i < count; ++i) vector[i] = start_value(rank, i);
  return vector;
}

// The definition, on one process: what each rank must have after the rounds, bit for bit.
std::vector<std::vector<float>> model(std::uint32_t ranks, std::size_t count, std::uint64_t seed,
                                      std::uint64_t rounds,
                                      const std::vector<std::uint64_t>& absent) {
  std::vector<std::vector<float>> all(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) all[rank] = start_vector(rank, count);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const auto partners = pairwise_partners(seed, round, ranks, absent[round]);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const std::uint32_t other = partners[rank];
      if (other <= rank) continue;
      for (std::size_t i = 0; i < count; ++i) {
        const float average = (all[rank][i] + all[other][i]) * 0.5f;
        all[rank][i] = all[other][i] = average;
      }
    }
  }
  return all;
}

TEST(PairwiseAveraging, GivesTheBitsOfItsDefinition) {
  const std::uint32_t size = 5;
  const std::size_t count = 300'001;  // more than a chunk
  const std::uint64_t rounds = 6;
  const std::vector<std::uint64_t> absent = {0, 0b00010, 0, 0b10001, 0, 0b11110};
  const auto want = model(size, count, 42, rounds, absent);
  const ScopedPool pool(1);
  EXPECT_EQ("", run_ranks(size, [&](std::uint32_t rank) -> std::string {
              auto member = join(pool.spec(), rank, size);
              if (!member.ok()) return member.status().to_string();
              auto averaging = PairwiseAverage::make(*member->comm, 42);
              if (!averaging.ok()) return averaging.status().to_string();
              std::vector<float> mine = start_vector(rank, count);
              for (std::uint64_t round = 0; round < rounds; ++round) {
                if ((absent[round] >> rank & 1) != 0 && rank == 4) continue;  // need not call
                const Status status =
                    (*averaging)->run(round, mine.data(), count, PENSTOCK_F32, absent[round]);
                if (!status.ok()) return status.to_string();
              }
              if (std::memcmp(mine.data(), want[rank].data(), count * 4) != 0) return "other bits";
              return member->comm->run(Call()).message();
            }));
}

TEST(PairwiseAveraging, ConvergesToTheMeanWhichItKeeps) {
  const std::uint32_t size = 8;
  const std::size_t count = 1000;
  const std::uint64_t rounds = 40;
  std::vector<double> mean(count);
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    for (std::size_t i = 0; i < count; ++i) mean[i] += start_value(rank, i) / double{size};
  }
  const ScopedPool pool(1);
  EXPECT_EQ("", run_ranks(size, [&](std::uint32_t rank) -> std::string {
              auto member = join(pool.spec(), rank, size);
              if (!member.ok()) return member.status().to_string();
              auto averaging = PairwiseAverage::make(*member->comm, 3);
              if (!averaging.ok()) return averaging.status().to_string();
              std::vector<float> mine = start_vector(rank, count);
              for (std::uint64_t round = 0; round < rounds; ++round) {
                const Status status = (*averaging)->run(round, mine.data(), count, PENSTOCK_F32);
                if (!status.ok()) return status.to_string();
              }
              // Values are below 1; an addition rounds by at most 2^-24 of a sum below 2, halving
              // does not round, and a rank's value has gone through `rounds` of them.
              const double rounding = static_cast<double>(rounds) * std::ldexp(1, -24);
              // 40 rounds bring the distance from the mean down by about 2^-20 on the average.
              const double distance = std::ldexp(1, -10);
              for (std::size_t i = 0; i < count; ++i) {
                if (std::abs(mine[i] - mean[i]) > rounding + distance) {
                  return fmt::format("element {} is {}, the mean {}", i, mine[i], mean[i]);
                }
              }
              // The mean of all, over all ranks, is what it was.
              std::vector<double> wide(mine.begin(), mine.end());
              Call call;
              call.collective = Collective::all_reduce;
              call.send = call.recv = wide.data();
              call.count = count;
              call.type = PENSTOCK_F64;
              call.redop = PENSTOCK_AVG;
              if (Status status = member->comm->run(call); !status.ok()) return status.to_string();
              for (std::size_t i = 0; i < count; ++i) {
                if (std::abs(wide[i] - mean[i]) > rounding) {
                  return fmt::format("mean {} became {}", mean[i], wide[i]);
                }
              }
              return "";
            }));
}

TEST(PairwiseAveraging, RefusesWhatMakesNoSense) {
  const ScopedPool pool(1);
  EXPECT_EQ("", run_ranks(1, [&](std::uint32_t) -> std::string {
              auto member = join(pool.spec(), 0, 1);
              if (!member.ok()) return member.status().to_string();
              auto averaging = PairwiseAverage::make(*member->comm, 1);
              float one = 1;
              if ((*averaging)->run(0, &one, 1, 12).code() != Code::invalid_argument) return "type";
              if ((*averaging)->run(0, nullptr, 1, PENSTOCK_F32).code() != Code::invalid_argument) {
                return "null";
              }
              // Alone: nothing happens.
              return (*averaging)->run(0, &one, 1, PENSTOCK_F32).message() +
                     (one == 1 ? "" : "changed");
            }));
}

}  // namespace
}  // namespace penstock::test
