// The tuning table of a machine: what `penstock tune` measured, where a comm finds it.
//
// A JSON file:
//
//   {"format": "penstock-tuning", "version": 1,
//    "entries": [
//      {"machine": {"cpu": "Intel(R) ...", "cpus": 2, "coherence": "hardware"}, "ranks": 2,
//       "tuning": {"inline_bytes": 1024, ...},   fields of Tuning
//       "local": {"expose_bytes": 8192, ...},    fields of LocalTuning
//       "note": "..."}]}                         for people
//
// Fields of tuning and local that are missing keep their defaults. A field that is not known is an
// error, so that a slip of the pen does not go unnoticed; so is a second entry for the same machine
// and ranks.
#ifndef PENSTOCK_COMM_TUNING_FILE_H_
#define PENSTOCK_COMM_TUNING_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/base/platform.h"
#include "penstock/comm/tuning.h"
#include "penstock/memory/pool.h"

namespace penstock {

// What a measurement is good for.
struct TuningMachine {
  std::string cpu;         // model name, "unknown" if the system does not tell
  std::uint32_t cpus = 1;  // that are online
  Coherence coherence = Coherence::hardware;
  bool operator==(const TuningMachine&) const = default;
};
TuningMachine this_machine(Platform& platform, Coherence coherence);

struct TuningEntry {
  TuningMachine machine;
  std::uint32_t ranks = 2;  // 2..64
  Tuning tuning;
  LocalTuning local;
  std::string note;
  bool operator==(const TuningEntry&) const = default;
};

struct TuningTable {
  std::vector<TuningEntry> entries;

  // The machine's entry for these ranks; else the one whose ranks are nearest among those that,
  // like `ranks`, are more or not more than the CPUs; null if there is none.
  const TuningEntry* find(const TuningMachine& machine, std::uint32_t ranks) const;
  // Replaces the entry of the same machine and ranks, or adds it.
  void put(TuningEntry entry);
};

// invalid_argument: `path`, the field, and what would be right.
Result<TuningTable> parse_tuning_table(const std::string& text, const std::string& path);
std::string tuning_table_text(const TuningTable& table);
// Besides: not_found; a file of more than 1 MiB is refused.
Result<TuningTable> load_tuning_table(Platform& platform, const std::string& path);

// PENSTOCK_TUNING, else $XDG_CONFIG_HOME/penstock/tuning.json, else
// $HOME/.config/penstock/tuning.json; "" if there is no such place, or PENSTOCK_TUNING is "none".
std::string tuning_path();

// "chunks=8,chunk_bytes=128K": overrides fields. invalid_argument names the field.
Status set_tuning_fields(const std::string& text, Tuning& tuning, LocalTuning& local);

struct FieldValue {
  std::string name;
  std::uint64_t value;
  bool operator==(const FieldValue&) const = default;
};
// All fields by name, those of Tuning first.
std::vector<FieldValue> tuning_fields(const Tuning& tuning, const LocalTuning& local);

struct TuningInForce {
  Tuning tuning;
  LocalTuning local;
  std::string origin;  // for people: "built in", or the file and entry; and what was overridden
};
// What a comm of so many ranks uses: the file's entry, or what is built in, with the overrides of
// PENSTOCK_TUNING_SET. A file that PENSTOCK_TUNING names has to exist.
Result<TuningInForce> tuning_in_force(Platform& platform, Coherence coherence, std::uint32_t ranks);

}  // namespace penstock
#endif
