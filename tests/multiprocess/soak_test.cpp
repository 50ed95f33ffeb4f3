// Many small calls: no growth in memory, file descriptors or time.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "ranks.h"

namespace penstock::test {
namespace {

// What the process has to itself: pages of the program and of the pool come in as they are touched.
std::uint64_t resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  PENSTOCK_CHECK(file != nullptr, "status");
  unsigned long kilobytes = 0;
  char line[256];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::sscanf(line, "RssAnon: %lu kB", &kilobytes) == 1) break;
  }
  std::fclose(file);
  PENSTOCK_CHECK(kilobytes > 0, "RssAnon");
  return kilobytes * 1024;
}

std::size_t open_files() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// Blocking calls, and now and then one that is begun and waited for.
Status turn(Comm& comm, std::uint32_t number) {
  std::vector<float> data(8 + number % 3, 1.0F);
  Call call;
  call.collective = Collective::all_reduce;
  call.send = call.recv = data.data();
  call.count = data.size();
  call.type = PENSTOCK_F32;
  if (number % 16 != 0) {
    PENSTOCK_TRY(comm.run(call));
  } else {
    PENSTOCK_ASSIGN(std::shared_ptr<Request> request, comm.start(call));
    PENSTOCK_TRY(comm.wait(*request));
  }
  if (data.back() == static_cast<float>(comm.size())) return {};
  return error(Code::internal, "call {} gave {}", number, data.back());
}

// The largest of the ranks' values.
Status largest(Comm& comm, std::int32_t* value) {
  Call call;
  call.collective = Collective::all_reduce;
  call.send = call.recv = value;
  call.count = 1;
  call.type = PENSTOCK_INT32;
  call.redop = PENSTOCK_MAX;
  return comm.run(call);
}

TEST(Soak, SmallCallsDoNotGrow) {
  constexpr std::uint32_t kBatches = 1000;
  constexpr std::uint32_t kPerBatch = PENSTOCK_SOAK_CALLS / kBatches;
  const ScopedPool pool(1);
  EXPECT_EQ(
      "", run_ranks(
              2,
              [&](std::uint32_t rank) -> std::string {
                auto member = join(pool.spec(), rank, 2);
                if (!member.ok()) return member.status().to_string();
                std::vector<double> seconds;
                std::uint64_t memory = 0;
                std::size_t files = 0;
                const auto start = std::chrono::steady_clock::now();
                // On a busy machine there are as many calls as half of the time allows for. In
                // eighths of it, on the rank that is furthest.
                std::int32_t eighths = 0;
                for (std::uint32_t batch = 0; batch < kBatches && eighths < 4; ++batch) {
                  const auto began = std::chrono::steady_clock::now();
                  for (std::uint32_t i = 0; i < kPerBatch; ++i) {
                    const Status status = turn(*member->comm, i);
                    if (!status.ok()) return status.to_string();
                  }
                  const auto now = std::chrono::steady_clock::now();
                  seconds.push_back(std::chrono::duration<double>(now - began).count());
                  const std::chrono::duration<double> all = now - start;
                  eighths = static_cast<std::int32_t>(8 * all.count() / PENSTOCK_SOAK_SECONDS);
                  if (Status status = largest(*member->comm, &eighths); !status.ok()) {
                    return status.to_string();
                  }
                  if (memory > 0 || (batch != kBatches / 10 && eighths == 0)) continue;  // warm
                  memory = resident_bytes();
                  files = open_files();
                }
                if (resident_bytes() > memory + (256u << 10)) {
                  return fmt::format("{} bytes grew to {}", memory, resident_bytes());
                }
                if (open_files() != files) {
                  return fmt::format("{} open files became {}", files, open_files());
                }
                if (seconds.size() < 20) return "";
                // The best of many, because the machine may be busy with something else.
                const auto half = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
                const double before = *std::min_element(seconds.begin(), half);
                const double after = *std::min_element(half, seconds.end());
                return after <= 2 * before + 1e-3
                           ? ""
                           : fmt::format("{} calls took {} s, and later {} s", kPerBatch, before,
                                         after);
              },
              PENSTOCK_SOAK_SECONDS));
}

}  // namespace
}  // namespace penstock::test
