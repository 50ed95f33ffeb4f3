// One table of operations by engines, for `penstock conformance --engine all`.
#ifndef PENSTOCK_SDK_TOOL_CONFORMANCE_TABLE_H_
#define PENSTOCK_SDK_TOOL_CONFORMANCE_TABLE_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "penstock/engine/conformance.h"

namespace penstock::tool {

// What came of one engine, or of one way to reach it.
struct ConformanceColumn {
  std::string name;   // "card:verilator"
  std::string state;  // "ran", "failed to start", or why it is not there: "not built", "not here"
  std::string reason;
  double seconds = 0;
  std::optional<ConformanceReport> report;  // of one that ran

  bool failed() const;
};

// Whether none failed, and one at least ran.
bool all_conform(const std::vector<ConformanceColumn>& columns);

// A line for each operation, a column for each engine. A cell is `pass`, `pass 11/12` (the other
// types are unsupported), `unsupported`, `FAIL`, or `-` where the engine did not run. The reasons
// follow, each once.
std::string conformance_table(const std::vector<ConformanceColumn>& columns);
// The report with name, state, reason and seconds; those without a report have no rows.
nlohmann::ordered_json conformance_json(const ConformanceColumn& column);

}  // namespace penstock::tool
#endif
