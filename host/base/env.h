// Every environment variable that Penstock reads, in one table with its meaning and default.
#ifndef PENSTOCK_BASE_ENV_H_
#define PENSTOCK_BASE_ENV_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/status.h"

namespace penstock::env {

enum class Id {
  pool,          // PENSTOCK_POOL
  pool_bytes,    // PENSTOCK_POOL_BYTES
  pool_devices,  // PENSTOCK_POOL_DEVICES
  coherence,     // PENSTOCK_COHERENCE
  host_id,       // PENSTOCK_HOST_ID
  comm,          // PENSTOCK_COMM
  rank,          // PENSTOCK_RANK
  size,          // PENSTOCK_SIZE
  engine,        // PENSTOCK_ENGINE
  speed,         // PENSTOCK_SPEED
  timeout_ms,    // PENSTOCK_TIMEOUT_MS
  block_bytes,   // PENSTOCK_BLOCK_BYTES
  wait,          // PENSTOCK_WAIT
  tuning,        // PENSTOCK_TUNING
  tuning_set,    // PENSTOCK_TUNING_SET
  log,           // PENSTOCK_LOG
  trace,         // PENSTOCK_TRACE
  trace_events,  // PENSTOCK_TRACE_EVENTS
  stats,         // PENSTOCK_STATS
  group,         // PENSTOCK_GROUP
  plugins,       // PENSTOCK_PLUGINS
  cuda_driver,   // PENSTOCK_CUDA_DRIVER
  count_
};

struct Variable {
  Id id;
  const char* name;
  const char* default_value;  // as it would be written; "" means unset
  const char* meaning;        // one sentence with unit and range
};

// The whole table, in the order of Id. Static storage.
const std::vector<Variable>& variables();
const Variable& variable(Id id);

// The value in force: the environment's, or the default ("" if there is none). Reads the
// environment at each call.
std::string text(Id id);
bool is_set(Id id);
// Parsed; a value that does not parse or is out of range gives invalid_argument with the variable's
// name, the value and what would be right.
Result<std::uint64_t> number(Id id, std::uint64_t min, std::uint64_t max);
// Like number, with the suffixes K, M, G (powers of 1024).
Result<std::uint64_t> bytes(Id id, std::uint64_t min, std::uint64_t max);

// "64", "1K", "1.5M", "2G" to bytes; exact powers of 1024; invalid_argument names the text.
Result<std::uint64_t> parse_bytes(const std::string& text);

// A variable of another launcher (OMPI_COMM_WORLD_RANK, ...), if set.
std::optional<std::string> foreign(const char* name);

}  // namespace penstock::env
#endif
