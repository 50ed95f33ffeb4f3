// The reader and the writer, each on its own, with the smallest buffers: what leaves the reader is
// what memory holds, what memory holds is what entered the writer, and each burst that fails is
// told.
#include <Vdma_harness.h>
#include <gmock/gmock.h>

#include <cstring>
#include <deque>
#include <vector>

#include "penstock/rtl/common/clocked_test.h"
#include "penstock/sim/verilated/axi_memory.h"
#include "penstock/sim/verilated/axi_port.h"

namespace penstock::rtl {
namespace {

using ::testing::IsEmpty;

constexpr std::uint64_t kBus = 0x7f'0000'0000;
constexpr std::uint32_t kBytes = 1 << 18;

struct Bench {
  Bench(unsigned seed, std::uint32_t errors_one_in)
      : dut(seed), words(kBytes / 8), slave(memory, config(seed, errors_one_in)) {
    memory.attach(kBus, words.data(), kBytes);
    for (std::uint64_t& word : words) word = dut.random();
    dut->segment_valid_i = dut->chunk_valid_i = dut->in_valid_i = dut->job_we_i = 0;
    dut->m_axi_rvalid = dut->m_axi_bvalid = 0;
    dut.reset();
    slave.drive(port);
  }
  static sim::AxiConfig config(unsigned seed, std::uint32_t errors_one_in) {
    sim::AxiConfig axi;
    axi.seed = seed;
    axi.read_error_one_in = axi.write_error_one_in = errors_one_in;
    return axi;
  }
  void edge() {
    dut->clk_i = 0;
    dut.eval();
    slave.sample(port);
    dut.tick();
    slave.drive(port);
  }
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(dut.random() % bound);
  }
  // 1..limit, often at its ends.
  std::uint32_t length(std::uint32_t limit) {
    if (dut.chance(20)) return limit;
    return 1 + below(dut.chance(50) ? std::min(limit, 200u) : limit);
  }
  std::uint8_t* bytes() { return reinterpret_cast<std::uint8_t*>(words.data()); }

  Clocked<Vdma_harness> dut;
  std::vector<std::uint64_t> words;
  sim::AxiMemory memory;
  sim::AxiSlave slave;
  sim::AxiPort port = PENSTOCK_AXI_PORT(*dut, m_axi);
};

struct Segment {
  std::uint64_t at;
  std::uint32_t bytes;
  std::uint8_t user;
  bool failed = false;
};

// Reads `count` segments, those `given` or random ones, and compares each beat as it leaves. With
// `pause` nothing leaves in every other so many cycles. Returns how many segments failed.
std::size_t read_segments(unsigned seed, std::uint32_t errors_one_in, std::size_t count,
                          const std::vector<Segment>& given = {}, std::uint64_t pause = 0) {
  Bench bench(seed, errors_one_in);
  Clocked<Vdma_harness>& dut = bench.dut;
  std::deque<Segment> asked;
  std::size_t sent = 0, done = 0, failed = 0;
  std::uint32_t beat = 0;
  Segment next{};
  for (std::uint64_t limit = 0; done < count; ++limit) {
    if (limit > count * 5000) {
      ADD_FAILURE() << "only " << done << " segments of " << count;
      break;
    }
    if (!dut->segment_valid_i && sent < count && dut.chance(70)) {
      next.bytes = bench.length(4096);
      next.at = bench.below(kBytes - next.bytes);
      if (!given.empty()) next = given[sent];
      next.user = static_cast<std::uint8_t>(sent);
      dut->segment_valid_i = 1;
      dut->segment_address_i = kBus + next.at;
      dut->segment_bytes_i = static_cast<std::uint16_t>(next.bytes);
      dut->segment_user_i = next.user;
    }
    dut->out_ready_i = dut.chance(seed % 2 == 0 ? 90 : 30);
    if (pause != 0 && limit / pause % 2 == 0) dut->out_ready_i = 0;
    dut->clk_i = 0;
    dut.eval();
    if (dut->segment_valid_i && dut->segment_ready_o) {
      asked.push_back(next);
      ++sent;
    }
    const bool taken = dut->segment_valid_i && dut->segment_ready_o;
    if (dut->read_error_valid_o) {
      bool named = false;
      for (Segment& segment : asked)
        if (segment.user == dut->read_error_user_o) {
          const std::uint64_t at = dut->read_error_address_o - kBus;
          named = at >= segment.at && at < segment.at + segment.bytes;
          segment.failed = true;
        }
      EXPECT_TRUE(named);
    }
    if (dut->out_valid_o && dut->out_ready_i) {
      if (asked.empty()) {
        ADD_FAILURE() << "a beat that nobody asked for";
        break;
      }
      const Segment& segment = asked.front();
      const std::uint32_t size = std::min(64u, segment.bytes - 64 * beat);
      EXPECT_EQ(dut->out_user_o, segment.user);
      EXPECT_EQ(dut->out_index_o, beat);
      EXPECT_EQ(dut->out_last_o, 64 * beat + size == segment.bytes);
      if (!segment.failed) {
        EXPECT_EQ(std::memcmp(dut->out_data_o.data(), bench.bytes() + segment.at + 64 * beat, size),
                  0)
            << segment.at << " + 64 * " << beat << " of " << segment.bytes;
      }
      beat = 64 * beat + size == segment.bytes ? 0 : beat + 1;
      if (beat == 0) {
        failed += segment.failed;
        ++done;
        asked.pop_front();
      }
    }
    bench.edge();
    if (taken) dut->segment_valid_i = 0;
  }
  EXPECT_THAT(bench.slave.violations(), IsEmpty());
  EXPECT_EQ(bench.slave.counts().read_errors == 0, failed == 0);
  return failed;
}

TEST(ReadDma, SegmentsLeaveAsMemoryHoldsThem) {
  for (unsigned seed = 1; seed <= 6; ++seed) EXPECT_EQ(read_segments(seed, 0, 400), 0u);
}

TEST(ReadDma, OneBeatAtEveryMisalignment) {
  std::vector<Segment> segments;
  for (std::uint32_t at = 0; at < 64; ++at)
    for (const std::uint32_t bytes : {1u, 64 - at}) segments.push_back({at * 1024 + at, bytes, 0});
  EXPECT_EQ(read_segments(1, 0, segments.size(), segments), 0u);
}

TEST(ReadDma, AConsumerThatPausesFillsTheBuffer) {
  std::vector<Segment> segments;
  for (std::uint32_t i = 0; i < 48; ++i) {
    segments.push_back({i * 4096, 4096, 0});
    for (std::uint32_t n = 0; n < 3; ++n)
      segments.push_back({i * 4096 + 256 * n, 64 * (1 + i % 4), 0});
  }
  EXPECT_EQ(read_segments(2, 0, segments.size(), segments, 400), 0u);
}

TEST(ReadDma, EveryBurstThatFailsIsTold) {
  for (unsigned seed = 1; seed <= 4; ++seed) EXPECT_GT(read_segments(seed, 10, 400), 20u);
}

struct Chunk {
  std::uint32_t job;
  std::uint32_t bytes;
  bool last;
  std::vector<std::uint8_t> data;  // whole beats, and perhaps some that are dropped
};
struct Job {
  std::vector<std::uint64_t> dst;
  bool failed = false;
};

// Writes jobs of a few chunks to disjoint places and compares all of memory; with `short_ones` of a
// chunk that touches one beat, at each misalignment in turn. Returns how many failed.
std::size_t write_jobs(unsigned seed, std::uint32_t errors_one_in, std::size_t count,
                       bool short_ones = false) {
  Bench bench(seed, errors_one_in);
  Clocked<Vdma_harness>& dut = bench.dut;
  std::vector<std::uint64_t> expected_words = bench.words;
  auto* const expected = reinterpret_cast<std::uint8_t*>(expected_words.data());
  std::vector<Job> jobs;
  std::deque<Chunk> chunks, told;
  std::uint64_t place = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Job job;
    std::vector<std::uint8_t> all;
    const std::uint32_t parts = short_ones ? 1 : 1 + bench.below(3);
    for (std::uint32_t p = 0; p < parts; ++p) {
      Chunk chunk{static_cast<std::uint32_t>(i % 8), 0, p + 1 == parts, {}};
      chunk.bytes = bench.dut.chance(10) ? bench.length(16384) : bench.length(600);
      if (short_ones) chunk.bytes = 1 + bench.below(64 - static_cast<std::uint32_t>(i % 64));
      // Whole beats but for a job's last chunk.
      if (!chunk.last) chunk.bytes = (chunk.bytes + 63) / 64 * 64;
      chunk.data.resize((chunk.bytes + 63) / 64 * 64 + 64 * (chunk.last ? bench.below(4) : 0));
      for (std::uint8_t& byte : chunk.data) byte = static_cast<std::uint8_t>(dut.random());
      all.insert(all.end(), chunk.data.begin(), chunk.data.begin() + chunk.bytes);
      chunks.push_back(std::move(chunk));
    }
    const std::uint32_t n = 1 + bench.below(3);
    for (std::uint32_t d = 0; d < n; ++d) {
      place += bench.below(150);
      if (place + all.size() > kBytes) place = bench.below(64);
      if (short_ones) place = (place + 63) / 64 * 64 + i % 64;
      job.dst.push_back(place);
      std::memcpy(expected + place, all.data(), all.size());
      place += all.size();
    }
    jobs.push_back(job);
  }
  std::size_t begun = 0, done = 0, at = 0;
  std::uint64_t limit = 0;
  for (; done < count && limit < count * 20000; ++limit) {
    // A job's destinations stand before its first chunk is told.
    const bool first = !chunks.empty() && begun < count && chunks.front().job == begun % 8;
    dut->job_we_i = first && !dut->chunk_valid_i && begun < done + 8;
    if (dut->job_we_i) {
      dut->job_index_i = begun % 8;
      dut->job_destinations_i = static_cast<std::uint8_t>(jobs[begun].dst.size());
      for (std::size_t d = 0; d < jobs[begun].dst.size(); ++d) {
        const std::uint64_t bus = kBus + jobs[begun].dst[d];
        dut->job_dst_i[2 * d] = static_cast<std::uint32_t>(bus);
        dut->job_dst_i[2 * d + 1] = static_cast<std::uint32_t>(bus >> 32);
      }
      ++begun;
    } else if (!dut->chunk_valid_i && !chunks.empty() && !first && dut.chance(50)) {
      dut->chunk_valid_i = 1;
      dut->chunk_bytes_i = static_cast<std::uint16_t>(chunks.front().bytes);
      dut->chunk_job_i = static_cast<std::uint8_t>(chunks.front().job);
      dut->chunk_last_i = chunks.front().last;
    }
    if (!dut->in_valid_i && !told.empty() && dut.chance(seed % 2 == 0 ? 95 : 50)) {
      dut->in_valid_i = 1;
      std::memcpy(dut->in_data_i.data(), told.front().data.data() + at, 64);
      dut->in_last_i = at + 64 == told.front().data.size();
    }
    dut->clk_i = 0;
    dut.eval();
    const bool chunk_taken = dut->chunk_valid_i && dut->chunk_ready_o;
    const bool beat_taken = dut->in_valid_i && dut->in_ready_o;
    if (dut->write_error_valid_o) {
      // The oldest job of that name which has not ended.
      std::size_t i = done;
      while (i % 8 != dut->write_error_job_o) ++i;
      EXPECT_LT(i, begun);
      jobs[i].failed = true;
    }
    done += dut->done_o;
    bench.edge();
    if (chunk_taken) {
      told.push_back(std::move(chunks.front()));
      chunks.pop_front();
      dut->chunk_valid_i = 0;
    }
    if (beat_taken) {
      dut->in_valid_i = 0;
      at += 64;
      if (at == told.front().data.size()) {
        at = 0;
        told.pop_front();
      }
    }
  }
  EXPECT_EQ(done, count);
  EXPECT_TRUE(bench.slave.idle());
  EXPECT_THAT(bench.slave.violations(), IsEmpty());
  std::size_t failed = 0;
  for (const Job& job : jobs) failed += job.failed;
  EXPECT_EQ(bench.slave.counts().write_errors == 0, failed == 0);
  if (failed == 0) {
    EXPECT_EQ(std::memcmp(bench.bytes(), expected, kBytes), 0);
  }
  return failed;
}

TEST(WriteDma, MemoryHoldsWhatEntered) {
  for (unsigned seed = 1; seed <= 8; ++seed) EXPECT_EQ(write_jobs(seed, 0, 100), 0u);
}

TEST(WriteDma, OneBeatAtEveryMisalignment) { EXPECT_EQ(write_jobs(3, 0, 256, true), 0u); }

TEST(WriteDma, EveryBurstThatFailsIsTold) {
  for (unsigned seed = 1; seed <= 4; ++seed) EXPECT_GT(write_jobs(seed, 10, 100), 10u);
}

}  // namespace
}  // namespace penstock::rtl
