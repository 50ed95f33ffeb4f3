#include "penstock/engine/conformance.h"

#include <algorithm>
#include <map>
#include <utility>

#include "penstock/engine/conformance_rig.h"

namespace penstock {

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass:
      return "pass";
    case Verdict::fail:
      return "fail";
    case Verdict::unsupported:
      return "unsupported";
  }
  return "?";
}

bool ConformanceReport::passed() const {
  const auto is = [](Verdict verdict) {
    return [verdict](const ConformanceRow& row) { return row.verdict == verdict; };
  };
  return std::none_of(rows.begin(), rows.end(), is(Verdict::fail)) &&
         std::any_of(rows.begin(), rows.end(), is(Verdict::pass));
}

std::uint64_t ConformanceReport::comparisons() const {
  std::uint64_t sum = 0;
  for (const ConformanceRow& row : rows) sum += row.comparisons;
  return sum;
}

std::string ConformanceReport::to_table() const {
  struct Line {
    std::string passed, unsupported;
    std::vector<std::string> notes;
    std::uint64_t comparisons = 0;
  };
  std::vector<std::pair<std::string, Line>> lines;
  for (const ConformanceRow& row : rows) {
    if (lines.empty() || lines.back().first != row.operation) lines.push_back({row.operation, {}});
    Line& line = lines.back().second;
    line.comparisons += row.comparisons;
    const std::string type = row.type.empty() ? "" : " " + row.type;
    if (row.verdict == Verdict::pass) {
      line.passed += row.type.empty() ? " pass" : type;
      continue;
    }
    if (row.verdict == Verdict::unsupported) line.unsupported += row.type.empty() ? " yes" : type;
    line.notes.push_back(fmt::format("{}{}: {}", verdict_name(row.verdict), type, row.reason));
  }
  std::string out = fmt::format("engine {}: {}\n", engine, description);
  for (auto& [operation, line] : lines) {
    out += fmt::format("  {:<22}{:>10} {}\n", operation, line.comparisons, line.passed);
    // One note for all types that are unsupported for one reason.
    line.notes.erase(std::unique(line.notes.begin(), line.notes.end()), line.notes.end());
    for (const std::string& note : line.notes) out += fmt::format("      {}\n", note);
  }
  out += fmt::format("{}: {} comparisons, seed {}\n", passed() ? "conforms" : "DOES NOT CONFORM",
                     comparisons(), seed);
  return out;
}

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else
      out += c;
  }
  return out + "\"";
}

}  // namespace

std::string ConformanceReport::to_json() const {
  std::string out = fmt::format(
      "{{\"engine\": {}, \"description\": {}, \"seed\": {}, \"passed\": {}, "
      "\"comparisons\": {}, \"rows\": [",
      quoted(engine), quoted(description), seed, passed(), comparisons());
  const char* separator = "\n";
  for (const ConformanceRow& row : rows) {
    out += fmt::format(
        "{}  {{\"operation\": {}, \"type\": {}, \"verdict\": \"{}\", \"comparisons\": {}, "
        "\"reason\": {}}}",
        separator, quoted(row.operation), quoted(row.type), verdict_name(row.verdict),
        row.comparisons, quoted(row.reason));
    separator = ",\n";
  }
  return out + "\n]}\n";
}

Result<ConformanceReport> run_conformance(Engine& engine, const ConformanceOptions& options) {
  // 64 sources, 3 destinations, a list and what else the parts lay out.
  constexpr std::uint64_t kArenaBytes = std::uint64_t{3} << 20;
  PENSTOCK_ASSIGN(const std::unique_ptr<conformance::Rig> rig,
                  conformance::Rig::create(engine, options, kArenaBytes));
  ConformanceReport report;
  report.engine = engine.capabilities().name;
  report.description = engine.capabilities().description;
  report.seed = options.seed;
  conformance::check_copy(*rig, &report.rows);
  conformance::check_reduce(*rig, &report.rows);
  conformance::check_fused(*rig, &report.rows);
  conformance::check_select(*rig, &report.rows);
  conformance::check_malformed(*rig, &report.rows);
  conformance::check_addresses(*rig, &report.rows);
  conformance::check_fences(*rig, &report.rows);
  conformance::check_barrier(*rig, &report.rows);
  return report;
}

namespace conformance {

Result<std::unique_ptr<Rig>> Rig::create(Engine& engine, const ConformanceOptions& options,
                                         std::uint64_t bytes) {
  std::unique_ptr<Rig> rig(new Rig(engine, options));
  if (options.pool == nullptr && !engine.capabilities().host_memory)
    return error(Code::invalid_argument,
                 "conformance of {}: the engine does not reach host memory, so it needs a pool",
                 engine.capabilities().name);
  rig->bytes_ = bytes;
  if (options.pool != nullptr) {
    RegionRequest request;
    request.bytes = bytes;
    PENSTOCK_ASSIGN(rig->region_, options.pool->allocate(request));
    rig->base_ = rig->region_.address;
    rig->memory_ = options.pool->resolve(rig->base_, bytes);
  } else {
    rig->host_memory_.resize(bytes + PENSTOCK_CACHE_LINE);
    const auto start = reinterpret_cast<std::uintptr_t>(rig->host_memory_.data());
    rig->memory_ = rig->host_memory_.data() + (-start) % PENSTOCK_CACHE_LINE;
    rig->base_ = penstock_address_host(rig->memory_);
  }
  QueueConfig config;
  config.depth = 16;
  PENSTOCK_ASSIGN(rig->queue_, Queue::create(options.pool, config));
  return rig;
}

Rig::~Rig() {
  // An engine may still hold descriptors; the memory goes only after it gave them back.
  if (queue_ != nullptr) {
    queue_->cancel();
    const std::uint64_t deadline = now_ns() + std::uint64_t{options_.timeout_ms} * 1'000'000;
    penstock_completion completion;
    while (queue_->in_flight() != 0 && now_ns() < deadline) {
      engine_.advance(*queue_);
      while (queue_->poll(&completion)) continue;
    }
  }
  if (region_.bytes != 0) static_cast<void>(options_.pool->free(region_));
}

std::uint64_t Rig::now_ns() {
  return (options_.pool != nullptr ? options_.pool->platform() : Platform::host()).now_ns();
}

void Rig::publish(std::uint64_t offset, std::uint64_t bytes) {
  if (options_.pool != nullptr) options_.pool->publish(memory_ + offset, bytes);
}
void Rig::observe(std::uint64_t offset, std::uint64_t bytes) {
  if (options_.pool != nullptr) options_.pool->observe(memory_ + offset, bytes);
}

Result<penstock_completion> Rig::run(const penstock_descriptor& descriptor) {
  if (!queue_->submit(descriptor)) return error(Code::busy, "the queue took no descriptor");
  return next();
}

Result<penstock_completion> Rig::next() {
  const std::uint64_t deadline = now_ns() + std::uint64_t{options_.timeout_ms} * 1'000'000;
  penstock_completion completion;
  while (true) {
    engine_.advance(*queue_);
    if (queue_->poll(&completion)) return completion;
    if (now_ns() > deadline)
      return error(Code::deadline_exceeded, "no completion within {} ms", options_.timeout_ms);
    Platform::host().pause();
  }
}

ConformanceRow Tally::row(std::string operation, std::string type) const {
  ConformanceRow row;
  row.operation = std::move(operation);
  row.type = std::move(type);
  row.comparisons = comparisons_;
  row.reason = reason_;
  if (reason_.empty() && comparisons_ == 0) row.reason = "nothing was compared";
  row.verdict = row.reason.empty() ? Verdict::pass : Verdict::fail;
  return row;
}

ConformanceRow unsupported_row(std::string operation, std::string type, std::string reason) {
  return {std::move(operation), std::move(type), Verdict::unsupported, std::move(reason), 0};
}

penstock_descriptor make_descriptor(std::uint32_t opcode, std::uint32_t n_src,
                                    std::uint32_t n_dst) {
  penstock_descriptor d{};
  d.opcode = static_cast<std::uint8_t>(opcode);
  d.version = PENSTOCK_DESCRIPTOR_VERSION;
  d.n_src = static_cast<std::uint8_t>(n_src);
  d.n_dst = static_cast<std::uint8_t>(n_dst);
  return d;
}

bool has(const Rig& rig, std::uint32_t opcode) {
  return (rig.capabilities().opcodes >> opcode & 1) != 0;
}

std::string describe(const penstock_completion& completion) {
  return fmt::format("{} (field {}, detail {:#x})", penstock_status_name(completion.status),
                     penstock_field_name(completion.field), completion.detail);
}

}  // namespace conformance
}  // namespace penstock
