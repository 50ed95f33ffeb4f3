// The check of a record, against the definition that all engines share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <verilated.h>

#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "Vpenstock_check.h"
#include "penstock/engine/accept.h"
#include "penstock/rtl/coverage/save_coverage.h"

namespace penstock::rtl {
namespace {

// What the card says of itself (penstock_check's parameters).
Capabilities card() {
  Capabilities c;
  c.opcodes = 0x13f;
  for (std::uint32_t type = 0; type < PENSTOCK_TYPE_COUNT; ++type)
    c.redops[type] = type == PENSTOCK_F64 ? 0 : 0x3f;
  const std::uint32_t floats[] = {PENSTOCK_F16, PENSTOCK_F32, PENSTOCK_BF16, PENSTOCK_F8E4M3,
                                  PENSTOCK_F8E5M2};
  for (const std::uint32_t from : floats)
    for (const std::uint32_t to : floats) c.out_types[from] |= 1u << to;
  c.max_sources = 64;
  c.max_destinations = 3;
  c.max_bytes = std::uint64_t{1} << 32;
  c.max_rows = 131072;
  return c;
}

struct Verdict {
  std::uint32_t status, field;
  std::uint64_t detail;
  bool operator==(const Verdict&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Verdict& v) {
  return out << penstock_status_name(v.status) << ' ' << penstock_field_name(v.field) << std::hex
             << " 0x" << v.detail << std::dec;
}

class Check : public testing::Test {
 protected:
  Check() {
    context_->randReset(2);
    model_ = std::make_unique<Vpenstock_check>(context_.get());
    model_->clk_i = 0;
    model_->eval();
    forget_toggles(*context_);
  }
  ~Check() override {
    model_->final();
    save_coverage(*context_);
  }

  Verdict ask(const penstock_descriptor& d) {
    std::memcpy(model_->record_i.data(), &d, sizeof d);
    for (int cycle = 0; cycle < 2; ++cycle) {
      model_->valid_i = cycle == 0;
      model_->clk_i = 0;
      model_->eval();
      model_->clk_i = 1;
      model_->eval();
    }
    return {model_->status_o, model_->field_o, model_->detail_o};
  }

  void compare(const penstock_descriptor& d) {
    Verdict expected{};
    expected.status = check_descriptor(card_, d, &expected.field, &expected.detail);
    const Verdict got = ask(d);
    ++compared_;
    ++seen_[{expected.status, expected.field}];
    if (got == expected) return;
    std::uint32_t words[32];
    std::memcpy(words, &d, sizeof d);
    std::string text;
    for (const std::uint32_t word : words) text += fmt::format("{:08x} ", word);
    ADD_FAILURE() << "expected " << expected << ", got " << got << " for " << text;
  }

  const Capabilities card_ = card();
  std::mt19937_64 random_{2026};
  std::uint64_t compared_ = 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> seen_;

 private:
  std::unique_ptr<VerilatedContext> context_ = std::make_unique<VerilatedContext>();
  std::unique_ptr<Vpenstock_check> model_;
};

penstock_descriptor make(std::uint8_t opcode, std::uint8_t n_src, std::uint8_t n_dst) {
  penstock_descriptor d{};
  d.opcode = opcode;
  d.version = PENSTOCK_DESCRIPTOR_VERSION;
  d.n_src = n_src;
  d.n_dst = n_dst;
  for (std::uint32_t i = 0; i < n_dst; ++i) d.dst[i] = 0x10000 * (i + 1);
  for (std::uint32_t i = 0; i < n_src && i < 8; ++i) d.src[i] = 0x100000 * (i + 1);
  if (n_src > 8) {
    d.flags = PENSTOCK_FLAG_SRC_LIST;
    for (std::uint32_t i = 1; i < 8; ++i) d.src[i] = 0;
  }
  return d;
}

penstock_descriptor make_reduce(std::uint8_t type, std::uint8_t redop, std::uint8_t n) {
  penstock_descriptor d = make(PENSTOCK_OP_REDUCE, n, 1);
  d.type = d.out_type = type;
  d.redop = redop;
  d.count = 100;
  if (redop == PENSTOCK_PREMUL_SUM) d.scale = 0x3f800000;
  return d;
}

std::vector<penstock_descriptor> sound() {
  std::vector<penstock_descriptor> all = {
      make(PENSTOCK_OP_NOP, 0, 0),    make(PENSTOCK_OP_COPY, 1, 1),
      make(PENSTOCK_OP_COPY, 1, 3),   make(PENSTOCK_OP_SIGNAL, 1, 1),
      make(PENSTOCK_OP_WAIT, 2, 0),   make(PENSTOCK_OP_SELECT, 3, 1),
      make(PENSTOCK_OP_UPDATE, 2, 0), make(PENSTOCK_OP_BARRIER, 2, 1)};
  all.back().count = 8;
  all[5].flags = PENSTOCK_FLAG_COMMIT;
  for (std::uint8_t type = 0; type < PENSTOCK_TYPE_COUNT; ++type) {
    for (std::uint8_t redop = 0; redop < PENSTOCK_REDOP_COUNT; ++redop) {
      for (const std::uint8_t n : {1, 2, 8, 9, 64}) all.push_back(make_reduce(type, redop, n));
    }
    for (std::uint8_t out = 0; out < PENSTOCK_TYPE_COUNT; ++out) {
      all.push_back(make_reduce(type, PENSTOCK_SUM, 2));
      all.back().out_type = out;
      for (const std::uint8_t block : {32, 64}) {
        all.push_back(all.back());
        all.back().block = block;
      }
    }
  }
  penstock_descriptor weighted = make_reduce(PENSTOCK_F32, PENSTOCK_AVG, 2);
  weighted.flags = PENSTOCK_FLAG_WEIGHTS;
  weighted.scale = 0x800;
  all.push_back(weighted);
  penstock_descriptor step = make_reduce(PENSTOCK_F16, PENSTOCK_AVG, 2);
  step.opcode = PENSTOCK_OP_OUTER_STEP;
  step.out_type = PENSTOCK_F32;
  step.n_dst = 2;
  step.dst[1] = 0x20000;
  step.scale = 0x3f0000003f000000;
  all.push_back(step);
  return all;
}

// Values at the edges of what any field may hold.
std::vector<std::uint64_t> edges() {
  std::vector<std::uint64_t> all;
  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t power = std::uint64_t{1} << bit;
    all.insert(all.end(), {power - 1, power, power + 1, ~power});
  }
  for (const std::uint64_t space : {0ull, 1ull, 15ull, 16ull, 0xefull, 0xf0ull, 0xf1ull, 0xffull})
    for (const std::uint64_t offset : {0ull, 1ull, 4ull, 8ull, 32ull, 64ull, 72ull, 0x10000ull})
      all.push_back(space << 56 | offset);
  all.insert(all.end(), {0, 3, 5, 6, 7, 9, 11, 12, 63, 65, 0xffffffff, ~std::uint64_t{0}});
  return all;
}

TEST_F(Check, EachByteOfSoundRecordsWithEachValue) {
  for (const penstock_descriptor& good : sound()) compare(good);
  const std::vector<penstock_descriptor> all = sound();
  for (std::size_t i = 0; i < all.size(); i += i < 8 ? 1 : 97) {
    for (std::size_t byte = 0; byte < sizeof(penstock_descriptor); ++byte) {
      for (std::uint32_t value = 0; value < 256; ++value) {
        penstock_descriptor d = all[i];
        reinterpret_cast<std::uint8_t*>(&d)[byte] = static_cast<std::uint8_t>(value);
        compare(d);
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(compared_, 300000U);
}

TEST_F(Check, EachFieldAtItsEdges) {
  const std::vector<std::uint64_t> values = edges();
  const std::size_t words[] = {24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120};
  for (const penstock_descriptor& good : sound()) {
    if (good.opcode == PENSTOCK_OP_REDUCE && random_() % 16 != 0) continue;
    for (const std::size_t offset : words) {
      for (const std::uint64_t value : values) {
        penstock_descriptor d = good;
        std::memcpy(reinterpret_cast<std::uint8_t*>(&d) + offset, &value, sizeof value);
        compare(d);
      }
    }
    for (const std::size_t offset : {8u, 12u}) {
      for (const std::uint64_t value : values) {
        penstock_descriptor d = good;
        std::memcpy(reinterpret_cast<std::uint8_t*>(&d) + offset, &value, sizeof(std::uint32_t));
        compare(d);
      }
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(compared_, 100000U);
}

// Several fields at once, so that the order of findings matters.
TEST_F(Check, RandomRecords) {
  const std::vector<penstock_descriptor> all = sound();
  const std::vector<std::uint64_t> values = edges();
  for (int round = 0; round < 250000 && !HasFailure(); ++round) {
    penstock_descriptor d = all[random_() % all.size()];
    if (random_() % 4 == 0) d = all[random_() % 8];
    auto* bytes = reinterpret_cast<std::uint8_t*>(&d);
    const std::uint64_t changes = random_() % 5;
    for (std::uint64_t i = 0; i < changes; ++i) {
      switch (random_() % 4) {
        case 0:
          bytes[random_() % 8] = static_cast<std::uint8_t>(random_() % 16);
          break;
        case 1:
          bytes[random_() % sizeof d] = static_cast<std::uint8_t>(random_());
          break;
        case 2:
          d.flags = static_cast<std::uint32_t>(random_() % 32);
          break;
        default:
          std::memcpy(bytes + 24 + 8 * (random_() % 13), &values[random_() % values.size()], 8);
      }
    }
    compare(d);
  }
  // Every finding that there is was among them.
  for (std::uint32_t field = PENSTOCK_FIELD_OPCODE; field <= PENSTOCK_FIELD_SRC; ++field) {
    if (field == PENSTOCK_FIELD_VERSION) continue;
    EXPECT_GT((seen_[{PENSTOCK_INVALID_ARGUMENT, field}]), 20U) << penstock_field_name(field);
  }
  for (const std::uint32_t field :
       {PENSTOCK_FIELD_OPCODE, PENSTOCK_FIELD_VERSION, PENSTOCK_FIELD_TYPE, PENSTOCK_FIELD_REDOP,
        PENSTOCK_FIELD_OUT_TYPE, PENSTOCK_FIELD_FLAGS, PENSTOCK_FIELD_COUNT, PENSTOCK_FIELD_DST,
        PENSTOCK_FIELD_SRC}) {
    EXPECT_GT((seen_[{PENSTOCK_UNSUPPORTED, field}]), 5U) << penstock_field_name(field);
  }
  EXPECT_GT((seen_[{PENSTOCK_OK, PENSTOCK_FIELD_NONE}]), 1000U);
}

}  // namespace
}  // namespace penstock::rtl
