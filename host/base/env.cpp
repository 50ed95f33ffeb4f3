#include "penstock/base/env.h"

#include <cctype>
#include <charconv>
#include <cstdlib>

namespace penstock::env {
namespace {

// Decimal digits only: no sign, no space, no overflow.
std::optional<std::uint64_t> parse_digits(const std::string& text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value, 10);
  if (text.empty() || stop != end || failure != std::errc()) return std::nullopt;
  return value;
}

Status out_of_bounds(Id id, const std::string& value, std::uint64_t min, std::uint64_t max) {
  return error(Code::invalid_argument, "{}={} is out of range: it must be {}..{}",
               variable(id).name, value, min, max);
}

Status not_set(Id id) {
  return error(Code::invalid_argument, "{} is not set: {}", variable(id).name,
               variable(id).meaning);
}

}  // namespace

const std::vector<Variable>& variables() {
  static const std::vector<Variable> table = {
      {Id::pool, "PENSTOCK_POOL", "",
       "The pool's spec: the paths of its memory devices joined by commas, or one path."},
      {Id::pool_bytes, "PENSTOCK_POOL_BYTES", "256M",
       "Bytes of each memory device of a pool that is made, at least 2M; suffixes K, M, G."},
      {Id::pool_devices, "PENSTOCK_POOL_DEVICES", "1",
       "Memory devices of a pool that is made from one path, 1 to 16."},
      {Id::coherence, "PENSTOCK_COHERENCE", "hardware",
       "What another host needs to see a store: hardware, or software (flush and invalidate)."},
      {Id::host_id, "PENSTOCK_HOST_ID", "0",
       "Number of this host among those that share the pool, 0 to 15; its arena."},
      {Id::comm, "PENSTOCK_COMM", "",
       "Name of the comm that this process joins, 1 to 31 characters."},
      {Id::rank, "PENSTOCK_RANK", "", "Rank of this process in the comm, 0 to PENSTOCK_SIZE - 1."},
      {Id::size, "PENSTOCK_SIZE", "", "Number of ranks of the comm."},
      {Id::engine, "PENSTOCK_ENGINE", "auto",
       "Engine that executes descriptors, by name; of a list with commas the first that works, and "
       "the next when it is lost; auto: the fastest."},
      {Id::speed, "PENSTOCK_SPEED", "",
       "File in which the speed of this machine's engines is kept once auto has measured it, none "
       "for no measuring; unset: penstock/speed.txt in $XDG_CACHE_HOME or ~/.cache."},
      {Id::timeout_ms, "PENSTOCK_TIMEOUT_MS", "30000",
       "Milliseconds after which a wait for a peer ends with deadline_exceeded, at least 1."},
      {Id::block_bytes, "PENSTOCK_BLOCK_BYTES", "1M",
       "Payload bytes of one rank that a collective moves per pass; suffixes K, M, G."},
      {Id::wait, "PENSTOCK_WAIT", "auto",
       "How a rank waits: spin, yield (when there are more ranks than CPUs), or auto."},
      {Id::tuning, "PENSTOCK_TUNING", "",
       "File of what `penstock tune` measured, or none for what is built in; unset: "
       "penstock/tuning.json in $XDG_CONFIG_HOME or ~/.config, if it is there."},
      {Id::tuning_set, "PENSTOCK_TUNING_SET", "",
       "Overrides single fields of the tuning: NAME=NUMBER joined by commas, K, M, G allowed."},
      {Id::log, "PENSTOCK_LOG", "warn",
       "Least severe level that is logged: trace, debug, info, warn, error or off."},
      {Id::trace, "PENSTOCK_TRACE", "",
       "File for a timeline that ui.perfetto.dev opens; rank r of several writes FILE.r, which "
       "`penstock trace merge` joins."},
      {Id::trace_events, "PENSTOCK_TRACE_EVENTS", "100000",
       "Slices of the timeline that a thread keeps, 1 to 100000000; what comes later is dropped."},
      {Id::stats, "PENSTOCK_STATS", "",
       "1: every comm prints its statistics as JSON when it ends; a file name: writes them there, "
       "rank r of several to FILE.r."},
      {Id::group, "PENSTOCK_GROUP", "0",
       "Ranks of a group, a divisor of their number: reductions fold inside groups, then over the "
       "groups. 0: one level."},
      {Id::plugins, "PENSTOCK_PLUGINS", "",
       "Plugins with engines, or folders of them, joined by colons; none for none; unset: those "
       "that stand beside Penstock."},
      {Id::cuda_driver, "PENSTOCK_CUDA_DRIVER", "libcuda.so.1",
       "The library that the engine cuda loads as the CUDA driver, a name or a path."},
  };
  return table;
}

const Variable& variable(Id id) {
  const auto index = static_cast<std::size_t>(id);
  PENSTOCK_CHECK(index < variables().size(), "no variable {}", index);
  return variables()[index];
}

std::string text(Id id) {
  const char* value = std::getenv(variable(id).name);
  return value != nullptr && *value != '\0' ? value : variable(id).default_value;
}

bool is_set(Id id) {
  const char* value = std::getenv(variable(id).name);
  return value != nullptr && *value != '\0';
}

Result<std::uint64_t> number(Id id, std::uint64_t min, std::uint64_t max) {
  const std::string value = text(id);
  if (value.empty()) return not_set(id);
  const std::optional<std::uint64_t> parsed = parse_digits(value);
  if (!parsed) {
    return error(Code::invalid_argument, "{}={} is not a number: it must be {}..{}",
                 variable(id).name, value, min, max);
  }
  if (*parsed < min || *parsed > max) return out_of_bounds(id, value, min, max);
  return *parsed;
}

Result<std::uint64_t> bytes(Id id, std::uint64_t min, std::uint64_t max) {
  const std::string value = text(id);
  if (value.empty()) return not_set(id);
  Result<std::uint64_t> parsed = parse_bytes(value);
  if (!parsed.ok()) return parsed.status().with_context(variable(id).name);
  if (*parsed < min || *parsed > max) return out_of_bounds(id, value, min, max);
  return parsed;
}

Result<std::uint64_t> parse_bytes(const std::string& text) {
  const Status wrong = error(Code::invalid_argument,
                             "\"{}\" is not a number of bytes: write digits, perhaps a fraction, "
                             "and K, M or G (such as 64, 1K, 1.5M, 2G)",
                             text);
  std::string digits = text;
  std::uint64_t unit = 1;
  if (!digits.empty()) {
    switch (std::toupper(static_cast<unsigned char>(digits.back()))) {
      case 'K':
        unit = std::uint64_t{1} << 10;
        break;
      case 'M':
        unit = std::uint64_t{1} << 20;
        break;
      case 'G':
        unit = std::uint64_t{1} << 30;
        break;
    }
    if (unit > 1) digits.pop_back();
  }
  std::string fraction;
  const std::size_t dot = digits.find('.');
  if (dot != std::string::npos) {
    fraction = digits.substr(dot + 1);
    digits.resize(dot);
    // Nine digits times 2^30 stay below 2^64, so that the fraction is computed exactly.
    if (unit == 1 || fraction.empty() || fraction.size() > 9) return wrong;
  }
  const std::optional<std::uint64_t> whole = parse_digits(digits);
  if (!whole || *whole > UINT64_MAX / unit) return wrong;
  std::uint64_t part = 0;
  if (!fraction.empty()) {
    const std::optional<std::uint64_t> numerator = parse_digits(fraction);
    if (!numerator) return wrong;
    std::uint64_t denominator = 1;
    for (std::size_t i = 0; i < fraction.size(); ++i) denominator *= 10;
    part = *numerator * unit;
    if (part % denominator != 0) {
      return error(Code::invalid_argument, "\"{}\" is not a whole number of bytes", text);
    }
    part /= denominator;
  }
  if (*whole * unit > UINT64_MAX - part) return wrong;
  return *whole * unit + part;
}

std::optional<std::string> foreign(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace penstock::env
