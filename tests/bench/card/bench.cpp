#include <fmt/core.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "penstock/descriptor/register_map.h"
#include "workload.h"

namespace penstock::bench {
namespace {

constexpr std::uint32_t kDepthLog2 = 8;
constexpr std::uint32_t kDepth = 1u << kDepthLog2;
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kRingBytes =
    kDepth * (sizeof(penstock_descriptor) + sizeof(penstock_completion));
constexpr std::uint64_t kMostCycles = 50'000'000;  // of one submission
constexpr std::uint64_t kNeverMs = 1u << 20;

[[noreturn]] void give_up(const std::string& what) {
  fmt::print(stderr, "card report: {}\n", what);
  std::exit(1);
}

std::byte* on_page(std::byte* memory) {
  const auto at = reinterpret_cast<std::uintptr_t>(memory);
  return memory + (kPage - at % kPage) % kPage;
}

}  // namespace

Bench::Bench(const std::string& machine, const Latency& latency, std::uint64_t arena_bytes)
    : memory_((arena_bytes + kPage - 1) / kPage * kPage + kRingBytes + 2 * kPage),
      arena_(on_page(memory_.data())),
      rings_(on_page(arena_ + arena_bytes)),
      arena_bytes_(arena_bytes),
      machine_(make_machine(machine, latency)) {
  if (!machine_) give_up(fmt::format("there is no machine {} in this build", machine));
  if (machine_->read(PENSTOCK_REGISTER_ID) != PENSTOCK_REGISTER_ID_RESET)
    give_up(fmt::format("{} is not a card", machine));
  const std::uint64_t arena_bus = machine_->attach(arena_, arena_bytes_);
  const std::uint64_t ring_bus = machine_->attach(rings_, (kRingBytes + kPage - 1) / kPage * kPage);
  machine_->write(PENSTOCK_REGISTER_CONTROL, 1);
  constexpr std::uint32_t kQueue = PENSTOCK_REGISTER_QUEUE;
  wide(kQueue + PENSTOCK_REGISTER_QUEUE_RING_LO, ring_bus);
  wide(kQueue + PENSTOCK_REGISTER_QUEUE_COMPLETIONS_LO,
       ring_bus + kDepth * sizeof(penstock_descriptor));
  machine_->write(kQueue + PENSTOCK_REGISTER_QUEUE_CONFIG, kDepthLog2);
  machine_->write(kQueue + PENSTOCK_REGISTER_QUEUE_TIMEOUT_MS, kNeverMs);
  wide(PENSTOCK_REGISTER_WINDOW + PENSTOCK_REGISTER_WINDOW_BASE_LO, 0);
  wide(PENSTOCK_REGISTER_WINDOW + PENSTOCK_REGISTER_WINDOW_BYTES_LO, arena_bytes_);
  wide(PENSTOCK_REGISTER_WINDOW + PENSTOCK_REGISTER_WINDOW_BUS_LO, arena_bus);
  machine_->write(PENSTOCK_REGISTER_WINDOW + PENSTOCK_REGISTER_WINDOW_RIGHTS, 3);
  machine_->write(kQueue + PENSTOCK_REGISTER_QUEUE_WINDOWS, 1);
  machine_->write(kQueue + PENSTOCK_REGISTER_QUEUE_CONTROL, 1);
}

Bench::~Bench() = default;

void Bench::wide(std::uint32_t offset, std::uint64_t value) {
  machine_->write(offset, static_cast<std::uint32_t>(value));
  machine_->write(offset + 4, static_cast<std::uint32_t>(value >> 32));
}

std::vector<std::uint64_t> Bench::run(const std::vector<penstock_descriptor>& records,
                                      std::uint64_t granularity) {
  if (records.size() > kDepth) give_up("more records than the ring holds");
  std::byte* completions = rings_ + kDepth * sizeof(penstock_descriptor);
  for (std::size_t i = 0; i < records.size(); ++i) {
    penstock_descriptor record = records[i];
    record.cookie = tail_ + i;
    std::memcpy(rings_ + (tail_ + i) % kDepth * sizeof(record), &record, sizeof(record));
  }
  const std::uint32_t first = tail_;
  tail_ += static_cast<std::uint32_t>(records.size());
  machine_->write(PENSTOCK_REGISTER_QUEUE + PENSTOCK_REGISTER_QUEUE_TAIL, tail_);
  const std::uint64_t began = machine_->cycle();
  std::vector<std::uint64_t> seen;
  while (seen.size() < records.size()) {
    const auto index = static_cast<std::uint32_t>(first + seen.size());
    std::byte* at = completions + index % kDepth * sizeof(penstock_completion);
    auto& word = *reinterpret_cast<std::uint64_t*>(at + offsetof(penstock_completion, sequence));
    if (std::atomic_ref<std::uint64_t>(word).load(std::memory_order_acquire) == index + 1u) {
      penstock_completion completion;
      std::memcpy(&completion, at, sizeof(completion));
      if (completion.status != PENSTOCK_OK)
        give_up(fmt::format("{} answered {} (field {}, detail {:#x})",
                            penstock_opcode_name(records[seen.size()].opcode),
                            penstock_status_name(completion.status),
                            penstock_field_name(completion.field), completion.detail));
      seen.push_back(machine_->cycle() - began);
      continue;
    }
    if (machine_->cycle() - began > kMostCycles)
      give_up(fmt::format("no completion after {} cycles", kMostCycles));
    machine_->run(granularity);
  }
  return seen;
}

}  // namespace penstock::bench
