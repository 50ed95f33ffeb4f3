#include "penstock/engine/accept.h"

namespace penstock {
namespace {

struct Verdict {
  std::uint32_t field;
  std::uint64_t detail;
};

// The first field that asks more than the engine can do, in the order of enum penstock_field.
Verdict beyond(const Capabilities& c, const penstock_descriptor& d) {
  const bool moves_elements = d.opcode == PENSTOCK_OP_COPY || d.opcode == PENSTOCK_OP_REDUCE;
  if ((c.opcodes >> d.opcode & 1) == 0) return {PENSTOCK_FIELD_OPCODE, d.opcode};
  if (d.opcode == PENSTOCK_OP_REDUCE) {
    if (c.redops[d.type] == 0) return {PENSTOCK_FIELD_TYPE, d.type};
    if ((c.redops[d.type] >> d.redop & 1) == 0) return {PENSTOCK_FIELD_REDOP, d.redop};
    if (d.n_src > c.max_sources) return {PENSTOCK_FIELD_N_SRC, d.n_src};
  }
  if (moves_elements) {
    const std::uint64_t size = d.opcode == PENSTOCK_OP_REDUCE ? penstock_type_size(d.type) : 1;
    if (d.n_dst > c.max_destinations) return {PENSTOCK_FIELD_N_DST, d.n_dst};
    if (d.count > c.max_bytes / size) return {PENSTOCK_FIELD_COUNT, d.count};
  }
  if (c.host_memory) return {PENSTOCK_FIELD_NONE, 0};
  for (std::uint32_t i = 0; i < d.n_dst; ++i)
    if (penstock_address_is_host(d.dst[i])) return {PENSTOCK_FIELD_DST, d.dst[i]};
  // The other entries of SIGNAL and WAIT are values.
  const bool values = d.opcode == PENSTOCK_OP_SIGNAL || d.opcode == PENSTOCK_OP_WAIT;
  const std::uint32_t listed = (d.flags & PENSTOCK_FLAG_SRC_LIST) != 0 ? 1 : d.n_src;
  for (std::uint32_t i = 0; i < listed && !values; ++i)
    if (penstock_address_is_host(d.src[i])) return {PENSTOCK_FIELD_SRC, d.src[i]};
  return {PENSTOCK_FIELD_NONE, 0};
}

// What the field of this opcode may hold.
std::string expectation(const penstock_descriptor& d, std::uint32_t field) {
  const char* opcode = penstock_opcode_name(d.opcode);
  const bool reduce = d.opcode == PENSTOCK_OP_REDUCE;
  switch (field) {
    case PENSTOCK_FIELD_OPCODE:
      return fmt::format("an opcode is 0 to {}", PENSTOCK_OP_COUNT - 1);
    case PENSTOCK_FIELD_VERSION:
      return fmt::format("this build knows version {}", PENSTOCK_DESCRIPTOR_VERSION);
    case PENSTOCK_FIELD_TYPE:
      if (reduce) return fmt::format("a type is 0 to {}", PENSTOCK_TYPE_COUNT - 1);
      break;
    case PENSTOCK_FIELD_REDOP:
      if (reduce) return fmt::format("a reduction is 0 to {}", PENSTOCK_REDOP_COUNT - 1);
      break;
    case PENSTOCK_FIELD_OUT_TYPE:
      if (reduce) return fmt::format("it has to equal the type, {}", penstock_type_name(d.type));
      break;
    case PENSTOCK_FIELD_N_SRC:
      return fmt::format("COPY and SIGNAL have 1, WAIT and UPDATE 2, SELECT 3, REDUCE 1 to {}",
                         PENSTOCK_MAX_SOURCES);
    case PENSTOCK_FIELD_N_DST:
      return fmt::format("SIGNAL and SELECT have 1, COPY and REDUCE 1 to {}, others none",
                         PENSTOCK_MAX_DESTINATIONS);
    case PENSTOCK_FIELD_FLAGS:
      return "SELECT may have COMMIT, COPY and REDUCE STREAM, and REDUCE has SRC_LIST exactly with "
             "more than 8 sources";
    case PENSTOCK_FIELD_TIMEOUT:
      return "only WAIT has one";
    case PENSTOCK_FIELD_COUNT:
      return "at most 2^48 elements, 2^20 tasks or 2^24 updates, and 0 for NOP, SIGNAL and WAIT";
    case PENSTOCK_FIELD_SCALE:
      return "premul_sum alone has one, of 32 bits for the floats up to f32";
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
    default:
      break;
  }
  if (status == PENSTOCK_OUT_OF_RANGE)
    return error(code, "{}: the bytes at {} {:#x} lie outside of the queue's windows", opcode, name,
                 detail);
  if (field == PENSTOCK_FIELD_TYPE || field == PENSTOCK_FIELD_REDOP)
    return error(code, "{}: {} of {}", opcode, penstock_redop_name(d.redop),
                 penstock_type_name(d.type));
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

}  // namespace penstock
