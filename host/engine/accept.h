// What every engine decides before it touches memory, drivers' engines included.
#ifndef PENSTOCK_ENGINE_ACCEPT_H_
#define PENSTOCK_ENGINE_ACCEPT_H_

#include <cstdint>

#include "penstock/descriptor/node_table.h"
#include "penstock/engine/engine.h"

namespace penstock {

// penstock_descriptor_check, and then whether an engine with these capabilities takes the record
// (PENSTOCK_UNSUPPORTED with the field and value that ask too much). The sources of a list are not
// looked at: they are in memory. Pure, thread-safe.
std::uint32_t check_descriptor(const Capabilities& capabilities,
                               const penstock_descriptor& descriptor, std::uint32_t* field,
                               std::uint64_t* detail);

// What a SELECT or UPDATE asks of an engine with these capabilities, of what was checked already
// (penstock_*_check): PENSTOCK_OK or PENSTOCK_UNSUPPORTED; *detail (never null) gets the index of
// the operation concerned, PENSTOCK_MAX_OPS when it is none of them. Pure, thread-safe.
std::uint32_t check_table_width(const Capabilities& capabilities, const penstock_node_table& table);
std::uint32_t check_program_operations(const SelectCapabilities& capabilities,
                                       const penstock_program& program, std::uint64_t* detail);
std::uint32_t check_task_demands(const SelectCapabilities& capabilities, const penstock_task& task);

// A sentence for what a completion or a check says about a descriptor: which field, its value, and
// what would be right. ok for PENSTOCK_OK.
Status describe_refusal(const penstock_descriptor& descriptor, std::uint32_t status,
                        std::uint32_t field, std::uint64_t detail);

// Both of the above: what Engine::accepts answers.
Status accept_descriptor(const Capabilities& capabilities, const penstock_descriptor& descriptor);

// What may become what in engines that convert: all types that are folded in f32, block-scaled int8
// among them, into any of the same.
void convert_in_f32(Capabilities* capabilities);

}  // namespace penstock
#endif
