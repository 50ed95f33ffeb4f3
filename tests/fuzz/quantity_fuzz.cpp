// Bytes as a Kubernetes quantity: units and thousandths have to agree.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "penstock/descriptor/node_table.h"
#include "penstock/sched/quantity.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto units = parse_quantity(text);
  const auto milli = parse_milli_quantity(text);
  if (units.ok() && (units.value() < 0 || units.value() > PENSTOCK_MAX_QUANTITY)) std::abort();
  if (milli.ok()) {
    // Rounded up each: the units are the thousandths rounded up.
    if (!units.ok() || units.value() != (milli.value() + 999) / 1000) std::abort();
  } else if (units.ok() && milli.status().code() != Code::out_of_range) {
    std::abort();
  }
  if (units.ok() && parse_quantity(format_bytes(units.value())).value() != units.value()) {
    std::abort();
  }
  return 0;
}
