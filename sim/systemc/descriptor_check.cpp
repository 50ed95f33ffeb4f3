#include "penstock/sim/systemc/descriptor_check.h"

#include "penstock/sim/systemc/arithmetic.h"

namespace penstock::systemc {
namespace {

constexpr std::uint32_t kBlockBytes = 4;  // of the scale before a block's codes

Answer invalid(std::uint32_t field, std::uint64_t detail) {
  return {PENSTOCK_INVALID_ARGUMENT, field, detail};
}
Answer unsupported(std::uint32_t field, std::uint64_t detail) {
  return {PENSTOCK_UNSUPPORTED, field, detail};
}

bool folds(const penstock_descriptor& d) {
  return d.opcode == PENSTOCK_OP_REDUCE || d.opcode == PENSTOCK_OP_OUTER_STEP;
}
bool in_blocks(std::uint32_t type, std::uint32_t block) {
  return type == PENSTOCK_INT8 && block != 0;
}
bool folded_in_f32(std::uint32_t type, std::uint32_t block) {
  return in_blocks(type, block) || (CardLimits::kInF32 >> type & 1) != 0;
}
std::uint64_t operand_bytes(std::uint32_t type, std::uint32_t block, std::uint64_t count) {
  if (!in_blocks(type, block)) return count * Fold::element_bytes(type);
  return (count + block - 1) / block * (kBlockBytes + block);
}

// How many sources, destinations and elements an opcode takes.
struct Range {
  std::uint64_t least, most;
  bool holds(std::uint64_t value) const { return value >= least && value <= most; }
};
struct Shape {
  Range sources, destinations, count;
  std::uint32_t flags;
};
Shape shape_of(std::uint32_t opcode) {
  constexpr std::uint32_t kList = PENSTOCK_FLAG_SRC_LIST;
  switch (opcode) {
    case PENSTOCK_OP_COPY:
      return {{1, 1}, {1, 3}, {0, PENSTOCK_MAX_COUNT}, PENSTOCK_FLAG_STREAM};
    case PENSTOCK_OP_REDUCE:
      return {{1, 64},
              {1, 3},
              {0, PENSTOCK_MAX_COUNT},
              kList | PENSTOCK_FLAG_STREAM | PENSTOCK_FLAG_WEIGHTS};
    case PENSTOCK_OP_OUTER_STEP:
      return {{1, 64}, {2, 2}, {0, PENSTOCK_MAX_COUNT}, kList};
    case PENSTOCK_OP_SIGNAL:
      return {{1, 1}, {1, 1}, {0, 0}, 0};
    case PENSTOCK_OP_WAIT:
      return {{2, 2}, {0, 0}, {0, 0}, 0};
    case PENSTOCK_OP_BARRIER:
      return {{2, 2}, {1, 1}, {1, 64}, 0};
    case PENSTOCK_OP_SELECT:
      return {{3, 3}, {1, 1}, {0, PENSTOCK_MAX_TASKS}, PENSTOCK_FLAG_COMMIT};
    case PENSTOCK_OP_UPDATE:
      return {{2, 2}, {0, 0}, {0, PENSTOCK_MAX_UPDATES}, 0};
    default:
      return {{0, 0}, {0, 0}, {0, 0}, 0};
  }
}

Answer check_types(const penstock_descriptor& d) {
  if (!folds(d)) {
    if (d.type != 0) return invalid(PENSTOCK_FIELD_TYPE, d.type);
    if (d.redop != 0) return invalid(PENSTOCK_FIELD_REDOP, d.redop);
    if (d.out_type != 0) return invalid(PENSTOCK_FIELD_OUT_TYPE, d.out_type);
    return {};
  }
  if (d.type >= PENSTOCK_TYPE_COUNT) return invalid(PENSTOCK_FIELD_TYPE, d.type);
  if (d.redop >= PENSTOCK_REDOP_COUNT) return invalid(PENSTOCK_FIELD_REDOP, d.redop);
  if (d.out_type >= PENSTOCK_TYPE_COUNT) return invalid(PENSTOCK_FIELD_OUT_TYPE, d.out_type);
  if (d.opcode == PENSTOCK_OP_OUTER_STEP) {
    if (!folded_in_f32(d.type, d.block)) return unsupported(PENSTOCK_FIELD_TYPE, d.type);
    if (d.redop != PENSTOCK_AVG) return unsupported(PENSTOCK_FIELD_REDOP, d.redop);
    if (d.out_type != PENSTOCK_F32) return unsupported(PENSTOCK_FIELD_OUT_TYPE, d.out_type);
    return {};
  }
  const bool converts = d.type != d.out_type;
  if (converts && !(folded_in_f32(d.type, d.block) && folded_in_f32(d.out_type, d.block)))
    return unsupported(PENSTOCK_FIELD_OUT_TYPE, d.out_type);
  return {};
}

bool block_is_right(const penstock_descriptor& d) {
  if (d.block == 0) return true;
  const bool has_int8 = d.type == PENSTOCK_INT8 || d.out_type == PENSTOCK_INT8;
  return folds(d) && has_int8 && (d.block == 32 || d.block == 64);
}

Answer check_flags(const penstock_descriptor& d, const Shape& shape) {
  const bool listed = (d.flags & PENSTOCK_FLAG_SRC_LIST) != 0;
  if ((d.flags & ~shape.flags) != 0 || listed != (d.n_src > PENSTOCK_INLINE_SOURCES))
    return invalid(PENSTOCK_FIELD_FLAGS, d.flags);
  if ((d.flags & PENSTOCK_FLAG_WEIGHTS) == 0) return {};
  if (d.redop != PENSTOCK_AVG && d.redop != PENSTOCK_PREMUL_SUM)
    return invalid(PENSTOCK_FIELD_FLAGS, d.flags);
  if (!folded_in_f32(d.type, d.block) && d.type != PENSTOCK_F64)
    return unsupported(PENSTOCK_FIELD_FLAGS, d.flags);
  return {};
}

bool is_pool(penstock_address a) { return a >> 56 < PENSTOCK_MAX_DEVICES; }
bool is_host(penstock_address a) { return a >> 56 == PENSTOCK_SPACE_HOST; }

bool scale_is_right(const penstock_descriptor& d) {
  if (d.opcode == PENSTOCK_OP_OUTER_STEP) return true;
  if ((d.flags & PENSTOCK_FLAG_WEIGHTS) != 0)
    return (is_pool(d.scale) || is_host(d.scale)) && d.scale % 8 == 0;
  if (d.opcode != PENSTOCK_OP_REDUCE || d.redop != PENSTOCK_PREMUL_SUM) return d.scale == 0;
  return !folded_in_f32(d.type, d.block) || d.scale <= 0xffffffffu;
}

// What stands in an entry of src or dst.
enum class Entry { value, bytes, words, line, fence };
bool entry_is_right(Entry entry, penstock_address a) {
  switch (entry) {
    case Entry::value:
      return true;
    case Entry::bytes:
      return is_pool(a) || is_host(a);
    case Entry::words:
      return (is_pool(a) || is_host(a)) && a % 8 == 0;
    case Entry::line:
      return (is_pool(a) || is_host(a)) && a % 64 == 0;
    case Entry::fence:
      break;
  }
  return is_pool(a) && a % 64 == 0;
}
Entry source_entry(const penstock_descriptor& d, std::uint32_t index) {
  switch (d.opcode) {
    case PENSTOCK_OP_SIGNAL:
      return Entry::value;
    case PENSTOCK_OP_WAIT:
    case PENSTOCK_OP_BARRIER:
      return index == 0 ? Entry::fence : Entry::value;
    case PENSTOCK_OP_SELECT:
    case PENSTOCK_OP_UPDATE:
      return index == 0 ? Entry::line : Entry::words;
    default:
      return (d.flags & PENSTOCK_FLAG_SRC_LIST) != 0 ? Entry::words : Entry::bytes;
  }
}
Entry destination_entry(const penstock_descriptor& d) {
  if (d.opcode == PENSTOCK_OP_SIGNAL || d.opcode == PENSTOCK_OP_BARRIER) return Entry::fence;
  return d.opcode == PENSTOCK_OP_SELECT ? Entry::words : Entry::bytes;
}

Answer check_addresses(const penstock_descriptor& d) {
  for (std::uint32_t i = 0; i < PENSTOCK_MAX_DESTINATIONS; ++i) {
    bool right = i < d.n_dst ? entry_is_right(destination_entry(d), d.dst[i]) : d.dst[i] == 0;
    for (std::uint32_t j = 0; j < i && i < d.n_dst; ++j) right = right && d.dst[j] != d.dst[i];
    if (!right) return invalid(PENSTOCK_FIELD_DST, d.dst[i]);
  }
  const std::uint32_t used = (d.flags & PENSTOCK_FLAG_SRC_LIST) != 0 ? 1 : d.n_src;
  for (std::uint32_t i = 0; i < PENSTOCK_INLINE_SOURCES; ++i) {
    const bool right = i < used ? entry_is_right(source_entry(d, i), d.src[i]) : d.src[i] == 0;
    if (!right) return invalid(PENSTOCK_FIELD_SRC, d.src[i]);
  }
  return {};
}

Answer check_form(const penstock_descriptor& d) {
  if (d.opcode >= PENSTOCK_OP_COUNT) return invalid(PENSTOCK_FIELD_OPCODE, d.opcode);
  if (d.version != PENSTOCK_DESCRIPTOR_VERSION)
    return unsupported(PENSTOCK_FIELD_VERSION, d.version);
  if (const Answer types = check_types(d); !types.ok()) return types;
  const Shape shape = shape_of(d.opcode);
  if (!shape.sources.holds(d.n_src)) return invalid(PENSTOCK_FIELD_N_SRC, d.n_src);
  if (!shape.destinations.holds(d.n_dst)) return invalid(PENSTOCK_FIELD_N_DST, d.n_dst);
  if (!block_is_right(d)) return invalid(PENSTOCK_FIELD_BLOCK, d.block);
  if (const Answer flags = check_flags(d, shape); !flags.ok()) return flags;
  const bool waits = d.opcode == PENSTOCK_OP_WAIT || d.opcode == PENSTOCK_OP_BARRIER;
  if (!waits && d.timeout_ms != 0) return invalid(PENSTOCK_FIELD_TIMEOUT, d.timeout_ms);
  if (!shape.count.holds(d.count)) return invalid(PENSTOCK_FIELD_COUNT, d.count);
  if (!scale_is_right(d)) return invalid(PENSTOCK_FIELD_SCALE, d.scale);
  return check_addresses(d);
}

// What is well formed, but more than this card does.
Answer check_abilities(const penstock_descriptor& d) {
  if ((CardLimits::kOpcodes >> d.opcode & 1) == 0)
    return unsupported(PENSTOCK_FIELD_OPCODE, d.opcode);
  if (d.opcode == PENSTOCK_OP_REDUCE) {
    const bool blocks = in_blocks(d.type, d.block);
    if (!blocks && CardLimits::redops(d.type) == 0) return unsupported(PENSTOCK_FIELD_TYPE, d.type);
    if ((blocks || d.type != d.out_type) && (CardLimits::out_types(d.type) >> d.out_type & 1) == 0)
      return unsupported(PENSTOCK_FIELD_OUT_TYPE, d.out_type);
    if ((d.flags & PENSTOCK_FLAG_WEIGHTS) != 0) return unsupported(PENSTOCK_FIELD_FLAGS, d.flags);
  }
  const std::uint64_t limit = std::uint64_t{1} << CardLimits::kMaxBytesLog2;
  if (d.opcode == PENSTOCK_OP_REDUCE && (operand_bytes(d.type, d.block, d.count) > limit ||
                                         operand_bytes(d.out_type, d.block, d.count) > limit))
    return unsupported(PENSTOCK_FIELD_COUNT, d.count);
  if (d.opcode == PENSTOCK_OP_COPY && d.count > limit)
    return unsupported(PENSTOCK_FIELD_COUNT, d.count);
  // The host's own memory is out of reach.
  for (std::uint32_t i = 0; i < d.n_dst; ++i)
    if (is_host(d.dst[i])) return unsupported(PENSTOCK_FIELD_DST, d.dst[i]);
  const std::uint32_t used = (d.flags & PENSTOCK_FLAG_SRC_LIST) != 0 ? 1 : d.n_src;
  for (std::uint32_t i = 0; i < used; ++i)
    if (source_entry(d, i) != Entry::value && is_host(d.src[i]))
      return unsupported(PENSTOCK_FIELD_SRC, d.src[i]);
  return {};
}

}  // namespace

Answer check_record(const penstock_descriptor& record) {
  const Answer form = check_form(record);
  return form.ok() ? check_abilities(record) : form;
}

}  // namespace penstock::systemc
