// Descriptors as anything may submit them, on a simulated card and on the definition: the same
// statuses, fields and details, and the same bytes of memory afterwards.
//
//   PENSTOCK_FUZZ_DESCRIPTORS   how many, instead of the few of the default run
//   PENSTOCK_SEED               where chance begins
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "penstock/engine/host_engine.h"
#include "penstock/engine/select_conformance.h"
#include "penstock/memory/temporary_pool_test.h"

namespace penstock {
namespace {

constexpr std::uint64_t kArena = 256 * 1024;
constexpr std::uint64_t kFences = 128 * 1024;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// A pool with an arena, and a queue with windows on it. Two of them have the same addresses.
struct Side {
  Side(Platform& platform, const std::string& spec, std::shared_ptr<Engine> engine_)
      : engine(std::move(engine_)) {
    pool = Pool::map(platform, spec).value();
    RegionRequest request;
    request.bytes = kArena;
    region = pool->allocate(request).value();
    memory = pool->resolve(region.address, kArena);
    QueueConfig config;
    config.depth = 8;
    config.default_timeout_ms = 2;
    config.host_memory = false;  // of a list's sources; no card reaches them
    config.windows = {{region.address, kArena / 2, true, true},
                      {region.address + kArena / 2, kArena / 4, true, false},
                      {region.address + kFences, 8192, true, true}};
    queue = Queue::create(pool.get(), config).value();
  }
  std::vector<penstock_completion> run(const std::vector<penstock_descriptor>& descriptors) {
    std::vector<penstock_completion> completions;
    for (const penstock_descriptor& d : descriptors) EXPECT_TRUE(queue->submit(d));
    const std::uint64_t deadline = Platform::host().now_ns() + 60'000'000'000u;
    penstock_completion c;
    while (completions.size() < descriptors.size() && Platform::host().now_ns() < deadline) {
      engine->advance(*queue);
      while (queue->poll(&c)) completions.push_back(c);
    }
    return completions;
  }

  std::shared_ptr<Engine> engine;
  std::unique_ptr<Pool> pool;
  Region region;
  std::byte* memory = nullptr;
  std::unique_ptr<Queue> queue;
};

class Maker {
 public:
  Maker(SeededRandom& random, penstock_address arena) : random_(random), arena_(arena) {}

  penstock_descriptor make() {
    penstock_descriptor d = sound();
    d.version = PENSTOCK_DESCRIPTOR_VERSION;
    d.cookie = random_.next();
    if (random_.one_in(3)) {
      for (std::uint64_t changes = 1 + random_.below(3); changes != 0; --changes) spoil(&d);
    }
    // The definition waits by the clock.
    if (d.opcode == PENSTOCK_OP_WAIT || d.opcode == PENSTOCK_OP_BARRIER)
      d.timeout_ms = std::min<std::uint32_t>(d.timeout_ms, 2);
    return d;
  }

 private:
  penstock_address somewhere(std::uint64_t alignment) {
    const std::uint64_t reach = random_.one_in(12) ? kArena + 4096 : kArena / 2 - 20000;
    return arena_ + random_.below(reach) / alignment * alignment;
  }
  penstock_address fence() { return arena_ + kFences + random_.below(128) * 64; }
  std::uint64_t length() {
    const std::uint64_t most[] = {3, 70, 300, 5000};
    return random_.below(most[random_.below(random_.one_in(8) ? 4 : 3)]);
  }

  penstock_descriptor sound() {
    penstock_descriptor d{};
    d.opcode = static_cast<std::uint8_t>(random_.below(PENSTOCK_OP_COUNT));
    switch (d.opcode) {
      case PENSTOCK_OP_COPY:
        d.n_src = 1;
        operands(&d);
        break;
      case PENSTOCK_OP_REDUCE:
      case PENSTOCK_OP_OUTER_STEP:
        reduction(&d);
        break;
      case PENSTOCK_OP_SIGNAL:
        d.n_src = d.n_dst = 1;
        d.dst[0] = fence();
        d.src[0] = random_.below(50);
        break;
      case PENSTOCK_OP_WAIT:
        d.n_src = 2;
        d.src[0] = fence();
        d.src[1] = random_.below(random_.one_in(6) ? 50 : 2);
        break;
      case PENSTOCK_OP_BARRIER:
        d.n_src = 2;
        d.n_dst = 1;
        d.count = 1 + random_.below(4);
        d.dst[0] = fence();
        d.src[0] = random_.one_in(2) ? d.dst[0] : fence();
        d.src[1] = random_.below(random_.one_in(6) ? 50 : 2);
        break;
      case PENSTOCK_OP_SELECT:
      case PENSTOCK_OP_UPDATE:
        d.n_src = d.opcode == PENSTOCK_OP_SELECT ? 3 : 2;
        d.n_dst = d.opcode == PENSTOCK_OP_SELECT ? 1 : 0;
        d.count = length();
        for (std::uint32_t s = 0; s < d.n_src; ++s) d.src[s] = somewhere(64);
        if (d.n_dst != 0) d.dst[0] = somewhere(8);
        break;
      default:
        break;
    }
    return d;
  }
  void operands(penstock_descriptor* d) {
    d->n_dst = static_cast<std::uint8_t>(1 + random_.below(3));
    d->count = length();
    for (std::uint32_t i = 0; i < d->n_dst; ++i) d->dst[i] = somewhere(1);
    for (std::uint32_t i = 0; i < d->n_src; ++i) d->src[i] = somewhere(1);
    if (random_.one_in(4)) d->dst[0] = d->src[0];
    if (random_.one_in(4)) d->flags |= PENSTOCK_FLAG_STREAM;
  }
  void reduction(penstock_descriptor* d) {
    d->n_src = static_cast<std::uint8_t>(1 + random_.below(5));
    d->type = static_cast<std::uint8_t>(random_.below(PENSTOCK_TYPE_COUNT));
    d->out_type =
        random_.one_in(4) ? static_cast<std::uint8_t>(random_.below(PENSTOCK_TYPE_COUNT)) : d->type;
    d->redop = static_cast<std::uint8_t>(random_.below(PENSTOCK_REDOP_COUNT));
    operands(d);
    if (d->redop == PENSTOCK_PREMUL_SUM) d->scale = random_.below(UINT64_C(1) << 32);
    if (random_.one_in(10)) {
      // A list of addresses, which are whatever stands in memory.
      d->n_src = static_cast<std::uint8_t>(9 + random_.below(4));
      std::memset(d->src, 0, sizeof d->src);
      d->src[0] = somewhere(8);
      d->flags |= PENSTOCK_FLAG_SRC_LIST;
    }
  }
  void spoil(penstock_descriptor* d) {
    auto* bytes = reinterpret_cast<unsigned char*>(d);
    const std::uint64_t values[] = {0, 1, 0x7f, 0x80, 0xff, random_.below(256)};
    bytes[random_.below(sizeof *d)] = static_cast<unsigned char>(values[random_.below(6)]);
  }

  SeededRandom& random_;
  const penstock_address arena_;
};

class CardFuzz : public PoolTest, public ::testing::WithParamInterface<const char*> {};

std::string text_of(const penstock_completion& c) {
  return fmt::format("{} (field {}, detail {:#x})", penstock_status_name(c.status),
                     penstock_field_name(c.field), c.detail);
}

TEST_P(CardFuzz, GivesWhatTheDefinitionGives) {
  const std::uint64_t seed = number_from("PENSTOCK_SEED", 1);
  const std::uint64_t descriptors = number_from("PENSTOCK_FUZZ_DESCRIPTORS", 1000);
  Result<std::shared_ptr<Engine>> card =
      make_engine(fmt::format("card:{};seed={}", GetParam(), seed));
  ASSERT_TRUE(card.ok()) << card.status().to_string();
  // The definition with the card's capabilities, so that it refuses what the card does.
  std::shared_ptr<Engine> scalar = make_host_engine(card.value()->capabilities(), scalar_kernels());
  create(4 * kMiB);
  Side tested(platform_, spec_, card.value());
  const std::string other = spec_ + "-2";
  PoolConfig config;
  config.spec = other;
  config.bytes_per_device = 4 * kMiB;
  ASSERT_TRUE(Pool::create(platform_, config).ok());
  {
    Side defined(platform_, other, scalar);
    ASSERT_EQ(tested.region.address, defined.region.address);
    SeededRandom random(seed);
    Maker maker(random, tested.region.address);
    for (std::uint64_t i = 0; i < kArena / 8; ++i) {
      const std::uint64_t word = random.one_in(3) ? random.next() : random.below(1000);
      std::memcpy(tested.memory + 8 * i, &word, 8);
    }
    std::memset(tested.memory + kFences, 0, 8192);
    std::memcpy(defined.memory, tested.memory, kArena);
    std::uint64_t compared = 0, good = 0;
    while (compared < descriptors) {
      std::vector<penstock_descriptor> batch(1 + random.below(8));
      for (penstock_descriptor& d : batch) d = maker.make();
      const auto expected = defined.run(batch), got = tested.run(batch);
      ASSERT_EQ(expected.size(), batch.size());
      ASSERT_EQ(got.size(), batch.size()) << "seed " << seed << ", after " << compared;
      for (std::size_t i = 0; i < batch.size(); ++i, ++compared) {
        good += expected[i].status == PENSTOCK_OK ? 1 : 0;
        ASSERT_EQ(text_of(got[i]), text_of(expected[i]))
            << penstock_opcode_name(batch[i].opcode) << ", seed " << seed << ", number "
            << compared;
        ASSERT_EQ(got[i].cookie, batch[i].cookie);
      }
      ASSERT_EQ(std::memcmp(tested.memory, defined.memory, kArena), 0)
          << "memory differs, seed " << seed << ", after " << compared;
    }
    EXPECT_GT(good, compared / 8) << "little was executed";
    EXPECT_LT(good, compared * 7 / 8) << "little was refused";
  }
  EXPECT_TRUE(Pool::destroy(platform_, other).ok());
}

INSTANTIATE_TEST_SUITE_P(Buses, CardFuzz, ::testing::Values(PENSTOCK_TEST_BUSES),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace penstock
