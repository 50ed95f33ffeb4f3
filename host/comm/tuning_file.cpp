#include "penstock/comm/tuning_file.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>

#include "penstock/base/env.h"
#include "penstock/base/memory_linux.h"
#include "penstock/comm/plan.h"

namespace penstock {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;
constexpr const char* kFormat = "penstock-tuning";
constexpr std::uint64_t kVersion = 1;

// The fields of both structs, in one place: name, and where it is.
template <typename TuningType, typename Visit>
void visit_tuning(TuningType& tuning, const Visit& visit) {
  visit("inline_bytes", tuning.inline_bytes);
  visit("one_shot_bytes", tuning.one_shot_bytes);
  visit("sharded_bytes", tuning.sharded_bytes);
  visit("chunk_bytes", tuning.chunk_bytes);
  visit("chunks", tuning.chunks);
  visit("push", tuning.push);
}
template <typename LocalType, typename Visit>
void visit_local(LocalType& local, const Visit& visit) {
  visit("expose_bytes", local.expose_bytes);
  visit("stream_bytes", local.stream_bytes);
}

// Where in the file something is, and what is wrong with it.
class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  Status wrong(const std::string& where, const std::string& what) const {
    return error(Code::invalid_argument, "{}: {}: {}", path_, where.empty() ? "the file" : where,
                 what);
  }

  Status object(const ordered_json& value, const std::string& where,
                const std::vector<std::string>& known) const {
    if (!value.is_object()) return wrong(where, "it must be an object");
    for (const auto& [name, field] : value.items()) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      std::string names;
      for (const std::string& each : known) names += (names.empty() ? "" : ", ") + each;
      return wrong(join(where, name), "there is no such field; there are " + names);
    }
    return {};
  }

  Result<std::uint64_t> number(const ordered_json& object, const std::string& where,
                               const std::string& name, std::uint64_t min,
                               std::uint64_t max) const {
    auto found = object.find(name);
    if (found == object.end()) return wrong(join(where, name), "it is missing");
    if (!found->is_number_unsigned()) return wrong(join(where, name), "it must be a whole number");
    const auto value = found->get<std::uint64_t>();
    if (value < min || value > max) {
      return wrong(join(where, name), fmt::format("it is {}, and must be {}..{}", value, min, max));
    }
    return value;
  }

  Result<std::string> text(const ordered_json& object, const std::string& where,
                           const std::string& name) const {
    auto found = object.find(name);
    if (found == object.end()) return wrong(join(where, name), "it is missing");
    if (!found->is_string()) return wrong(join(where, name), "it must be a string");
    return found->get<std::string>();
  }

  static std::string join(const std::string& where, const std::string& name) {
    return where.empty() ? name : where + "." + name;
  }

 private:
  std::string path_;
};

// Reads the fields that are there into a struct of numbers.
template <typename Visitor>
Status read_fields(const Reader& reader, const ordered_json& entry, const std::string& where,
                   const std::string& name, const Visitor& visitor) {
  auto found = entry.find(name);
  if (found == entry.end()) return {};
  const std::string at = Reader::join(where, name);
  std::vector<std::string> known;
  visitor([&](const char* field, auto&) { known.emplace_back(field); });
  PENSTOCK_TRY(reader.object(*found, at, known));
  Status status;
  visitor([&](const char* field, auto& value) {
    using Number = std::remove_reference_t<decltype(value)>;
    if (!status.ok() || !found->contains(field)) return;
    auto number = reader.number(*found, at, field, 0, std::numeric_limits<Number>::max());
    status = number.status();
    if (number.ok()) value = static_cast<Number>(*number);
  });
  return status;
}

Result<TuningEntry> read_entry(const Reader& reader, const ordered_json& json,
                               const std::string& where) {
  PENSTOCK_TRY(reader.object(json, where, {"machine", "ranks", "tuning", "local", "note"}));
  TuningEntry entry;
  const std::string machine_at = Reader::join(where, "machine");
  if (!json.contains("machine")) return reader.wrong(machine_at, "it is missing");
  const ordered_json& machine = json["machine"];
  PENSTOCK_TRY(reader.object(machine, machine_at, {"cpu", "cpus", "coherence"}));
  PENSTOCK_ASSIGN(entry.machine.cpu, reader.text(machine, machine_at, "cpu"));
  PENSTOCK_ASSIGN(const std::uint64_t cpus, reader.number(machine, machine_at, "cpus", 1, 1 << 20));
  entry.machine.cpus = static_cast<std::uint32_t>(cpus);
  PENSTOCK_ASSIGN(const std::string coherence, reader.text(machine, machine_at, "coherence"));
  auto parsed = parse_coherence(coherence);
  if (!parsed.ok()) {
    return reader.wrong(machine_at + ".coherence",
                        "\"" + coherence + "\" is neither hardware nor software");
  }
  entry.machine.coherence = *parsed;
  PENSTOCK_ASSIGN(const std::uint64_t ranks, reader.number(json, where, "ranks", 2, kMaxRanks));
  entry.ranks = static_cast<std::uint32_t>(ranks);
  PENSTOCK_TRY(read_fields(reader, json, where, "tuning",
                           [&](const auto& visit) { visit_tuning(entry.tuning, visit); }));
  PENSTOCK_TRY(read_fields(reader, json, where, "local",
                           [&](const auto& visit) { visit_local(entry.local, visit); }));
  const Status sound = check_tuning(entry.tuning);
  if (!sound.ok()) return reader.wrong(where, sound.message());
  if (json.contains("note")) {
    PENSTOCK_ASSIGN(entry.note, reader.text(json, where, "note"));
  }
  return entry;
}

// What the system tells in a file of its own; "" if there is none.
std::string read_start(Platform& platform, const char* path) {
  auto file = platform.open(path, OpenMode::read_only);
  std::array<char, 4096> text{};
  if (!file.ok()) return "";
  auto got = (*file)->read_at(0, text.data(), text.size());
  return {text.data(), got.ok() ? *got : 0};
}

bool is_more_than_cpus(const TuningMachine& machine, std::uint32_t ranks) {
  return ranks > machine.cpus;
}

}  // namespace

TuningMachine this_machine(Platform& platform, Coherence coherence) {
  TuningMachine machine{"unknown", std::max(1u, platform.cpu_count()), coherence};
  // Not those that the process may run on: a rank that is pinned is on the same machine.
  const auto online = parse_kernel_list(read_start(platform, "/sys/devices/system/cpu/online"));
  if (!online.empty()) machine.cpus = static_cast<std::uint32_t>(online.size());
  const std::string info = read_start(platform, "/proc/cpuinfo");
  const std::size_t line = info.find("model name");
  const std::size_t colon = info.find(": ", line);
  const std::size_t end = info.find('\n', colon);
  if (line != std::string::npos && colon != std::string::npos && end != std::string::npos) {
    machine.cpu = info.substr(colon + 2, end - colon - 2);
  }
  return machine;
}

const TuningEntry* TuningTable::find(const TuningMachine& machine, std::uint32_t ranks) const {
  const TuningEntry* best = nullptr;
  const auto distance = [ranks](const TuningEntry& entry) {
    return entry.ranks > ranks ? entry.ranks - ranks : ranks - entry.ranks;
  };
  for (const TuningEntry& entry : entries) {
    if (!(entry.machine == machine)) continue;
    if (is_more_than_cpus(machine, entry.ranks) != is_more_than_cpus(machine, ranks)) continue;
    if (best == nullptr || distance(entry) < distance(*best)) best = &entry;
  }
  return best;
}

void TuningTable::put(TuningEntry entry) {
  for (TuningEntry& old : entries) {
    if (!(old.machine == entry.machine) || old.ranks != entry.ranks) continue;
    old = std::move(entry);
    return;
  }
  entries.push_back(std::move(entry));
}

Result<TuningTable> parse_tuning_table(const std::string& text, const std::string& path) {
  const Reader reader(path);
  ordered_json json;
  try {
    json = ordered_json::parse(text);
  } catch (const nlohmann::json::parse_error& problem) {
    return reader.wrong(fmt::format("byte {}", problem.byte), "this is no JSON");
  }
  PENSTOCK_TRY(reader.object(json, "", {"format", "version", "entries"}));
  PENSTOCK_ASSIGN(const std::string format, reader.text(json, "", "format"));
  if (format != kFormat) {
    return reader.wrong("format", fmt::format("it must be \"{}\"", kFormat));
  }
  PENSTOCK_ASSIGN(const std::uint64_t version,
                  reader.number(json, "", "version", 0, std::numeric_limits<std::uint64_t>::max()));
  if (version != kVersion) {
    return error(Code::unsupported, "{}: version is {}, and this library knows {}; measure anew",
                 path, version, kVersion);
  }
  if (!json.contains("entries") || !json["entries"].is_array()) {
    return reader.wrong("entries", "it must be a list");
  }
  TuningTable table;
  for (std::size_t i = 0; i < json["entries"].size(); ++i) {
    const std::string where = fmt::format("entries[{}]", i);
    PENSTOCK_ASSIGN(TuningEntry entry, read_entry(reader, json["entries"][i], where));
    const std::size_t before = table.entries.size();
    table.put(std::move(entry));
    if (table.entries.size() == before) {
      return reader.wrong(where, "there is another entry for this machine and number of ranks");
    }
  }
  return table;
}

std::string tuning_table_text(const TuningTable& table) {
  ordered_json json = {{"format", kFormat}, {"version", kVersion}};
  json["entries"] = ordered_json::array();
  for (const TuningEntry& entry : table.entries) {
    ordered_json one;
    one["machine"] = {{"cpu", entry.machine.cpu},
                      {"cpus", entry.machine.cpus},
                      {"coherence", coherence_name(entry.machine.coherence)}};
    one["ranks"] = entry.ranks;
    visit_tuning(entry.tuning,
                 [&](const char* name, const auto& value) { one["tuning"][name] = value; });
    visit_local(entry.local,
                [&](const char* name, const auto& value) { one["local"][name] = value; });
    if (!entry.note.empty()) one["note"] = entry.note;
    json["entries"].push_back(std::move(one));
  }
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Result<TuningTable> load_tuning_table(Platform& platform, const std::string& path) {
  PENSTOCK_ASSIGN(const auto file, platform.open(path, OpenMode::read_only));
  std::string text(kMaxFileBytes + 1, '\0');
  PENSTOCK_ASSIGN(const std::size_t got, file->read_at(0, text.data(), text.size()));
  if (got > kMaxFileBytes) {
    return error(Code::invalid_argument, "{}: more than {} bytes; this is no tuning table", path,
                 kMaxFileBytes);
  }
  text.resize(got);
  return parse_tuning_table(text, path);
}

std::string tuning_path() {
  if (env::is_set(env::Id::tuning)) {
    const std::string path = env::text(env::Id::tuning);
    return path == "none" ? "" : path;
  }
  const auto config = env::foreign("XDG_CONFIG_HOME");
  if (config && !config->empty()) return *config + "/penstock/tuning.json";
  const auto home = env::foreign("HOME");
  return home && !home->empty() ? *home + "/.config/penstock/tuning.json" : "";
}

Status set_tuning_fields(const std::string& text, Tuning& tuning, LocalTuning& local) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    bool known = false;
    Status status;
    const auto set = [&](const char* field, auto& value) {
      using Number = std::remove_reference_t<decltype(value)>;
      if (name != field || equals == std::string::npos) return;
      known = true;
      auto number = env::parse_bytes(word.substr(equals + 1));
      if (!number.ok() || *number > std::numeric_limits<Number>::max()) {
        status = error(Code::invalid_argument, "{}: {} must be a number up to {}", word, field,
                       std::numeric_limits<Number>::max());
        return;
      }
      value = static_cast<Number>(*number);
    };
    visit_tuning(tuning, set);
    visit_local(local, set);
    if (!status.ok()) return status;
    if (known) continue;
    std::string names;
    for (const FieldValue& field : tuning_fields(tuning, local)) {
      names += (names.empty() ? "" : ", ") + field.name;
    }
    return error(Code::invalid_argument, "'{}' sets no field; write NAME=NUMBER with one of {}",
                 word, names);
  }
  return check_tuning(tuning);
}

std::vector<FieldValue> tuning_fields(const Tuning& tuning, const LocalTuning& local) {
  std::vector<FieldValue> fields;
  const auto add = [&](const char* name, const auto& value) { fields.push_back({name, value}); };
  visit_tuning(tuning, add);
  visit_local(local, add);
  return fields;
}

Result<TuningInForce> tuning_in_force(Platform& platform, Coherence coherence,
                                      std::uint32_t ranks) {
  TuningInForce force{{}, {}, "built in"};
  const std::string path = tuning_path();
  const bool named = env::is_set(env::Id::tuning);
  if (!path.empty() && (named || platform.exists(path))) {
    auto table = load_tuning_table(platform, path);
    if (!table.ok()) return named ? table.status().with_context("PENSTOCK_TUNING") : table.status();
    const TuningMachine machine = this_machine(platform, coherence);
    if (const TuningEntry* entry = table->find(machine, ranks)) {
      force.tuning = entry->tuning;
      force.local = entry->local;
      force.origin = fmt::format("{}, measured with {} ranks", path, entry->ranks);
    } else {
      force.origin = fmt::format("built in; {} has nothing for this machine", path);
    }
  }
  if (env::is_set(env::Id::tuning_set)) {
    const Status set = set_tuning_fields(env::text(env::Id::tuning_set), force.tuning, force.local);
    if (!set.ok()) return set.with_context("PENSTOCK_TUNING_SET");
    force.origin += "; PENSTOCK_TUNING_SET " + env::text(env::Id::tuning_set);
  }
  return force;
}

}  // namespace penstock
