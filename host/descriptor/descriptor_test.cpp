#include "penstock/descriptor/descriptor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>

namespace {

// Byte positions as the header draws them, typed in again.
TEST(Descriptor, LayoutIsTheDocumentedOne) {
  EXPECT_EQ(offsetof(penstock_descriptor, opcode), 0u);
  EXPECT_EQ(offsetof(penstock_descriptor, version), 1u);
  EXPECT_EQ(offsetof(penstock_descriptor, type), 2u);
  EXPECT_EQ(offsetof(penstock_descriptor, redop), 3u);
  EXPECT_EQ(offsetof(penstock_descriptor, out_type), 4u);
  EXPECT_EQ(offsetof(penstock_descriptor, n_src), 5u);
  EXPECT_EQ(offsetof(penstock_descriptor, n_dst), 6u);
  EXPECT_EQ(offsetof(penstock_descriptor, block), 7u);
  EXPECT_EQ(offsetof(penstock_descriptor, flags), 8u);
  EXPECT_EQ(offsetof(penstock_descriptor, timeout_ms), 12u);
  EXPECT_EQ(offsetof(penstock_descriptor, cookie), 16u);
  EXPECT_EQ(offsetof(penstock_descriptor, count), 24u);
  EXPECT_EQ(offsetof(penstock_descriptor, scale), 32u);
  EXPECT_EQ(offsetof(penstock_descriptor, dst), 40u);
  EXPECT_EQ(offsetof(penstock_descriptor, src), 64u);
  EXPECT_EQ(offsetof(penstock_completion, status), 8u);
  EXPECT_EQ(offsetof(penstock_completion, detail), 16u);
  EXPECT_EQ(offsetof(penstock_completion, sequence), 24u);
}

TEST(Descriptor, SizesAndNames) {
  const std::uint32_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  for (std::uint32_t type = 0; type < 12; ++type) EXPECT_EQ(penstock_type_size(type), sizes[type]);
  EXPECT_EQ(penstock_type_size(12), 0u);
  EXPECT_STREQ(penstock_type_name(PENSTOCK_BF16), "bf16");
  EXPECT_STREQ(penstock_type_name(PENSTOCK_F8E4M3), "f8e4m3");
  EXPECT_STREQ(penstock_type_name(PENSTOCK_UINT64), "uint64");
  EXPECT_STREQ(penstock_redop_name(PENSTOCK_PREMUL_SUM), "premul_sum");
  EXPECT_STREQ(penstock_opcode_name(PENSTOCK_OP_WAIT), "WAIT");
  EXPECT_STREQ(penstock_opcode_name(8), "BARRIER");
  EXPECT_STREQ(penstock_status_name(PENSTOCK_DEADLINE_EXCEEDED), "deadline_exceeded");
  EXPECT_STREQ(penstock_status_name(PENSTOCK_INTERNAL), "internal");
  EXPECT_STREQ(penstock_field_name(PENSTOCK_FIELD_COUNT), "count");
  EXPECT_STREQ(penstock_field_name(PENSTOCK_FIELD_UPDATE), "update");
  for (const auto name : {penstock_type_name, penstock_redop_name, penstock_opcode_name,
                          penstock_status_name, penstock_field_name}) {
    EXPECT_STREQ(name(99), "?");
    EXPECT_STREQ(name(0xffffffffu), "?");
  }
}

penstock_descriptor make(std::uint8_t opcode) {
  penstock_descriptor d{};
  d.opcode = opcode;
  d.version = 1;
  d.cookie = 0xfeedface;
  return d;
}
penstock_descriptor make_copy() {
  penstock_descriptor d = make(PENSTOCK_OP_COPY);
  d.n_src = 1;
  d.n_dst = 2;
  d.count = 100;
  d.src[0] = 4097;
  d.dst[0] = 8193;
  d.dst[1] = penstock_address_make(PENSTOCK_SPACE_HOST, 77);
  return d;
}
penstock_descriptor make_reduce(std::uint8_t type, std::uint8_t redop, std::uint8_t n_src) {
  penstock_descriptor d = make(PENSTOCK_OP_REDUCE);
  d.type = d.out_type = type;
  d.redop = redop;
  d.n_src = n_src;
  d.n_dst = 1;
  d.count = 10;
  d.dst[0] = penstock_address_make(15, 3);
  if (n_src > 8) {
    d.flags = PENSTOCK_FLAG_SRC_LIST;
    d.src[0] = 64;
  } else {
    for (std::uint32_t i = 0; i < n_src; ++i) d.src[i] = 4096 * (i + 1);
  }
  return d;
}
penstock_descriptor make_signal() {
  penstock_descriptor d = make(PENSTOCK_OP_SIGNAL);
  d.n_src = d.n_dst = 1;
  d.dst[0] = 128;
  d.src[0] = 0xffffffffffffffff;  // a value, so anything goes
  return d;
}
penstock_descriptor make_wait() {
  penstock_descriptor d = make(PENSTOCK_OP_WAIT);
  d.n_src = 2;
  d.src[0] = 192;
  d.src[1] = 0x2300000000000001;
  d.timeout_ms = 50;
  return d;
}
penstock_descriptor make_select() {
  penstock_descriptor d = make(PENSTOCK_OP_SELECT);
  d.n_src = 3;
  d.n_dst = 1;
  d.flags = PENSTOCK_FLAG_COMMIT;
  d.count = 5;
  d.src[0] = 64;
  d.src[1] = 8;
  d.src[2] = 16;
  d.dst[0] = 24;
  return d;
}
penstock_descriptor make_update() {
  penstock_descriptor d = make(PENSTOCK_OP_UPDATE);
  d.n_src = 2;
  d.count = PENSTOCK_MAX_UPDATES;
  d.src[0] = 4096;
  d.src[1] = 8;
  return d;
}

penstock_descriptor make_barrier() {
  penstock_descriptor d = make(PENSTOCK_OP_BARRIER);
  d.n_src = 2;
  d.n_dst = 1;
  d.count = 64;
  d.dst[0] = 192;  // one of those that it waits for
  d.src[0] = 128;
  d.src[1] = ~0ull;  // a value
  d.timeout_ms = 7;
  return d;
}
penstock_descriptor make_weighted() {
  penstock_descriptor d = make_reduce(PENSTOCK_BF16, PENSTOCK_AVG, 3);
  d.flags = PENSTOCK_FLAG_WEIGHTS;
  d.scale = penstock_address_make(PENSTOCK_SPACE_HOST, 4096);
  return d;
}
penstock_descriptor make_blocks() {
  penstock_descriptor d = make_reduce(PENSTOCK_INT8, PENSTOCK_PREMUL_SUM, 9);
  d.out_type = PENSTOCK_F32;
  d.block = 64;
  d.scale = 0x3f800000;
  return d;
}
penstock_descriptor make_outer_step() {
  penstock_descriptor d = make_reduce(PENSTOCK_F16, PENSTOCK_AVG, 4);
  d.opcode = PENSTOCK_OP_OUTER_STEP;
  d.out_type = PENSTOCK_F32;
  d.n_dst = 2;
  d.scale = ~0ull;
  d.dst[0] = 1000;
  d.dst[1] = 2000;
  return d;
}

struct Verdict {
  std::uint32_t status;
  std::uint32_t field;
  std::uint64_t detail;
  bool operator==(const Verdict&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Verdict& v) {
  return out << penstock_status_name(v.status) << ' ' << penstock_field_name(v.field) << ' '
             << v.detail;
}
Verdict check(const penstock_descriptor& d) {
  Verdict v{99, 99, 99};
  v.status = penstock_descriptor_check(&d, &v.field, &v.detail);
  return v;
}
constexpr Verdict kOk{0, 0, 0};

TEST(Descriptor, AcceptsWellFormedRecords) {
  EXPECT_EQ(check(make(PENSTOCK_OP_NOP)), kOk);
  EXPECT_EQ(check(make_copy()), kOk);
  EXPECT_EQ(check(make_signal()), kOk);
  EXPECT_EQ(check(make_wait()), kOk);
  EXPECT_EQ(check(make_select()), kOk);
  EXPECT_EQ(check(make_update()), kOk);
  EXPECT_EQ(check(make_barrier()), kOk);
  for (std::uint8_t type = 0; type < 12; ++type)
    for (std::uint8_t redop = 0; redop < 6; ++redop)
      for (std::uint8_t n : {1, 8, 9, 64}) EXPECT_EQ(check(make_reduce(type, redop, n)), kOk);
}

TEST(Descriptor, AcceptsFusedOperations) {
  EXPECT_EQ(check(make_weighted()), kOk);
  EXPECT_EQ(check(make_blocks()), kOk);
  EXPECT_EQ(check(make_outer_step()), kOk);
  // Each of these becomes each other; a block stands where an int8 does.
  const std::uint8_t folded[] = {PENSTOCK_F16,    PENSTOCK_F32,    PENSTOCK_BF16,
                                 PENSTOCK_F8E4M3, PENSTOCK_F8E5M2, PENSTOCK_INT8};
  for (const std::uint8_t type : folded)
    for (const std::uint8_t out : folded)
      for (const std::uint8_t block : {32, 64}) {
        penstock_descriptor d = make_reduce(type, PENSTOCK_SUM, 1);
        d.out_type = out;
        d.block = type == PENSTOCK_INT8 || out == PENSTOCK_INT8 ? block : 0;
        EXPECT_EQ(check(d), kOk) << int{type} << " to " << int{out};
      }
  penstock_descriptor d = make_reduce(PENSTOCK_F64, PENSTOCK_PREMUL_SUM, 64);
  d.flags |= PENSTOCK_FLAG_WEIGHTS | PENSTOCK_FLAG_STREAM;
  d.scale = 8;
  EXPECT_EQ(check(d), kOk);
}

TEST(Descriptor, OperandBytes) {
  EXPECT_EQ(penstock_operand_bytes(PENSTOCK_F32, 0, 5), 20u);
  EXPECT_EQ(penstock_operand_bytes(PENSTOCK_INT8, 0, 5), 5u);
  EXPECT_EQ(penstock_operand_bytes(PENSTOCK_INT8, 32, 0), 0u);
  EXPECT_EQ(penstock_operand_bytes(PENSTOCK_INT8, 32, 1), 36u);
  EXPECT_EQ(penstock_operand_bytes(PENSTOCK_INT8, 32, 32), 36u);
  EXPECT_EQ(penstock_operand_bytes(PENSTOCK_INT8, 64, 65), 136u);
  EXPECT_EQ(penstock_operand_bytes(PENSTOCK_BF16, 64, 3), 6u);
  EXPECT_EQ(penstock_operand_bytes(12, 0, 3), 0u);
  EXPECT_EQ(penstock_fold_type(PENSTOCK_INT8, 0), std::uint32_t{PENSTOCK_INT8});
  EXPECT_EQ(penstock_fold_type(PENSTOCK_INT8, 32), std::uint32_t{PENSTOCK_F32});
  EXPECT_EQ(penstock_fold_type(PENSTOCK_F64, 0), std::uint32_t{PENSTOCK_F64});
  EXPECT_EQ(penstock_fold_type(PENSTOCK_F8E5M2, 0), std::uint32_t{PENSTOCK_F32});
}

TEST(Descriptor, WhatMovesElementsMayStream) {
  penstock_descriptor d = make_copy();
  d.flags = PENSTOCK_FLAG_STREAM;
  EXPECT_EQ(check(d), kOk);
  for (const std::uint8_t n : {1, 8, 9}) {
    d = make_reduce(PENSTOCK_BF16, PENSTOCK_SUM, n);
    d.flags |= PENSTOCK_FLAG_STREAM;
    EXPECT_EQ(check(d), kOk);
  }
}

TEST(Descriptor, CountZeroIsLegal) {
  for (penstock_descriptor d :
       {make_copy(), make_reduce(PENSTOCK_F32, PENSTOCK_SUM, 2), make_select(), make_update()}) {
    d.count = 0;
    EXPECT_EQ(check(d), kOk);
  }
}

TEST(Descriptor, InPlaceIsNotTheCheckersBusiness) {
  penstock_descriptor d = make_reduce(PENSTOCK_F32, PENSTOCK_SUM, 2);
  d.dst[0] = d.src[1];
  EXPECT_EQ(check(d), kOk);
}

// One field wrong at a time.
struct Case {
  std::string name;
  penstock_descriptor base;
  std::function<void(penstock_descriptor&)> spoil;
  Verdict expected;
};
using D = penstock_descriptor;
constexpr std::uint32_t kInvalid = 1, kUnsupported = 2;

std::vector<Case> cases() {
  const D nop = make(0), copy = make_copy(), signal = make_signal(), wait = make_wait(),
          select = make_select(), update = make_update(), barrier = make_barrier();
  const D sum2 = make_reduce(PENSTOCK_F32, PENSTOCK_SUM, 2);
  const D sum9 = make_reduce(PENSTOCK_INT32, PENSTOCK_SUM, 9);
  const D premul = make_reduce(PENSTOCK_F16, PENSTOCK_PREMUL_SUM, 2);
  const D weighted = make_weighted(), blocks = make_blocks(), step = make_outer_step();
  std::vector<Case> out = {
      {"opcode", nop, [](D& d) { d.opcode = 9; }, {kInvalid, 1, 9}},
      {"opcode255", nop, [](D& d) { d.opcode = 255; }, {kInvalid, 1, 255}},
      {"version0", nop, [](D& d) { d.version = 0; }, {kUnsupported, 2, 0}},
      {"version2", copy, [](D& d) { d.version = 2; }, {kUnsupported, 2, 2}},
      {"type", sum2, [](D& d) { d.type = 12; }, {kInvalid, 3, 12}},
      {"type of copy", copy, [](D& d) { d.type = 1; }, {kInvalid, 3, 1}},
      {"redop", sum2, [](D& d) { d.redop = 6; }, {kInvalid, 4, 6}},
      {"redop of wait", wait, [](D& d) { d.redop = 1; }, {kInvalid, 4, 1}},
      {"out_type", sum2, [](D& d) { d.out_type = 12; }, {kInvalid, 5, 12}},
      {"to f64", sum2, [](D& d) { d.out_type = PENSTOCK_F64; }, {kUnsupported, 5, 8}},
      {"to int32", sum2, [](D& d) { d.out_type = PENSTOCK_INT32; }, {kUnsupported, 5, 2}},
      {"to int8, no block", sum2, [](D& d) { d.out_type = PENSTOCK_INT8; }, {kUnsupported, 5, 0}},
      {"int32 to f32", sum9, [](D& d) { d.out_type = PENSTOCK_F32; }, {kUnsupported, 5, 7}},
      {"int8, no block, to f32", blocks, [](D& d) { d.block = 0; }, {kUnsupported, 5, 7}},
      {"block to uint8", blocks, [](D& d) { d.out_type = PENSTOCK_UINT8; }, {kUnsupported, 5, 1}},
      {"out_type of select", select, [](D& d) { d.out_type = 2; }, {kInvalid, 5, 2}},
      {"n_src 0", sum2, [](D& d) { d.n_src = 0; }, {kInvalid, 6, 0}},
      {"n_src 65", sum9, [](D& d) { d.n_src = 65; }, {kInvalid, 6, 65}},
      {"n_src of copy", copy, [](D& d) { d.n_src = 2; }, {kInvalid, 6, 2}},
      {"n_src of nop", nop, [](D& d) { d.n_src = 1; }, {kInvalid, 6, 1}},
      {"n_src of wait", wait, [](D& d) { d.n_src = 1; }, {kInvalid, 6, 1}},
      {"n_src of select", select, [](D& d) { d.n_src = 4; }, {kInvalid, 6, 4}},
      {"n_src of update", update, [](D& d) { d.n_src = 3; }, {kInvalid, 6, 3}},
      {"n_dst 0", copy, [](D& d) { d.n_dst = 0; }, {kInvalid, 7, 0}},
      {"n_dst 4", sum2, [](D& d) { d.n_dst = 4; }, {kInvalid, 7, 4}},
      {"n_dst of signal", signal, [](D& d) { d.n_dst = 2; }, {kInvalid, 7, 2}},
      {"n_dst of update", update, [](D& d) { d.n_dst = 1; }, {kInvalid, 7, 1}},
      {"block of nop", nop, [](D& d) { d.block = 1; }, {kInvalid, 8, 1}},
      {"block of copy", copy, [](D& d) { d.block = 64; }, {kInvalid, 8, 64}},
      {"block of f32", sum2, [](D& d) { d.block = 32; }, {kInvalid, 8, 32}},
      {"block 16", blocks, [](D& d) { d.block = 16; }, {kInvalid, 8, 16}},
      {"block 33", blocks, [](D& d) { d.block = 33; }, {kInvalid, 8, 33}},
      {"block 128", blocks, [](D& d) { d.block = 128; }, {kInvalid, 8, 128}},
      {"flags", nop, [](D& d) { d.flags = 1u << 31; }, {kInvalid, 9, 1u << 31}},
      {"commit of copy", copy, [](D& d) { d.flags = 2; }, {kInvalid, 9, 2}},
      {"weights of sum", sum2, [](D& d) { d.flags = 8; }, {kInvalid, 9, 8}},
      {"weights of copy", copy, [](D& d) { d.flags = 8; }, {kInvalid, 9, 8}},
      {"weights of max", weighted, [](D& d) { d.redop = PENSTOCK_MAX; }, {kInvalid, 9, 8}},
      {"weights of int64",
       weighted,
       [](D& d) { d.type = d.out_type = PENSTOCK_INT64; },
       {kUnsupported, 9, 8}},
      {"weights of int8 without blocks",
       weighted,
       [](D& d) { d.type = d.out_type = PENSTOCK_INT8; },
       {kUnsupported, 9, 8}},
      {"flag 4", sum2, [](D& d) { d.flags = 16; }, {kInvalid, 9, 16}},
      {"stream of select", select, [](D& d) { d.flags = 4; }, {kInvalid, 9, 4}},
      {"stream of signal", signal, [](D& d) { d.flags = 4; }, {kInvalid, 9, 4}},
      {"stream and no list", sum9, [](D& d) { d.flags = 4; }, {kInvalid, 9, 4}},
      {"list of select", select, [](D& d) { d.flags = 3; }, {kInvalid, 9, 3}},
      {"list of two", sum2, [](D& d) { d.flags = 1; }, {kInvalid, 9, 1}},
      {"no list of nine", sum9, [](D& d) { d.flags = 0; }, {kInvalid, 9, 0}},
      {"timeout of copy", copy, [](D& d) { d.timeout_ms = 1; }, {kInvalid, 10, 1}},
      {"count", copy, [](D& d) { d.count = (1ull << 48) + 1; }, {kInvalid, 11, (1ull << 48) + 1}},
      {"count max", sum2, [](D& d) { d.count = ~0ull; }, {kInvalid, 11, ~0ull}},
      {"count of nop", nop, [](D& d) { d.count = 1; }, {kInvalid, 11, 1}},
      {"count of signal", signal, [](D& d) { d.count = 1; }, {kInvalid, 11, 1}},
      {"tasks", select, [](D& d) { d.count = (1u << 20) + 1; }, {kInvalid, 11, (1u << 20) + 1}},
      {"updates", update, [](D& d) { d.count = (1u << 24) + 1; }, {kInvalid, 11, (1u << 24) + 1}},
      {"scale of sum", sum2, [](D& d) { d.scale = 1; }, {kInvalid, 12, 1}},
      {"scale of copy", copy, [](D& d) { d.scale = 5; }, {kInvalid, 12, 5}},
      {"wide scale", premul, [](D& d) { d.scale = 1ull << 32; }, {kInvalid, 12, 1ull << 32}},
      {"weights' alignment", weighted, [](D& d) { d.scale = 4; }, {kInvalid, 12, 4}},
      {"weights' space",
       weighted,
       [](D& d) { d.scale = 0x10ull << 56; },
       {kInvalid, 12, 0x10ull << 56}},
      {"wide scale of blocks",
       blocks,
       [](D& d) { d.scale = 1ull << 40; },
       {kInvalid, 12, 1ull << 40}},
      {"step of f64", step, [](D& d) { d.type = PENSTOCK_F64; }, {kUnsupported, 3, 8}},
      {"step of int8", step, [](D& d) { d.type = PENSTOCK_INT8; }, {kUnsupported, 3, 0}},
      {"sum of step", step, [](D& d) { d.redop = PENSTOCK_SUM; }, {kUnsupported, 4, 0}},
      {"step to bf16", step, [](D& d) { d.out_type = PENSTOCK_BF16; }, {kUnsupported, 5, 9}},
      {"step without deltas", step, [](D& d) { d.n_src = 0; }, {kInvalid, 6, 0}},
      {"step of one", step, [](D& d) { d.n_dst = 1; }, {kInvalid, 7, 1}},
      {"step of three", step, [](D& d) { d.n_dst = 3; }, {kInvalid, 7, 3}},
      {"block of step", step, [](D& d) { d.block = 32; }, {kInvalid, 8, 32}},
      {"stream of step", step, [](D& d) { d.flags = 4; }, {kInvalid, 9, 4}},
      {"weights of step", step, [](D& d) { d.flags = 8; }, {kInvalid, 9, 8}},
      {"timeout of step", step, [](D& d) { d.timeout_ms = 2; }, {kInvalid, 10, 2}},
      {"momentum twice", step, [](D& d) { d.dst[1] = d.dst[0]; }, {kInvalid, 13, 1000}},
      {"unused dst", copy, [](D& d) { d.dst[2] = 9; }, {kInvalid, 13, 9}},
      {"same dst", copy, [](D& d) { d.dst[1] = d.dst[0]; }, {kInvalid, 13, 8193}},
      {"space", copy, [](D& d) { d.dst[1] = 16ull << 56; }, {kInvalid, 13, 16ull << 56}},
      {"fence alignment", signal, [](D& d) { d.dst[0] = 129; }, {kInvalid, 13, 129}},
      {"fence alignment 32", signal, [](D& d) { d.dst[0] = 160; }, {kInvalid, 13, 160}},
      {"fence in host memory",
       signal,
       [](D& d) { d.dst[0] = 0xf0ull << 56; },
       {kInvalid, 13, 0xf0ull << 56}},
      {"dst of nop", nop, [](D& d) { d.dst[0] = 1; }, {kInvalid, 13, 1}},
      {"result alignment", select, [](D& d) { d.dst[0] = 28; }, {kInvalid, 13, 28}},
      {"unused src", sum2, [](D& d) { d.src[7] = 3; }, {kInvalid, 14, 3}},
      {"src after list", sum9, [](D& d) { d.src[1] = 3; }, {kInvalid, 14, 3}},
      {"list alignment", sum9, [](D& d) { d.src[0] = 68; }, {kInvalid, 14, 68}},
      {"src space", sum2, [](D& d) { d.src[1] = 0xf1ull << 56; }, {kInvalid, 14, 0xf1ull << 56}},
      {"wait alignment", wait, [](D& d) { d.src[0] = 200; }, {kInvalid, 14, 200}},
      {"wait in host memory",
       wait,
       [](D& d) { d.src[0] = 0xf0ull << 56; },
       {kInvalid, 14, 0xf0ull << 56}},
      {"second value", signal, [](D& d) { d.src[1] = 1; }, {kInvalid, 14, 1}},
      {"table alignment", select, [](D& d) { d.src[0] = 8; }, {kInvalid, 14, 8}},
      {"program alignment", select, [](D& d) { d.src[1] = 12; }, {kInvalid, 14, 12}},
      {"task alignment", select, [](D& d) { d.src[2] = 1; }, {kInvalid, 14, 1}},
      {"update alignment", update, [](D& d) { d.src[1] = 4; }, {kInvalid, 14, 4}},
      {"type of barrier", barrier, [](D& d) { d.type = 7; }, {kInvalid, 3, 7}},
      {"n_src of barrier", barrier, [](D& d) { d.n_src = 1; }, {kInvalid, 6, 1}},
      {"n_dst of barrier", barrier, [](D& d) { d.n_dst = 0; }, {kInvalid, 7, 0}},
      {"flags of barrier", barrier, [](D& d) { d.flags = 4; }, {kInvalid, 9, 4}},
      {"barrier of none", barrier, [](D& d) { d.count = 0; }, {kInvalid, 11, 0}},
      {"barrier of 65", barrier, [](D& d) { d.count = 65; }, {kInvalid, 11, 65}},
      {"own fence's line", barrier, [](D& d) { d.dst[0] = 200; }, {kInvalid, 13, 200}},
      {"own fence in host memory",
       barrier,
       [](D& d) { d.dst[0] = 0xf0ull << 56; },
       {kInvalid, 13, 0xf0ull << 56}},
      {"fences' line", barrier, [](D& d) { d.src[0] = 32; }, {kInvalid, 14, 32}},
      {"fences in host memory",
       barrier,
       [](D& d) { d.src[0] = 0xf0ull << 56; },
       {kInvalid, 14, 0xf0ull << 56}},
      {"src of barrier", barrier, [](D& d) { d.src[2] = 1; }, {kInvalid, 14, 1}},
  };
  return out;
}

TEST(Descriptor, NamesTheOneWrongField) {
  for (const Case& c : cases()) {
    ASSERT_EQ(check(c.base), kOk) << c.name;
    penstock_descriptor d = c.base;
    c.spoil(d);
    EXPECT_EQ(check(d), c.expected) << c.name;
  }
}

TEST(Descriptor, ScaleOfWideTypesUsesAllBits) {
  for (const std::uint8_t type : {PENSTOCK_F64, PENSTOCK_INT8, PENSTOCK_UINT64}) {
    penstock_descriptor d = make_reduce(type, PENSTOCK_PREMUL_SUM, 2);
    d.scale = ~0ull;
    EXPECT_EQ(check(d), kOk);
  }
}

TEST(Descriptor, TheFirstWrongFieldWins) {
  penstock_descriptor d;
  std::memset(&d, 0xff, sizeof(d));
  EXPECT_EQ(check(d), (Verdict{kInvalid, PENSTOCK_FIELD_OPCODE, 255}));
  d.opcode = PENSTOCK_OP_REDUCE;
  EXPECT_EQ(check(d).field, PENSTOCK_FIELD_VERSION);
  d.version = 1;
  EXPECT_EQ(check(d).field, PENSTOCK_FIELD_TYPE);
  d.type = PENSTOCK_F32;
  EXPECT_EQ(check(d).field, PENSTOCK_FIELD_REDOP);
  d.redop = PENSTOCK_PREMUL_SUM;
  EXPECT_EQ(check(d).field, PENSTOCK_FIELD_OUT_TYPE);
  d.out_type = PENSTOCK_F32;
  EXPECT_EQ(check(d).field, PENSTOCK_FIELD_N_SRC);
  d.n_src = 8;
  EXPECT_EQ(check(d).field, PENSTOCK_FIELD_N_DST);
  d.n_dst = 1;
  EXPECT_EQ(check(d).field, PENSTOCK_FIELD_RESERVED);
  d.block = 0;
  EXPECT_EQ(check(d).field, PENSTOCK_FIELD_FLAGS);
  d.flags = 0;
  EXPECT_EQ(check(d).field, PENSTOCK_FIELD_TIMEOUT);
  d.timeout_ms = 0;
  EXPECT_EQ(check(d).field, PENSTOCK_FIELD_COUNT);
  d.count = 1;
  EXPECT_EQ(check(d).field, PENSTOCK_FIELD_SCALE);
  d.scale = 0x3f800000;
  EXPECT_EQ(check(d).field, PENSTOCK_FIELD_DST);
  d.dst[0] = d.dst[1] = d.dst[2] = 0;
  EXPECT_EQ(check(d).field, PENSTOCK_FIELD_SRC);
}

}  // namespace
