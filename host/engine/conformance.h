// Conformance: the same vectors on every engine. An engine's results are compared, bit for bit,
// with a reference that shares no code with any of them (conformance_reference.h; SELECT and UPDATE
// with the scalar definition), guard bytes stand around every operand, and malformed descriptors
// have to come back with the status and the field that the check names, touching nothing.
#ifndef PENSTOCK_ENGINE_CONFORMANCE_H_
#define PENSTOCK_ENGINE_CONFORMANCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/engine/engine.h"

namespace penstock {

enum class Verdict { pass, fail, unsupported };
const char* verdict_name(Verdict verdict);

// One operation on one type. A row that compared nothing has failed.
struct ConformanceRow {
  std::string operation;  // "REDUCE sum", "COPY", "WAIT deadline"
  std::string type;       // "" where there is none
  Verdict verdict = Verdict::fail;
  std::string reason;             // of a failure: the first difference; of unsupported: why
  std::uint64_t comparisons = 0;  // elements, completions or rows that were compared
};

struct ConformanceReport {
  std::string engine;
  std::string description;
  std::uint64_t seed = 0;
  std::vector<ConformanceRow> rows;

  // No row failed, and at least one passed.
  bool passed() const;
  std::uint64_t comparisons() const;
  std::string to_table() const;  // lines for people; one row per operation, types side by side
  std::string to_json() const;   // one object, with every row
};

struct ConformanceOptions {
  // Where operands live. Null: this process's memory, and what needs a fence is left out (as
  // unsupported). An engine that cannot reach host memory needs a pool with 4 MiB free.
  Pool* pool = nullptr;
  std::uint64_t seed = 1;
  bool quick = false;  // few lengths and numbers of sources, for slow (simulated) engines
  std::uint32_t timeout_ms = 30000;  // for one descriptor
};

// An error only when nothing could be tried: no memory for operands. Not thread-safe with respect
// to the engine's other queues' speed, but may run beside them.
Result<ConformanceReport> run_conformance(Engine& engine, const ConformanceOptions& options = {});

}  // namespace penstock
#endif
