#include "penstock/sim/hls/hls_engine.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "penstock/descriptor/descriptor.h"
#include "penstock/engine/device_engine.h"
#include "penstock/hls/penstock_hls.h"

namespace penstock::sim {
namespace {

// Of a source, in one call of the kernel: what it streams stands in memory, because its stages run
// one after another here.
constexpr std::uint64_t kPieceBytes = 64 << 10;

// What the kernel's ports get: the line on which the lowest operand lies, and offsets from there.
class Ports {
 public:
  void add(const void* operand) {
    lowest_ = std::min(lowest_, reinterpret_cast<std::uintptr_t>(operand));
  }
  void* base() const {
    return reinterpret_cast<void*>(lowest_ / PENSTOCK_CACHE_LINE * PENSTOCK_CACHE_LINE);
  }
  std::uint64_t offset(const void* operand) const {
    return reinterpret_cast<std::uintptr_t>(operand) - reinterpret_cast<std::uintptr_t>(base());
  }

 private:
  std::uintptr_t lowest_ = UINTPTR_MAX;
};

struct Fold {
  std::uint32_t type, redop, out_type;
  std::uint64_t scale;
};

void run_reduce(const Fold& fold, const void* const* src, std::uint32_t n_src, void* const* dst,
                std::uint32_t n_dst, std::uint64_t count) {
  const std::uint64_t in_bytes = penstock_type_size(fold.type);
  const std::uint64_t out_bytes = penstock_type_size(fold.out_type);
  Ports ports;
  for (std::uint32_t s = 0; s < n_src; ++s) ports.add(src[s]);
  for (std::uint32_t d = 0; d < n_dst; ++d) ports.add(dst[d]);
  std::uint64_t sources[PENSTOCK_MAX_SOURCES] = {};
  std::uint64_t destinations[PENSTOCK_MAX_DESTINATIONS] = {};
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t n = std::min(count - done, kPieceBytes / in_bytes);
    for (std::uint32_t s = 0; s < n_src; ++s) sources[s] = ports.offset(src[s]) + done * in_bytes;
    for (std::uint32_t d = 0; d < n_dst; ++d)
      destinations[d] = ports.offset(dst[d]) + done * out_bytes;
    penstock_hls_reduce(penstock_hls::WordPort(ports.base()), penstock_hls::WordPort(ports.base()),
                        static_cast<std::uint8_t*>(ports.base()), sources, destinations[0],
                        destinations[1], destinations[2], n, fold.scale, fold.type, fold.redop,
                        fold.out_type, n_src, n_dst);
    done += n;
  }
}

// The kernel of SELECT keeps its table in memory of its own, of which there is one.
std::mutex& select_mutex() {
  static std::mutex mutex;
  return mutex;
}

void run_select(const SelectArguments& a) {
  Ports ports;
  alignas(8) std::uint64_t status[2] = {};
  for (const void* operand :
       {static_cast<const void*>(a.view.header), static_cast<const void*>(a.table),
        static_cast<const void*>(a.program), static_cast<const void*>(a.tasks),
        static_cast<const void*>(a.results), static_cast<const void*>(status)})
    ports.add(operand);
  // What lies at an address may be another table than it was, so none is kept.
  const std::uint32_t flags = PENSTOCK_HLS_FORGET | (a.commit ? PENSTOCK_HLS_COMMIT : 0);
  auto* words = static_cast<std::uint64_t*>(ports.base());
  const std::lock_guard<std::mutex> lock(select_mutex());
  penstock_hls_select(penstock_hls::WordPort(ports.base()), words,
                      penstock_hls::CellPort(ports.base()), words, ports.offset(a.view.header),
                      ports.offset(a.table), ports.offset(a.program), ports.offset(a.tasks),
                      ports.offset(a.results), ports.offset(status),
                      static_cast<std::uint32_t>(a.n), flags);
  *a.status = static_cast<std::uint32_t>(status[0]);
  *a.field = static_cast<std::uint32_t>(status[0] >> 32);
  *a.detail = status[1];
}

// Each operation is over when it has been started.
class HlsStream final : public DeviceStream {
 public:
  Status copy(void* const* dst, std::uint32_t n_dst, const void* src,
              std::uint64_t bytes) override {
    run_reduce({PENSTOCK_UINT8, PENSTOCK_SUM, PENSTOCK_UINT8, 0}, &src, 1, dst, n_dst, bytes);
    return {};
  }
  Status reduce(const ReduceArguments& a) override {
    run_reduce({a.type, a.redop, a.result_type(), a.scale}, a.src, a.n_src, a.dst, a.n_dst,
               a.count);
    return {};
  }
  Status select(const SelectArguments& arguments) override {
    run_select(arguments);
    return {};
  }
  Result<std::uint64_t> mark() override { return ++marks_; }
  Result<bool> reached(std::uint64_t) override { return true; }

 private:
  std::uint64_t marks_ = 0;
};

class HlsDevice final : public Device {
 public:
  Result<std::unique_ptr<DeviceStream>> open(Queue&) override {
    return std::unique_ptr<DeviceStream>(std::make_unique<HlsStream>());
  }
};

constexpr std::uint64_t bit_of(std::uint32_t op) { return std::uint64_t{1} << op; }

}  // namespace

Capabilities hls_capabilities() {
  Capabilities c;
  c.name = "hls";
  c.description = "the HLS kernels, compiled as plain C++";
  c.opcodes = 1u << PENSTOCK_OP_NOP | 1u << PENSTOCK_OP_COPY | 1u << PENSTOCK_OP_REDUCE |
              1u << PENSTOCK_OP_SIGNAL | 1u << PENSTOCK_OP_WAIT | 1u << PENSTOCK_OP_SELECT |
              1u << PENSTOCK_OP_BARRIER;
  for (std::uint32_t type = 0; type < PENSTOCK_TYPE_COUNT; ++type) {
    for (std::uint32_t redop = 0; redop < PENSTOCK_REDOP_COUNT; ++redop)
      if (penstock_hls_reduce_takes(type, redop, type, 2, 1)) c.redops[type] |= 1u << redop;
    // Of INT8 these bits are about block-scaled int8.
    for (std::uint32_t out = 0; out < PENSTOCK_TYPE_COUNT; ++out)
      if (type != PENSTOCK_INT8 && penstock_hls_reduce_takes(type, PENSTOCK_SUM, out, 2, 1))
        c.out_types[type] |= 1u << out;
  }
  c.max_sources = PENSTOCK_MAX_SOURCES;
  c.max_destinations = PENSTOCK_MAX_DESTINATIONS;
  c.max_bytes = std::uint64_t{1} << 48;
  c.max_rows = PENSTOCK_HLS_MAX_ROWS;
  c.select.operations = bit_of(PENSTOCK_FILTER_BITS) | bit_of(PENSTOCK_FILTER_FIT) |
                        bit_of(PENSTOCK_FILTER_GPU) | bit_of(PENSTOCK_FILTER_ROW) |
                        bit_of(PENSTOCK_FILTER_DOMAINS) | bit_of(PENSTOCK_SCORE_LEAST_ALLOCATED) |
                        bit_of(PENSTOCK_SCORE_MOST_ALLOCATED) | bit_of(PENSTOCK_SCORE_BALANCED) |
                        bit_of(PENSTOCK_SCORE_BITS) | bit_of(PENSTOCK_SCORE_FEATURES) |
                        bit_of(PENSTOCK_SCORE_DOMAINS) | bit_of(PENSTOCK_SCORE_SPREAD);
  c.select.normalisations = (2u << PENSTOCK_NORMALISE_SPREAD) - 1;
  c.select.ties = 1u << PENSTOCK_TIE_LOWEST_ROW | 1u << PENSTOCK_TIE_ROTATING;
  c.select.max_best = PENSTOCK_MAX_BEST;
  c.select.max_resources = PENSTOCK_HLS_MAX_RESOURCES;
  c.select.max_bits = PENSTOCK_MAX_BIT_COLUMNS;
  c.select.max_free = PENSTOCK_HLS_MAX_FREE;
  c.host_memory = true;
  c.synchronous = true;
  return c;
}

EngineFactory hls_engine_factory() {
  EngineFactory factory;
  factory.name = "hls";
  factory.preference = -1;
  factory.probe = [] {
    EngineInfo info;
    info.name = "hls";
    info.available = info.simulated = true;
    info.capabilities = hls_capabilities();
    info.reason = info.capabilities.description;
    return info;
  };
  factory.make = [](const std::string& argument) -> Result<std::shared_ptr<Engine>> {
    if (!argument.empty())
      return error(Code::invalid_argument, "hls takes nothing after its name, not '{}'", argument);
    return std::shared_ptr<Engine>(
        make_device_engine(hls_capabilities(), std::make_shared<HlsDevice>()));
  };
  return factory;
}

}  // namespace penstock::sim
