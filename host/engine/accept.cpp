#include "penstock/engine/accept.h"

#include <algorithm>

namespace penstock {
namespace {

struct Verdict {
  std::uint32_t field;
  std::uint64_t detail;
};

// The first field that asks more than the engine can do, in the order of enum penstock_field.
Verdict beyond(const Capabilities& c, const penstock_descriptor& d) {
  const bool folds = d.opcode == PENSTOCK_OP_REDUCE || d.opcode == PENSTOCK_OP_OUTER_STEP;
  const bool moves_elements = folds || d.opcode == PENSTOCK_OP_COPY;
  if ((c.opcodes >> d.opcode & 1) == 0) return {PENSTOCK_FIELD_OPCODE, d.opcode};
  if (folds) {
    const bool of_blocks = d.type == PENSTOCK_INT8 && d.block != 0;
    const std::uint32_t redops = c.redops[of_blocks ? std::uint32_t{PENSTOCK_F32} : d.type];
    // OUTER_STEP widens whatever the opcode's bit stands for; blocks have to be known besides.
    const bool converts = d.opcode == PENSTOCK_OP_REDUCE ? d.out_type != d.type : false;
    if (redops == 0) return {PENSTOCK_FIELD_TYPE, d.type};
    if ((redops >> d.redop & 1) == 0) return {PENSTOCK_FIELD_REDOP, d.redop};
    if ((converts || of_blocks) && (c.out_types[d.type] >> d.out_type & 1) == 0)
      return {PENSTOCK_FIELD_OUT_TYPE, d.out_type};
    if (d.n_src > c.max_sources) return {PENSTOCK_FIELD_N_SRC, d.n_src};
  }
  if (moves_elements) {
    const std::uint64_t bytes = folds
                                    ? std::max(penstock_operand_bytes(d.type, d.block, d.count),
                                               penstock_operand_bytes(d.out_type, d.block, d.count))
                                    : d.count;
    if (d.n_dst > c.max_destinations) return {PENSTOCK_FIELD_N_DST, d.n_dst};
    if ((d.flags & PENSTOCK_FLAG_WEIGHTS) != 0 && !c.weights)
      return {PENSTOCK_FIELD_FLAGS, d.flags};
    if (bytes > c.max_bytes) return {PENSTOCK_FIELD_COUNT, d.count};
  }
  if (c.host_memory) return {PENSTOCK_FIELD_NONE, 0};
  if ((d.flags & PENSTOCK_FLAG_WEIGHTS) != 0 && penstock_address_is_host(d.scale))
    return {PENSTOCK_FIELD_SCALE, d.scale};
  for (std::uint32_t i = 0; i < d.n_dst; ++i)
    if (penstock_address_is_host(d.dst[i])) return {PENSTOCK_FIELD_DST, d.dst[i]};
  // Fences are in the pool, as was checked; the other entries beside them are values.
  const bool values = d.opcode == PENSTOCK_OP_SIGNAL || d.opcode == PENSTOCK_OP_WAIT ||
                      d.opcode == PENSTOCK_OP_BARRIER;
  const std::uint32_t listed = (d.flags & PENSTOCK_FLAG_SRC_LIST) != 0 ? 1 : d.n_src;
  for (std::uint32_t i = 0; i < listed && !values; ++i)
    if (penstock_address_is_host(d.src[i])) return {PENSTOCK_FIELD_SRC, d.src[i]};
  return {PENSTOCK_FIELD_NONE, 0};
}

const char* in_blocks(const penstock_descriptor& d, std::uint32_t type) {
  return type == PENSTOCK_INT8 && d.block != 0 ? " in blocks" : "";
}

// What the field of this opcode may hold.
std::string expectation(const penstock_descriptor& d, std::uint32_t field) {
  const char* opcode = penstock_opcode_name(d.opcode);
  const bool folds = d.opcode == PENSTOCK_OP_REDUCE || d.opcode == PENSTOCK_OP_OUTER_STEP;
  switch (field) {
    case PENSTOCK_FIELD_OPCODE:
      return fmt::format("an opcode is 0 to {}", PENSTOCK_OP_COUNT - 1);
    case PENSTOCK_FIELD_VERSION:
      return fmt::format("this build knows version {}", PENSTOCK_DESCRIPTOR_VERSION);
    case PENSTOCK_FIELD_TYPE:
      if (folds) return fmt::format("a type is 0 to {}", PENSTOCK_TYPE_COUNT - 1);
      break;
    case PENSTOCK_FIELD_REDOP:
      if (folds) return fmt::format("a reduction is 0 to {}", PENSTOCK_REDOP_COUNT - 1);
      break;
    case PENSTOCK_FIELD_OUT_TYPE:
      if (folds) return fmt::format("a type is 0 to {}", PENSTOCK_TYPE_COUNT - 1);
      break;
    case PENSTOCK_FIELD_N_SRC:
      return fmt::format(
          "COPY and SIGNAL have 1, WAIT, UPDATE and BARRIER 2, SELECT 3, REDUCE and OUTER_STEP 1 "
          "to {}",
          PENSTOCK_MAX_SOURCES);
    case PENSTOCK_FIELD_N_DST:
      return fmt::format(
          "SIGNAL, SELECT and BARRIER have 1, OUTER_STEP 2, COPY and REDUCE 1 to {}, others none",
          PENSTOCK_MAX_DESTINATIONS);
    case PENSTOCK_FIELD_BLOCK:
      if (folds) return "block-scaled int8 has 32 or 64, everything else 0";
      break;
    case PENSTOCK_FIELD_FLAGS:
      return "SELECT may have COMMIT, COPY and REDUCE STREAM, REDUCE WEIGHTS with avg or "
             "premul_sum, and REDUCE and OUTER_STEP have SRC_LIST exactly with more than 8 sources";
    case PENSTOCK_FIELD_TIMEOUT:
      return "only WAIT and BARRIER have one";
    case PENSTOCK_FIELD_COUNT:
      return "at most 2^48 elements, 2^20 tasks or 2^24 updates, 1 to 64 fences of BARRIER, and 0 "
             "for NOP, SIGNAL and WAIT";
    case PENSTOCK_FIELD_SCALE:
      return "premul_sum alone has one, of 32 bits for the floats up to f32; with WEIGHTS it is an "
             "address on 8 bytes, in the pool's devices or in host memory";
    case PENSTOCK_FIELD_DST:
    case PENSTOCK_FIELD_SRC:
      return "an address lies in the pool's devices or in host memory, a fence in the pool on a "
             "line of its own, a table on a line, lists, programs and tasks on 8 bytes; a "
             "destination is a source exactly or overlaps nothing; unused entries are 0";
    default:
      break;
  }
  return fmt::format("{} does not use it, so it has to be 0", opcode);
}

}  // namespace

std::uint32_t check_descriptor(const Capabilities& capabilities,
                               const penstock_descriptor& descriptor, std::uint32_t* field,
                               std::uint64_t* detail) {
  const std::uint32_t status = penstock_descriptor_check(&descriptor, field, detail);
  if (status != PENSTOCK_OK) return status;
  const Verdict verdict = beyond(capabilities, descriptor);
  *field = verdict.field;
  *detail = verdict.detail;
  return verdict.field == PENSTOCK_FIELD_NONE ? PENSTOCK_OK : PENSTOCK_UNSUPPORTED;
}

std::uint32_t check_table_width(const Capabilities& capabilities,
                                const penstock_node_table& table) {
  const SelectCapabilities& most = capabilities.select;
  const bool fits = table.capacity <= capabilities.max_rows &&
                    table.n_resources <= most.max_resources && table.n_bits <= most.max_bits &&
                    table.n_free <= most.max_free;
  return fits ? PENSTOCK_OK : PENSTOCK_UNSUPPORTED;
}

std::uint32_t check_program_operations(const SelectCapabilities& capabilities,
                                       const penstock_program& program, std::uint64_t* detail) {
  for (std::uint32_t i = 0; i < program.n_ops; ++i) {
    const penstock_column_op& op = program.ops[i];
    *detail = i;
    if ((capabilities.operations >> op.op & 1) == 0) return PENSTOCK_UNSUPPORTED;
    if ((capabilities.normalisations >> op.normalise & 1) == 0) return PENSTOCK_UNSUPPORTED;
  }
  *detail = PENSTOCK_MAX_OPS;
  if ((capabilities.ties >> program.tie & 1) == 0 || program.best > capabilities.max_best)
    return PENSTOCK_UNSUPPORTED;
  *detail = 0;
  return PENSTOCK_OK;
}

std::uint32_t check_task_demands(const SelectCapabilities& capabilities,
                                 const penstock_task& task) {
  const bool asks_domains = task.n_domain_terms != 0 || task.n_raises != 0;
  return (task.gpu_count == 0 || capabilities.gpus) && (!asks_domains || capabilities.domains)
             ? PENSTOCK_OK
             : PENSTOCK_UNSUPPORTED;
}

Status describe_refusal(const penstock_descriptor& d, std::uint32_t status, std::uint32_t field,
                        std::uint64_t detail) {
  if (status == PENSTOCK_OK) return {};
  const auto code = static_cast<Code>(status);
  const char* opcode = penstock_opcode_name(d.opcode);
  const char* name = penstock_field_name(field);
  if (status == PENSTOCK_INVALID_ARGUMENT && field <= PENSTOCK_FIELD_SRC &&
      field != PENSTOCK_FIELD_NONE)
    return error(code, "{}: {} is {:#x}; {}", opcode, name, detail, expectation(d, field));
  switch (field) {
    case PENSTOCK_FIELD_NONE:
      return error(code, "{}: {}", opcode, penstock_status_name(status));
    case PENSTOCK_FIELD_TABLE:
      return error(code, "{}: the node table at {:#x}", opcode, detail);
    case PENSTOCK_FIELD_PROGRAM:
      return error(code, "{}: the program, at {}", opcode, detail);
    case PENSTOCK_FIELD_TASK:
      return error(code, "{}: task {}", opcode, detail);
    case PENSTOCK_FIELD_UPDATE:
      return error(code, "{}: update {}", opcode, detail);
    case PENSTOCK_FIELD_WEIGHTS:
      if (status != PENSTOCK_INVALID_ARGUMENT) break;
      return error(code, "{}: every weight at {:#x} is zero; at least one source has to take part",
                   opcode, detail);
    default:
      break;
  }
  if (status == PENSTOCK_OUT_OF_RANGE)
    return error(code, "{}: the bytes at {} {:#x} lie outside of the queue's windows", opcode, name,
                 detail);
  if (field == PENSTOCK_FIELD_TYPE || field == PENSTOCK_FIELD_REDOP)
    return error(code, "{}: {} of {}", opcode, penstock_redop_name(d.redop),
                 penstock_type_name(d.type));
  if (field == PENSTOCK_FIELD_OUT_TYPE)
    return error(code, "{}: {}{} to {}{}; what is folded in f32 becomes another of the same",
                 opcode, penstock_type_name(d.type), in_blocks(d, d.type),
                 penstock_type_name(d.out_type), in_blocks(d, d.out_type));
  if (field == PENSTOCK_FIELD_FLAGS && (d.flags & PENSTOCK_FLAG_WEIGHTS) != 0)
    return error(code, "{}: weights of {}", opcode, penstock_type_name(d.type));
  return error(code, "{}: {} {:#x} is more than the engine or this version can do", opcode, name,
               detail);
}

Status accept_descriptor(const Capabilities& capabilities, const penstock_descriptor& descriptor) {
  std::uint32_t field = 0;
  std::uint64_t detail = 0;
  const std::uint32_t status = check_descriptor(capabilities, descriptor, &field, &detail);
  return describe_refusal(descriptor, status, field, detail)
      .with_context(status == PENSTOCK_OK ? std::string() : capabilities.name);
}

void convert_in_f32(Capabilities* capabilities) {
  std::uint32_t in_f32 = 0;
  for (std::uint32_t type = 0; type < PENSTOCK_TYPE_COUNT; ++type)
    in_f32 |= (penstock_fold_type(type, 64) == PENSTOCK_F32 ? 1u : 0u) << type;
  for (std::uint32_t type = 0; type < PENSTOCK_TYPE_COUNT; ++type)
    capabilities->out_types[type] = (in_f32 >> type & 1) != 0 ? in_f32 : 0;
}

}  // namespace penstock
