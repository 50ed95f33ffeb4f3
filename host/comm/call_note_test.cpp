#include "penstock/comm/call_note.h"

#include <gtest/gtest.h>

#include <set>

namespace penstock {
namespace {

Call call_of(Collective collective, std::uint64_t count, std::uint32_t type, std::uint32_t redop,
             std::uint32_t root) {
  Call call;
  call.collective = collective;
  call.count = count;
  call.type = type;
  call.redop = redop;
  call.root = root;
  return call;
}

TEST(CallNote, SaysWhatIsCalled) {
  EXPECT_EQ(
      describe_note(call_note(call_of(Collective::all_reduce, 8, PENSTOCK_F32, PENSTOCK_SUM, 0))),
      "all_reduce of 8 f32 (sum)");
  EXPECT_EQ(describe_note(call_note(call_of(Collective::broadcast, 100, PENSTOCK_INT8, 0, 2))),
            "broadcast of 100 int8 from root 2");
  EXPECT_EQ(
      describe_note(call_note(call_of(Collective::reduce, 1, PENSTOCK_BF16, PENSTOCK_MAX, 63))),
      "reduce of 1 bf16 (max) to root 63");
  EXPECT_EQ(describe_note(call_note(Call())), "barrier");
}

// Every argument that the ranks must share makes another note; nothing else does.
TEST(CallNote, DiffersWithEveryArgument) {
  std::set<std::uint64_t> notes;
  std::size_t made = 0;
  for (const std::uint64_t count : {1ull, 2ull, 1ull << 36}) {
    for (std::uint32_t type = 0; type < PENSTOCK_TYPE_COUNT; ++type) {
      for (std::uint32_t redop = 0; redop < PENSTOCK_REDOP_COUNT; ++redop) {
        for (const std::uint32_t root : {0u, 1u, 63u}) {
          notes.insert(call_note(call_of(Collective::reduce, count, type, redop, root)));
          ++made;
        }
      }
    }
  }
  EXPECT_EQ(notes.size(), made);
  const Call gather = call_of(Collective::all_gather, 4, PENSTOCK_F32, PENSTOCK_MAX, 5);
  const Call same = call_of(Collective::all_gather, 4, PENSTOCK_F32, PENSTOCK_SUM, 0);
  EXPECT_EQ(call_note(gather), call_note(same)) << "it has neither operation nor root";
}

TEST(CallNote, LeavesRoomForPassAndOffers) {
  for (const std::uint64_t note :
       {call_note(call_of(Collective::all_reduce, ~0ull >> 1, 15, 7, 63)), call_note(Call())}) {
    EXPECT_EQ(note & (kNotePass | kNoteOffers), 0u);
    EXPECT_EQ(note_of_pass(note, 0x1234), note | 0x34);
  }
}

}  // namespace
}  // namespace penstock
