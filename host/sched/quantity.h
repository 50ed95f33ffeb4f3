// Kubernetes quantities: "1500m", "1.5Gi", "2e3", "0.1" (apimachinery's resource.Quantity).
//
//   number [suffix | exponent]   number: digits with at most one '.', sign + or -
//   suffix: n u m k M G T P E (powers of 1000) or Ki Mi Gi Ti Pi Ei (powers of 1024)
//   exponent: e or E, and a whole number
#ifndef PENSTOCK_SCHED_QUANTITY_H_
#define PENSTOCK_SCHED_QUANTITY_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "penstock/base/status.h"

namespace penstock {

// In whole units, rounded up as Kubernetes does (Quantity.Value). invalid_argument names the text;
// out_of_range for a negative quantity or one beyond PENSTOCK_MAX_QUANTITY.
Result<std::int64_t> parse_quantity(std::string_view text);
// In thousandths, rounded up (Quantity.MilliValue).
Result<std::int64_t> parse_milli_quantity(std::string_view text);

// "1.5Gi", "200Mi", "512": exact, in the largest power of 1024 that leaves at most one decimal.
std::string format_bytes(std::int64_t bytes);

}  // namespace penstock
#endif
