#include <algorithm>
#include <bit>
#include <cstring>

#include "penstock/engine/conformance_operands.h"
#include "penstock/engine/conformance_reference.h"

namespace penstock::conformance {
namespace {

constexpr std::uint32_t kFolded[] = {PENSTOCK_F16,    PENSTOCK_F32,    PENSTOCK_BF16,
                                     PENSTOCK_F8E4M3, PENSTOCK_F8E5M2, PENSTOCK_INT8};

const std::vector<std::uint32_t>& few_sources(bool quick) {
  static const std::vector<std::uint32_t> all = {1, 2, 3, 8, 9, 64};
  static const std::vector<std::uint32_t> few = {1, 3, 9};
  return quick ? few : all;
}

double f32_value(std::uint64_t bits) {
  return reference_value(PENSTOCK_F32, static_cast<std::uint32_t>(bits));
}
std::uint32_t f32_code(double value) { return reference_code(PENSTOCK_F32, value); }

// Fills an operand of a type that is folded in f32, or of f64, and returns its elements' values.
std::vector<double> fill(std::uint32_t type, std::uint32_t block, std::uint64_t count,
                         std::uint64_t seed, std::uint32_t source, std::byte* data) {
  std::vector<double> values(count);
  if (type != PENSTOCK_INT8) {
    const std::uint32_t size = penstock_type_size(type);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t bits = element(bits_of(type), seed, source, i);
      std::memcpy(data + i * size, &bits, size);
      values[i] = type == PENSTOCK_F64 ? std::bit_cast<double>(bits)
                                       : reference_value(type, static_cast<std::uint32_t>(bits));
    }
    return values;
  }
  // What lies in the last record beyond `count` stays as the image filled it.
  for (std::uint64_t i = 0; i < count; ++i) {
    std::byte* const record = data + i / block * (4 + block);
    const std::uint64_t random = mix(seed ^ mix(i * 31 + source));
    // Scales as elements are: mostly ordinary, with zeros, subnormals, infinities and NaNs.
    const auto scale =
        static_cast<std::uint32_t>(element(bits_of(PENSTOCK_F32), seed + 7, source, i / block));
    if (i % block == 0) std::memcpy(record, &scale, sizeof scale);
    const auto code = static_cast<std::int8_t>(random % 16 == 0 ? -128 : random >> 8);
    std::memcpy(record + 4 + i % block, &code, 1);
    values[i] = reference_code_value(code, f32_value(scale));
  }
  return values;
}

// Writes f32 results as an operand of another type.
void write_result(std::uint32_t type, std::uint32_t block, const std::vector<double>& results,
                  std::byte* data) {
  if (type != PENSTOCK_INT8) {
    const std::uint32_t size = penstock_type_size(type);
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::uint32_t code = reference_code(type, results[i]);
      std::memcpy(data + i * size, &code, size);
    }
    return;
  }
  for (std::size_t first = 0; first < results.size(); first += block) {
    const std::size_t n = std::min<std::size_t>(block, results.size() - first);
    const auto begin = results.begin() + static_cast<std::ptrdiff_t>(first);
    const ReferenceRecord record =
        reference_record({begin, begin + static_cast<std::ptrdiff_t>(n)});
    const std::uint32_t scale = f32_code(record.scale);
    std::memcpy(data, &scale, sizeof scale);
    for (std::size_t i = 0; i < block; ++i)
      data[4 + i] = static_cast<std::byte>(i < n ? record.codes[i] : 0);
    data += 4 + block;
  }
}

struct Case {
  std::uint32_t type, out_type, block, redop;
  bool weighted;
  std::uint32_t n_src, n_dst;
  std::uint64_t count, seed;
  bool in_place;
};

// Ordinary weights, some of them zero, of either sign; never all.
std::vector<double> draw_weights(const Case& c) {
  std::vector<double> weights(c.n_src);
  for (std::uint32_t s = 0; s < c.n_src; ++s) {
    const std::uint64_t random = mix(c.seed + 900 + s);
    const double plain = static_cast<double>(static_cast<std::int64_t>(random % 2001) - 300) / 7;
    weights[s] = c.type == PENSTOCK_F64 ? plain : f32_value(f32_code(plain));
    if (random >> 60 < 4) weights[s] = (random >> 59 & 1) != 0 ? -0.0 : 0.0;
  }
  if (std::all_of(weights.begin(), weights.end(), [](double w) { return w == 0; }))
    weights[c.seed % c.n_src] = 3;
  return weights;
}

void store_weights(Rig& rig, std::uint32_t type, const std::vector<double>& weights) {
  std::byte* to = rig.memory() + kWeightsOffset;
  for (const double weight : weights) {
    const auto f32 = static_cast<float>(weight);
    if (type == PENSTOCK_F64)
      std::memcpy(to, &weight, sizeof weight);
    else
      std::memcpy(to, &f32, sizeof f32);
    to += type == PENSTOCK_F64 ? sizeof weight : sizeof f32;
  }
  rig.publish(kWeightsOffset, PENSTOCK_MAX_SOURCES * sizeof(double));
}

void finish(Rig& rig, const penstock_descriptor& d, Image& image, const std::string& where,
            std::uint64_t compared, Tally* tally) {
  const Result<penstock_completion> done = rig.run(d);
  tally->compared(compared);
  if (!done.ok()) return tally->fail(where + ": " + done.status().message());
  tally->expect(done.value().status == PENSTOCK_OK,
                where + ": completed with " + describe(done.value()));
  if (const std::string wrong = image.compare(1); !wrong.empty()) tally->fail(where + ": " + wrong);
}

penstock_descriptor reduce_descriptor(const Case& c) {
  penstock_descriptor d = make_descriptor(PENSTOCK_OP_REDUCE, c.n_src, c.n_dst);
  d.type = static_cast<std::uint8_t>(c.type);
  d.out_type = static_cast<std::uint8_t>(c.out_type);
  d.block = static_cast<std::uint8_t>(c.block);
  d.redop = static_cast<std::uint8_t>(c.redop);
  d.count = c.count;
  if (c.weighted) d.flags |= PENSTOCK_FLAG_WEIGHTS;
  return d;
}

void run_case(Rig& rig, const Case& c, Tally* tally) {
  Image image(rig);
  std::vector<std::vector<double>> values(c.n_src);
  std::vector<penstock_address> src(c.n_src);
  const std::uint64_t src_bytes = penstock_operand_bytes(c.type, c.block, c.count);
  const std::uint64_t dst_bytes = penstock_operand_bytes(c.out_type, c.block, c.count);
  for (std::uint32_t s = 0; s < c.n_src; ++s) {
    std::byte* data = image.lay(s, mix(c.seed + s) % 64, src_bytes);
    values[s] = fill(c.type, c.block, c.count, c.seed, s, data);
    src[s] = image.address(s);
  }
  std::vector<std::size_t> targets;
  if (c.in_place) targets.push_back(c.seed % c.n_src);
  for (std::uint32_t k = 0; targets.size() < c.n_dst; ++k) {
    image.lay(PENSTOCK_MAX_SOURCES + k, mix(c.seed + 100 + k) % 64, dst_bytes);
    targets.push_back(c.n_src + k);
  }
  penstock_descriptor d = reduce_descriptor(c);
  if (mix(c.seed + 200) % 4 == 0) d.flags |= PENSTOCK_FLAG_STREAM;
  for (std::uint32_t k = 0; k < c.n_dst; ++k) d.dst[k] = image.address(targets[k]);
  set_sources(rig, src, &d);
  std::vector<double> weights;
  d.scale = scale_for(PENSTOCK_F32, c.redop, c.seed);
  if (c.weighted) {
    weights = draw_weights(c);
    store_weights(rig, c.type, weights);
    d.scale = rig.address(kWeightsOffset);
  }
  image.store();

  std::vector<double> results(c.count);
  std::vector<std::uint64_t> wide(c.count);
  for (std::uint64_t i = 0; i < c.count; ++i) {
    std::vector<double> at(c.n_src);
    for (std::uint32_t s = 0; s < c.n_src; ++s) at[s] = values[s][i];
    if (c.type == PENSTOCK_F64)
      wide[i] = reference_weighted_f64(c.redop, weights, at);
    else
      results[i] = reference_fold_f32(c.redop, d.scale, weights, at);
  }
  const bool copies = c.n_src == 1 && c.redop != PENSTOCK_PREMUL_SUM && c.type == c.out_type;
  for (const std::size_t target : targets) {
    if (copies && !c.weighted)
      std::memcpy(image.expected(target), image.expected(0), src_bytes);
    else if (c.type == PENSTOCK_F64)
      std::memcpy(image.expected(target), wide.data(), dst_bytes);
    else
      write_result(c.out_type, c.block, results, image.expected(target));
  }
  const std::string where = fmt::format(
      "{} of {} to {}, block {}, n_src {}, n_dst {}, count {}, in place {}, flags {}, seed {}",
      penstock_redop_name(c.redop), penstock_type_name(c.type), penstock_type_name(c.out_type),
      c.block, c.n_src, c.n_dst, c.count, c.in_place, d.flags, c.seed);
  finish(rig, d, image, where, c.count * c.n_dst, tally);
}

// One row: every length and number of sources; what the row leaves open is drawn.
struct Row {
  std::string operation;
  std::uint32_t type, out_type;
  bool weighted = false;
  std::uint32_t redop = PENSTOCK_REDOP_COUNT;  // COUNT: any
};

void check_row(Rig& rig, const Row& row, std::vector<ConformanceRow>* rows) {
  const bool blocks = row.type == PENSTOCK_INT8 || row.out_type == PENSTOCK_INT8;
  const std::string type_name = penstock_type_name(row.type);
  Case c{};
  c.type = row.type;
  c.out_type = row.out_type;
  c.block = blocks ? 32 : 0;
  c.redop = row.redop == PENSTOCK_REDOP_COUNT ? std::uint32_t{PENSTOCK_SUM} : row.redop;
  c.weighted = row.weighted;
  c.n_src = c.n_dst = 1;
  c.count = 1;
  penstock_descriptor probe = reduce_descriptor(c);
  probe.src[0] = rig.address(0);
  probe.dst[0] = rig.address(kSlot);
  if (row.weighted) probe.scale = rig.address(kWeightsOffset);
  if (refused(rig, probe, row.operation, type_name, rows)) return;
  Tally tally;
  const Capabilities& caps = rig.capabilities();
  std::uint64_t seed = rig.options().seed * 3'000'017 + row.type * 1013 + row.out_type * 103 +
                       (row.weighted ? 11 * row.redop + 7 : 0);
  for (const std::uint32_t n_src : few_sources(rig.options().quick)) {
    if (n_src > caps.max_sources) continue;
    for (const std::uint64_t count : lengths(rig.options().quick)) {
      if (tally.failed()) break;
      if (count * 8 > caps.max_bytes || (count > 255 && n_src > 9)) continue;
      ++seed;
      c.n_src = n_src;
      c.count = count;
      c.seed = seed;
      c.block = !blocks ? 0 : (mix(seed) >> 20 & 1) != 0 ? 64 : 32;
      if (row.redop == PENSTOCK_REDOP_COUNT)
        c.redop = static_cast<std::uint32_t>(mix(seed + 5) % PENSTOCK_REDOP_COUNT);
      const bool one_size = c.type == c.out_type || (!blocks && penstock_type_size(c.type) ==
                                                                    penstock_type_size(c.out_type));
      c.in_place = one_size && (mix(seed) >> 33 & 1) != 0;
      c.n_dst = 1 + static_cast<std::uint32_t>(mix(seed) % std::min(caps.max_destinations, 3u));
      run_case(rig, c, &tally);
    }
  }
  rows->push_back(tally.row(row.operation, type_name));
}

void check_zero_weights(Rig& rig, std::vector<ConformanceRow>* rows) {
  Case c{PENSTOCK_F32, PENSTOCK_F32, 0, PENSTOCK_AVG, true, 2, 1, 5, 1, false};
  penstock_descriptor d = reduce_descriptor(c);
  Image image(rig);
  for (std::uint32_t k = 0; k < 3; ++k) image.lay(k, k, 20);
  d.src[0] = image.address(0);
  d.src[1] = image.address(1);
  d.dst[0] = image.address(2);
  d.scale = rig.address(kWeightsOffset);
  if (refused(rig, d, "WEIGHTS all zero", "", rows)) return;
  store_weights(rig, c.type, {0.0, -0.0});
  image.store();
  Tally tally;
  const Result<penstock_completion> done = rig.run(d);
  tally.expect(done.ok() && done.value().status == PENSTOCK_INVALID_ARGUMENT &&
                   done.value().field == PENSTOCK_FIELD_WEIGHTS && done.value().detail == d.scale,
               done.ok() ? describe(done.value()) : done.status().message());
  const std::string wrong = image.compare(1);
  tally.expect(wrong.empty(), "memory was touched: " + wrong);
  rows->push_back(tally.row("WEIGHTS all zero"));
}

void run_outer_step(Rig& rig, const Case& c, Tally* tally) {
  Image image(rig);
  std::vector<std::vector<double>> deltas(c.n_src);
  std::vector<penstock_address> src(c.n_src);
  for (std::uint32_t s = 0; s < c.n_src; ++s) {
    std::byte* data =
        image.lay(s, mix(c.seed + s) % 64, penstock_operand_bytes(c.type, c.block, c.count));
    deltas[s] = fill(c.type, c.block, c.count, c.seed, s, data);
    src[s] = image.address(s);
  }
  std::vector<double> state[2];
  for (std::uint32_t k = 0; k < 2; ++k) {
    std::byte* data = image.lay(PENSTOCK_MAX_SOURCES + k, mix(c.seed + 50 + k) % 64, c.count * 4);
    state[k] = fill(PENSTOCK_F32, 0, c.count, c.seed + 1 + k, 99, data);
  }
  const float rates[] = {0.7f, 1.0f, 0x1p-140f, -0.5f};
  const float factors[] = {0.9f, 0.0f, 1.0f, 0.99f};
  const float rate = rates[c.seed % 4], factor = factors[c.seed / 4 % 4];
  penstock_descriptor d = make_descriptor(PENSTOCK_OP_OUTER_STEP, c.n_src, 2);
  d.type = static_cast<std::uint8_t>(c.type);
  d.out_type = PENSTOCK_F32;
  d.redop = PENSTOCK_AVG;
  d.block = static_cast<std::uint8_t>(c.block);
  d.count = c.count;
  d.scale = std::bit_cast<std::uint32_t>(rate) | std::uint64_t{std::bit_cast<std::uint32_t>(factor)}
                                                     << 32;
  d.dst[0] = image.address(c.n_src);
  d.dst[1] = image.address(c.n_src + 1);
  set_sources(rig, src, &d);
  image.store();
  for (std::uint64_t i = 0; i < c.count; ++i) {
    std::vector<double> at(c.n_src);
    for (std::uint32_t s = 0; s < c.n_src; ++s) at[s] = deltas[s][i];
    reference_outer_step(at, double{rate}, double{factor}, &state[0][i], &state[1][i]);
  }
  for (std::uint32_t k = 0; k < 2; ++k)
    write_result(PENSTOCK_F32, 0, state[k], image.expected(c.n_src + k));
  finish(rig, d, image,
         fmt::format("OUTER_STEP of {}, block {}, n_src {}, count {}, seed {}",
                     penstock_type_name(c.type), c.block, c.n_src, c.count, c.seed),
         c.count * 2, tally);
}

void check_outer_step(Rig& rig, std::uint32_t type, std::vector<ConformanceRow>* rows) {
  const std::string type_name = penstock_type_name(type);
  penstock_descriptor probe = make_descriptor(PENSTOCK_OP_OUTER_STEP, 1, 2);
  probe.type = static_cast<std::uint8_t>(type);
  probe.out_type = PENSTOCK_F32;
  probe.redop = PENSTOCK_AVG;
  probe.block = type == PENSTOCK_INT8 ? 32 : 0;
  probe.count = 1;
  probe.src[0] = rig.address(0);
  probe.dst[0] = rig.address(kSlot);
  probe.dst[1] = rig.address(2 * kSlot);
  if (refused(rig, probe, "OUTER_STEP", type_name, rows)) return;
  Tally tally;
  std::uint64_t seed = rig.options().seed * 5'000'011 + type * 1013;
  for (const std::uint32_t n_src : few_sources(rig.options().quick)) {
    if (n_src > rig.capabilities().max_sources) continue;
    for (const std::uint64_t count : lengths(rig.options().quick)) {
      if (tally.failed()) break;
      if (count * 4 > rig.capabilities().max_bytes || (count > 255 && n_src > 9)) continue;
      ++seed;
      Case c{};
      c.type = type;
      c.block = type != PENSTOCK_INT8 ? 0 : (mix(seed) & 1) != 0 ? 64 : 32;
      c.n_src = n_src;
      c.count = count;
      c.seed = seed;
      run_outer_step(rig, c, &tally);
    }
  }
  rows->push_back(tally.row("OUTER_STEP", type_name));
}

}  // namespace

void check_fused(Rig& rig, std::vector<ConformanceRow>* rows) {
  for (const std::uint32_t out : kFolded) {
    if (out == PENSTOCK_INT8) continue;
    for (const std::uint32_t type : kFolded)
      if (type != out && type != PENSTOCK_INT8)
        check_row(rig, {fmt::format("REDUCE to {}", penstock_type_name(out)), type, out}, rows);
  }
  for (const std::uint32_t type : kFolded)
    if (type != PENSTOCK_INT8) check_row(rig, {"quantise", type, PENSTOCK_INT8}, rows);
  for (const std::uint32_t out : kFolded)
    check_row(rig, {fmt::format("blocks to {}", penstock_type_name(out)), PENSTOCK_INT8, out},
              rows);
  for (const std::uint32_t redop : {PENSTOCK_PREMUL_SUM, PENSTOCK_AVG}) {
    const char* name = redop == PENSTOCK_AVG ? "weighted avg" : "weighted sum";
    for (std::uint32_t type = PENSTOCK_F16; type < PENSTOCK_TYPE_COUNT; ++type)
      check_row(rig, {name, type, type, true, redop}, rows);
    check_row(rig, {name, PENSTOCK_INT8, PENSTOCK_F32, true, redop}, rows);
  }
  check_zero_weights(rig, rows);
  for (const std::uint32_t type : kFolded) check_outer_step(rig, type, rows);
}

}  // namespace penstock::conformance
