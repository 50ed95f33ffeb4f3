#include "penstock/descriptor/descriptor.h"

#include <stddef.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const char* const kTypeNames[] = {"int8", "uint8", "int32", "uint32", "int64",  "uint64",
                                         "f16",  "f32",   "f64",   "bf16",   "f8e4m3", "f8e5m2"};
static const uint8_t kTypeSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
static const char* const kRedopNames[] = {"sum", "prod", "min", "max", "avg", "premul_sum"};
static const char* const kOpcodeNames[] = {"NOP",    "COPY",   "REDUCE",     "SIGNAL", "WAIT",
                                           "SELECT", "UPDATE", "OUTER_STEP", "BARRIER"};
static const char* const kStatusNames[] = {
    "ok",        "invalid_argument", "unsupported",       "out_of_range",      "no_space",
    "not_found", "already_exists",   "permission_denied", "deadline_exceeded", "cancelled",
    "peer_dead", "revoked",          "mismatch",          "corrupt",           "io_error",
    "busy",      "internal"};
static const char* const kFieldNames[] = {"none",       "opcode",  "version", "type",   "redop",
                                          "out_type",   "n_src",   "n_dst",   "block",  "flags",
                                          "timeout_ms", "count",   "scale",   "dst",    "src",
                                          "table",      "program", "task",    "update", "weights"};

_Static_assert(COUNT_OF(kTypeNames) == PENSTOCK_TYPE_COUNT, "a name per type");
_Static_assert(COUNT_OF(kTypeSizes) == PENSTOCK_TYPE_COUNT, "a size per type");
_Static_assert(COUNT_OF(kRedopNames) == PENSTOCK_REDOP_COUNT, "a name per reduction");
_Static_assert(COUNT_OF(kOpcodeNames) == PENSTOCK_OP_COUNT, "a name per opcode");
_Static_assert(COUNT_OF(kStatusNames) == PENSTOCK_STATUS_COUNT, "a name per status");
_Static_assert(COUNT_OF(kFieldNames) == PENSTOCK_FIELD_ENUM_COUNT, "a name per field");

uint32_t penstock_type_size(uint32_t type) {
  return type < PENSTOCK_TYPE_COUNT ? kTypeSizes[type] : 0;
}

static const char* name_of(const char* const* names, size_t n, uint32_t value) {
  return value < n ? names[value] : "?";
}
const char* penstock_type_name(uint32_t type) {
  return name_of(kTypeNames, COUNT_OF(kTypeNames), type);
}
const char* penstock_redop_name(uint32_t redop) {
  return name_of(kRedopNames, COUNT_OF(kRedopNames), redop);
}
const char* penstock_opcode_name(uint32_t opcode) {
  return name_of(kOpcodeNames, COUNT_OF(kOpcodeNames), opcode);
}
const char* penstock_status_name(uint32_t status) {
  return name_of(kStatusNames, COUNT_OF(kStatusNames), status);
}
const char* penstock_field_name(uint32_t field) {
  return name_of(kFieldNames, COUNT_OF(kFieldNames), field);
}

/* What each opcode uses: one row per opcode, so that the check below is the same for all of them.
 * Alignments are of the address in bytes, and 0 marks an entry that is a value, not an address. */
struct usage {
  uint8_t min_src, max_src; /* n_src */
  uint8_t min_dst, max_dst; /* n_dst */
  uint8_t typed;            /* type, redop, out_type, block and scale mean something */
  uint8_t timed;            /* timeout_ms means something */
  uint8_t pool_fence;       /* fences must be pool offsets: bit 0 in dst[0], bit 1 in src[0] */
  uint32_t flags;           /* that may be set */
  uint64_t max_count;
  uint8_t dst_alignment;
  uint8_t src_alignment[3]; /* of src[0], src[1], and src[2] and all that follow */
  uint64_t min_count;
};
#define FENCE PENSTOCK_CACHE_LINE
static const struct usage kUsage[PENSTOCK_OP_COUNT] = {
    [PENSTOCK_OP_NOP] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, {1, 1, 1}},
    [PENSTOCK_OP_COPY] = {1,
                          1,
                          1,
                          PENSTOCK_MAX_DESTINATIONS,
                          0,
                          0,
                          0,
                          PENSTOCK_FLAG_STREAM,
                          PENSTOCK_MAX_COUNT,
                          1,
                          {1, 1, 1}},
    [PENSTOCK_OP_REDUCE] = {1,
                            PENSTOCK_MAX_SOURCES,
                            1,
                            PENSTOCK_MAX_DESTINATIONS,
                            1,
                            0,
                            0,
                            PENSTOCK_FLAG_SRC_LIST | PENSTOCK_FLAG_STREAM | PENSTOCK_FLAG_WEIGHTS,
                            PENSTOCK_MAX_COUNT,
                            1,
                            {1, 1, 1}},
    [PENSTOCK_OP_OUTER_STEP] = {1,
                                PENSTOCK_MAX_SOURCES,
                                2,
                                2,
                                1,
                                0,
                                0,
                                PENSTOCK_FLAG_SRC_LIST,
                                PENSTOCK_MAX_COUNT,
                                1,
                                {1, 1, 1}},
    [PENSTOCK_OP_SIGNAL] = {1, 1, 1, 1, 0, 0, 1, 0, 0, FENCE, {0, 0, 0}},
    [PENSTOCK_OP_WAIT] = {2, 2, 0, 0, 0, 1, 2, 0, 0, 1, {FENCE, 0, 0}},
    [PENSTOCK_OP_SELECT] = {3,
                            3,
                            1,
                            1,
                            0,
                            0,
                            0,
                            PENSTOCK_FLAG_COMMIT,
                            PENSTOCK_MAX_TASKS,
                            8,
                            {PENSTOCK_CACHE_LINE, 8, 8}},
    [PENSTOCK_OP_UPDATE] =
        {2, 2, 0, 0, 0, 0, 0, 0, PENSTOCK_MAX_UPDATES, 1, {PENSTOCK_CACHE_LINE, 8, 8}},
    [PENSTOCK_OP_BARRIER] = {2, 2, 1, 1, 0, 1, 3, 0, PENSTOCK_MAX_BARRIER, FENCE, {FENCE, 0, 0}, 1},
};

uint32_t penstock_fold_type(uint32_t type, uint32_t block) {
  if (type == PENSTOCK_INT8) return block != 0 ? PENSTOCK_F32 : type;
  return type < PENSTOCK_F16 || type == PENSTOCK_F64 ? type : PENSTOCK_F32;
}

uint64_t penstock_operand_bytes(uint32_t type, uint32_t block, uint64_t count) {
  if (type != PENSTOCK_INT8 || block == 0) return count * penstock_type_size(type);
  return (count + block - 1) / block * (PENSTOCK_BLOCK_SCALE_BYTES + block);
}

static uint32_t refuse(uint32_t status, uint32_t wrong, uint64_t value, uint32_t* field,
                       uint64_t* detail) {
  *field = wrong;
  *detail = value;
  return status;
}
#define INVALID(wrong, value) refuse(PENSTOCK_INVALID_ARGUMENT, wrong, value, field, detail)
#define UNSUPPORTED(wrong, value) refuse(PENSTOCK_UNSUPPORTED, wrong, value, field, detail)

static uint32_t check_types(const struct penstock_descriptor* d, const struct usage* use,
                            uint32_t* field, uint64_t* detail) {
  if (use->typed) {
    if (d->type >= PENSTOCK_TYPE_COUNT) return INVALID(PENSTOCK_FIELD_TYPE, d->type);
    if (d->redop >= PENSTOCK_REDOP_COUNT) return INVALID(PENSTOCK_FIELD_REDOP, d->redop);
    if (d->out_type >= PENSTOCK_TYPE_COUNT) return INVALID(PENSTOCK_FIELD_OUT_TYPE, d->out_type);
    const int in_f32 = penstock_fold_type(d->type, d->block) == PENSTOCK_F32;
    if (d->opcode == PENSTOCK_OP_OUTER_STEP) {
      if (!in_f32) return UNSUPPORTED(PENSTOCK_FIELD_TYPE, d->type);
      if (d->redop != PENSTOCK_AVG) return UNSUPPORTED(PENSTOCK_FIELD_REDOP, d->redop);
      if (d->out_type != PENSTOCK_F32) return UNSUPPORTED(PENSTOCK_FIELD_OUT_TYPE, d->out_type);
    } else if (d->out_type != d->type &&
               !(in_f32 && penstock_fold_type(d->out_type, d->block) == PENSTOCK_F32)) {
      return UNSUPPORTED(PENSTOCK_FIELD_OUT_TYPE, d->out_type);
    }
    return PENSTOCK_OK;
  }
  if (d->type != 0) return INVALID(PENSTOCK_FIELD_TYPE, d->type);
  if (d->redop != 0) return INVALID(PENSTOCK_FIELD_REDOP, d->redop);
  if (d->out_type != 0) return INVALID(PENSTOCK_FIELD_OUT_TYPE, d->out_type);
  return PENSTOCK_OK;
}

static uint32_t check_flags(const struct penstock_descriptor* d, const struct usage* use,
                            uint32_t* field, uint64_t* detail) {
  const uint32_t list = d->n_src > PENSTOCK_INLINE_SOURCES ? PENSTOCK_FLAG_SRC_LIST : 0;
  if ((d->flags & ~use->flags) != 0 || (d->flags & PENSTOCK_FLAG_SRC_LIST) != list)
    return INVALID(PENSTOCK_FIELD_FLAGS, d->flags);
  if ((d->flags & PENSTOCK_FLAG_WEIGHTS) != 0) {
    if (d->redop != PENSTOCK_PREMUL_SUM && d->redop != PENSTOCK_AVG)
      return INVALID(PENSTOCK_FIELD_FLAGS, d->flags);
    if (penstock_fold_type(d->type, d->block) < PENSTOCK_F16)
      return UNSUPPORTED(PENSTOCK_FIELD_FLAGS, d->flags);
  }
  return PENSTOCK_OK;
}

/* alignment 0: a value, anything goes. */
static int address_is_sound(penstock_address address, uint32_t alignment, int pool_only) {
  if (alignment == 0) return 1;
  if (penstock_address_space(address) >= PENSTOCK_MAX_DEVICES &&
      (pool_only || !penstock_address_is_host(address)))
    return 0;
  return penstock_address_offset(address) % alignment == 0;
}

static uint32_t check_scale(const struct penstock_descriptor* d, const struct usage* use,
                            uint32_t* field, uint64_t* detail) {
  if (d->opcode == PENSTOCK_OP_OUTER_STEP) return PENSTOCK_OK;
  if ((d->flags & PENSTOCK_FLAG_WEIGHTS) != 0)
    return address_is_sound(d->scale, 8, 0) ? PENSTOCK_OK : INVALID(PENSTOCK_FIELD_SCALE, d->scale);
  const int used = use->typed && d->redop == PENSTOCK_PREMUL_SUM;
  /* An f32 pattern fills the low half only; f64 and integers use all 64 bits. */
  const int narrow = penstock_fold_type(d->type, d->block) == PENSTOCK_F32;
  if (!used ? d->scale != 0 : narrow && (d->scale >> 32) != 0)
    return INVALID(PENSTOCK_FIELD_SCALE, d->scale);
  return PENSTOCK_OK;
}

static uint32_t check_destinations(const struct penstock_descriptor* d, const struct usage* use,
                                   uint32_t* field, uint64_t* detail) {
  for (uint32_t i = 0; i < PENSTOCK_MAX_DESTINATIONS; ++i) {
    const penstock_address address = d->dst[i];
    if (i >= d->n_dst) {
      if (address != 0) return INVALID(PENSTOCK_FIELD_DST, address);
      continue;
    }
    if (!address_is_sound(address, use->dst_alignment, (use->pool_fence & 1) != 0))
      return INVALID(PENSTOCK_FIELD_DST, address);
    for (uint32_t j = 0; j < i; ++j)
      if (address == d->dst[j]) return INVALID(PENSTOCK_FIELD_DST, address);
  }
  return PENSTOCK_OK;
}

static uint32_t check_sources(const struct penstock_descriptor* d, const struct usage* use,
                              uint32_t* field, uint64_t* detail) {
  const int list = (d->flags & PENSTOCK_FLAG_SRC_LIST) != 0;
  const uint32_t used = list ? 1 : d->n_src;
  for (uint32_t i = 0; i < PENSTOCK_INLINE_SOURCES; ++i) {
    const penstock_address address = d->src[i];
    if (i >= used) {
      if (address != 0) return INVALID(PENSTOCK_FIELD_SRC, address);
      continue;
    }
    /* The list holds 64-bit words, and is read as such. */
    const uint32_t alignment = list ? 8 : use->src_alignment[i < 2 ? i : 2];
    if (!address_is_sound(address, alignment, (use->pool_fence & 2) != 0 && i == 0))
      return INVALID(PENSTOCK_FIELD_SRC, address);
  }
  return PENSTOCK_OK;
}

uint32_t penstock_descriptor_check(const struct penstock_descriptor* d, uint32_t* field,
                                   uint64_t* detail) {
  *field = PENSTOCK_FIELD_NONE;
  *detail = 0;
  if (d->opcode >= PENSTOCK_OP_COUNT) return INVALID(PENSTOCK_FIELD_OPCODE, d->opcode);
  if (d->version != PENSTOCK_DESCRIPTOR_VERSION)
    return UNSUPPORTED(PENSTOCK_FIELD_VERSION, d->version);
  const struct usage* use = &kUsage[d->opcode];
  uint32_t status = check_types(d, use, field, detail);
  if (status != PENSTOCK_OK) return status;
  if (d->n_src < use->min_src || d->n_src > use->max_src)
    return INVALID(PENSTOCK_FIELD_N_SRC, d->n_src);
  if (d->n_dst < use->min_dst || d->n_dst > use->max_dst)
    return INVALID(PENSTOCK_FIELD_N_DST, d->n_dst);
  /* A block exactly where something is block-scaled, and SRC_LIST exactly where the sources do not
   * fit: one request has one encoding. */
  const int blocks = use->typed && (d->type == PENSTOCK_INT8 || d->out_type == PENSTOCK_INT8);
  if (d->block != 0 && (!blocks || (d->block != 32 && d->block != 64)))
    return INVALID(PENSTOCK_FIELD_BLOCK, d->block);
  status = check_flags(d, use, field, detail);
  if (status != PENSTOCK_OK) return status;
  if (d->timeout_ms != 0 && !use->timed) return INVALID(PENSTOCK_FIELD_TIMEOUT, d->timeout_ms);
  if (d->count < use->min_count || d->count > use->max_count)
    return INVALID(PENSTOCK_FIELD_COUNT, d->count);
  status = check_scale(d, use, field, detail);
  if (status != PENSTOCK_OK) return status;
  status = check_destinations(d, use, field, detail);
  if (status != PENSTOCK_OK) return status;
  return check_sources(d, use, field, detail);
}
