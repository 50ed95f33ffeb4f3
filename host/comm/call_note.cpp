#include "penstock/comm/call_note.h"

#include <fmt/core.h>

namespace penstock {

std::uint64_t call_note(const Call& call) {
  std::uint64_t note = static_cast<std::uint64_t>(call.collective) << 10;
  if (call.collective == Collective::barrier) return note;
  note |= std::uint64_t{call.type & 15} << 14;
  if (reduces(call.collective)) note |= std::uint64_t{call.redop & 7} << 18;
  if (has_root(call.collective)) note |= std::uint64_t{call.root & 63} << 21;
  return note | call.count << 27;
}

std::string describe_note(std::uint64_t note) {
  const auto collective = static_cast<Collective>(note >> 10 & 15);
  std::string text = collective_name(collective);
  if (collective == Collective::barrier) return text;
  text += fmt::format(" of {} {}", note >> 27,
                      penstock_type_name(static_cast<std::uint32_t>(note >> 14 & 15)));
  if (reduces(collective)) {
    text += fmt::format(" ({})", penstock_redop_name(static_cast<std::uint32_t>(note >> 18 & 7)));
  }
  if (has_root(collective)) {
    text += fmt::format(
        " {} root {}",
        collective == Collective::broadcast || collective == Collective::scatter ? "from" : "to",
        note >> 21 & 63);
  }
  return text;
}

}  // namespace penstock
