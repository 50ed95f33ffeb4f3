#include <gtest/gtest.h>

#include <vector>

#include "ranks.h"

namespace penstock::test {
namespace {

// More than 2^31 elements, in place, so that two ranks need 4.4 GB together.
TEST(Large, CountsBeyondTwoToTheThirtyOne) {
  const ScopedPool pool(1);
  EXPECT_EQ("", run_ranks(
                    2,
                    [&](std::uint32_t rank) -> std::string {
                      auto member = join(pool.spec(), rank, 2, "test", Coherence::hardware, 120000);
                      if (!member.ok()) return member.status().to_string();
                      const std::uint64_t count = (std::uint64_t{1} << 31) + 1001;
                      std::vector<std::uint8_t> data(count);
                      for (std::uint64_t i = 0; i < count; ++i) {
                        data[i] = static_cast<std::uint8_t>((i * 7 + (i >> 31)) * (rank + 1));
                      }
                      Call call;
                      call.collective = Collective::all_reduce;
                      call.send = call.recv = data.data();
                      call.count = count;
                      call.type = PENSTOCK_UINT8;
                      if (Status status = member->comm->run(call); !status.ok()) {
                        return status.to_string();
                      }
                      for (std::uint64_t i = 0; i < count; ++i) {
                        const auto want = static_cast<std::uint8_t>((i * 7 + (i >> 31)) * 3);
                        if (data[i] != want) return fmt::format("element {}", i);
                      }
                      return "";
                    },
                    300));
}

}  // namespace
}  // namespace penstock::test
