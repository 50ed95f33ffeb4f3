#include "penstock/memory/region_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "penstock/base/forwarding_platform_test.h"
#include "penstock/memory/lease.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kSlots = 32;

class RegionTableTest : public ::testing::Test {
 protected:
  RegionTableTest()
      : geometry_{make_superblock({}, 0, 2, 4 << 20, 2, kSlots),
                  make_superblock({}, 1, 2, 4 << 20, 2, kSlots)},
        bytes_(2 * kSlots * 128 / 8),
        table_(reinterpret_cast<std::byte*>(bytes_.data()), geometry_,
               SharedMemory(Platform::host(), Coherence::hardware)) {}

  std::uint64_t arena(std::uint32_t device, std::uint32_t host) const {
    return geometry_[device].data_offset + host * geometry_[device].arena_bytes;
  }
  RegionEntry entry(std::uint64_t into, std::uint64_t bytes, std::uint32_t host = 0,
                    std::uint8_t device = 0) const {
    RegionEntry made{};
    made.live = 1;
    made.kind = 1;
    made.device = device;
    made.host = static_cast<std::uint16_t>(host);
    made.offset = arena(device, host) + into;
    made.bytes = bytes;
    made.generation = 77;
    std::strcpy(made.name, "name");
    seal(&made);
    return made;
  }
  std::string fault(RegionEntry made, bool with_seal = true, std::uint32_t slot = 0) const {
    if (with_seal) seal(&made);
    std::string why;
    return check_region_entry(made, slot, geometry_, &why) == EntryState::live ? "live" : why;
  }

  Geometry geometry_;
  std::vector<std::uint64_t> bytes_;
  RegionTable table_;
};

TEST_F(RegionTableTest, an_empty_table_has_all_room) {
  EXPECT_TRUE(table_.live().empty());
  const auto room = table_.room({}, 1, 1);
  EXPECT_EQ(room.free, geometry_[1].arena_bytes);
  EXPECT_EQ(room.largest, geometry_[1].arena_bytes);
  EXPECT_EQ(table_.first_fit({}, 1, 1, 4096).value(), arena(1, 1));
}

TEST_F(RegionTableTest, stores_loads_and_clears) {
  table_.store(kSlots + 3, entry(8192, 4096, 1));
  const auto live = table_.live();
  ASSERT_EQ(live.size(), 1u);
  EXPECT_EQ(live[0].slot, kSlots + 3);
  EXPECT_EQ(live[0].entry.generation, 77u);
  EXPECT_TRUE(table_.live(0).empty());
  EXPECT_EQ(table_.live(1).size(), 1u);
  table_.clear(kSlots + 3);
  EXPECT_TRUE(table_.live().empty());
}

TEST_F(RegionTableTest, first_fit_takes_the_lowest_gap_that_is_large_enough) {
  table_.store(5, entry(8192, 4096));
  table_.store(1, entry(24576, 8192));
  table_.store(2, entry(0, 4096, 0, 1));  // on another device
  const auto live = table_.live(0);
  const std::uint64_t base = arena(0, 0);
  EXPECT_EQ(table_.first_fit(live, 0, 0, 4096).value(), base);
  EXPECT_EQ(table_.first_fit(live, 0, 0, 8192).value(), base);
  EXPECT_EQ(table_.first_fit(live, 0, 0, 12288).value(), base + 12288);
  EXPECT_EQ(table_.first_fit(live, 0, 0, 16384).value(), base + 32768);
  EXPECT_FALSE(table_.first_fit(live, 0, 0, geometry_[0].arena_bytes).has_value());
  EXPECT_EQ(table_.room(live, 0, 0).free, geometry_[0].arena_bytes - 12288);
  EXPECT_EQ(table_.room(live, 0, 0).largest, geometry_[0].arena_bytes - 32768);
}

// A writer that dies at any word leaves a free slot or the whole entry.
TEST_F(RegionTableTest, an_entry_cut_at_any_word_counts_as_free) {
  const RegionEntry whole = entry(4096, 4096);
  std::uint64_t words[16];
  std::memcpy(words, &whole, sizeof words);
  const RegionEntry old = entry(0, 8192);
  for (int written = 0; written < 16; ++written) {
    table_.store(0, old);
    table_.clear(0);
    // In the order in which SharedMemory stores: from the end.
    for (int i = 0; i < written; ++i) bytes_[static_cast<std::size_t>(15 - i)] = words[15 - i];
    EXPECT_TRUE(table_.live().empty()) << written;
    // And from the beginning, as another host may see it.
    table_.store(0, old);
    table_.clear(0);
    for (int i = 0; i < written; ++i) bytes_[static_cast<std::size_t>(i)] = words[i];
    EXPECT_TRUE(table_.live().empty()) << written;
  }
  table_.store(0, whole);
  EXPECT_EQ(table_.live().size(), 1u);
}

// Notes whether the slot was ever published as all zero.
class ZeroWatch final : public ForwardingPlatform {
 public:
  void write_back(const void* data, std::size_t) override {
    const std::array<std::byte, 128> zeros{};
    if (std::memcmp(data, zeros.data(), zeros.size()) == 0) seen = true;
  }
  bool seen = false;
};

// A clear that was cut off after its first word leaves an old entry that only lacks that word.
TEST_F(RegionTableTest, storing_wipes_what_a_cut_clear_left) {
  ZeroWatch watch;
  const RegionTable table(reinterpret_cast<std::byte*>(bytes_.data()), geometry_,
                          SharedMemory(watch, Coherence::software));
  table_.store(0, entry(4096, 4096));
  bytes_[0] = 0;
  table.store(0, entry(8192, 4096));
  EXPECT_TRUE(watch.seen);
  ASSERT_EQ(table_.live().size(), 1u);
  EXPECT_EQ(table_.live()[0].entry.offset, arena(0, 0) + 8192);
}

TEST_F(RegionTableTest, a_claimed_entry_is_found_once_it_is_confirmed) {
  RegionEntry claimed = entry(4096, 4096);
  claimed.live = kEntryClaimed;
  table_.store(4, claimed);
  RegionEntry seen;
  EXPECT_EQ(table_.state(4, &seen), EntryState::claimed);
  EXPECT_TRUE(table_.live().empty());
  table_.confirm(4);
  ASSERT_EQ(table_.live().size(), 1u);
  EXPECT_STREQ(table_.live()[0].entry.name, "name");
}

TEST_F(RegionTableTest, entries_that_contradict_the_pool_count_as_free) {
  const RegionEntry good = entry(4096, 4096);
  EXPECT_EQ(fault(good), "live");
  const auto changed = [&](auto change) {
    RegionEntry made = good;
    change(made);
    return fault(made);
  };
  EXPECT_THAT(changed([](auto& e) { e.live = 3; }), HasSubstr("state"));
  EXPECT_THAT(changed([](auto& e) { e.host = 1; }), HasSubstr("host 1"));
  EXPECT_THAT(changed([](auto& e) { e.device = 2; }), HasSubstr("device 2 of 2"));
  EXPECT_THAT(changed([](auto& e) { e.offset += 1; }), HasSubstr("arena"));
  EXPECT_THAT(changed([](auto& e) { e.bytes = 0; }), HasSubstr("arena"));
  EXPECT_THAT(changed([](auto& e) { e.bytes = ~std::uint64_t{4095}; }), HasSubstr("arena"));
  EXPECT_THAT(changed([](auto& e) { e.offset = 0; }), HasSubstr("arena"));
  EXPECT_THAT(changed([](auto& e) { e.offset = ~std::uint64_t{4095}; }), HasSubstr("arena"));
  EXPECT_THAT(changed([](auto& e) { e.kind = 5; }), HasSubstr("kind"));
  EXPECT_THAT(changed([](auto& e) { e.lock_slot = 256; }), HasSubstr("lease"));
  EXPECT_THAT(changed([](auto& e) { std::memset(e.name, 'x', sizeof e.name); }), HasSubstr("name"));
  RegionEntry unsealed = good;
  unsealed.generation ^= 1;
  EXPECT_THAT(fault(unsealed, false), HasSubstr("checksum"));
  EXPECT_THAT(fault(good, true, kSlots), HasSubstr("host 0 in the slots of 1"));
}

TEST(LeaseRecord, reads_back_and_tells_half_written_ones) {
  ProcessIdentity process = Platform::host().self();
  const LeaseRecord record = make_lease_record(process, 3);
  EXPECT_EQ(read_lease_record(record).value(), process);
  for (std::size_t bit = 0; bit < sizeof record * 8; ++bit) {
    LeaseRecord changed = record;
    reinterpret_cast<unsigned char*>(&changed)[bit / 8] ^=
        static_cast<unsigned char>(1u << (bit % 8));
    EXPECT_FALSE(read_lease_record(changed).has_value()) << bit;
  }
  EXPECT_FALSE(read_lease_record(LeaseRecord{}).has_value());
}

}  // namespace
}  // namespace penstock
