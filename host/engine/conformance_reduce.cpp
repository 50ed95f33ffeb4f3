#include <algorithm>
#include <cstring>

#include "penstock/engine/conformance_operands.h"
#include "penstock/engine/conformance_reference.h"

namespace penstock::conformance {
namespace {

struct Case {
  std::uint32_t type, redop, n_src, n_dst;
  std::uint64_t count, seed;
  int in_place;  // index of the source that is the first destination, or -1
};

// Operands 0 .. n_src-1 are the sources, the rest destinations that are none of them.
void run_case(Rig& rig, const Case& c, Tally* tally) {
  const std::uint32_t size = penstock_type_size(c.type);
  const Bits bits = bits_of(c.type);
  const std::uint64_t bytes = c.count * size;
  Image image(rig);
  std::vector<std::vector<std::uint64_t>> values(c.count, std::vector<std::uint64_t>(c.n_src));
  for (std::uint32_t s = 0; s < c.n_src; ++s) {
    std::byte* data = image.lay(s, mix(c.seed + s) % 64, bytes);
    for (std::uint64_t i = 0; i < c.count; ++i) {
      values[i][s] = element(bits, c.seed, s, i);
      std::memcpy(data + i * size, &values[i][s], size);
    }
  }
  const std::uint32_t fresh = c.n_dst - (c.in_place >= 0 ? 1 : 0);
  for (std::uint32_t d = 0; d < fresh; ++d)
    image.lay(PENSTOCK_MAX_SOURCES + d, mix(c.seed + 100 + d) % 64, bytes);

  penstock_descriptor d = make_descriptor(PENSTOCK_OP_REDUCE, c.n_src, c.n_dst);
  d.type = d.out_type = static_cast<std::uint8_t>(c.type);
  d.redop = static_cast<std::uint8_t>(c.redop);
  d.count = c.count;
  d.cookie = c.seed;
  d.scale = scale_for(c.type, c.redop, c.seed);
  if (mix(c.seed + 200) % 4 == 0) d.flags = PENSTOCK_FLAG_STREAM;
  std::vector<std::size_t> targets;
  if (c.in_place >= 0) targets.push_back(static_cast<std::size_t>(c.in_place));
  for (std::uint32_t k = 0; k < fresh; ++k) targets.push_back(c.n_src + k);
  for (std::uint32_t k = 0; k < c.n_dst; ++k) d.dst[k] = image.address(targets[k]);
  std::vector<penstock_address> src(c.n_src);
  for (std::uint32_t s = 0; s < c.n_src; ++s) src[s] = image.address(s);
  set_sources(rig, src, &d);
  image.store();
  for (std::uint64_t i = 0; i < c.count; ++i) {
    const std::uint64_t expected = reference_reduce(c.type, c.redop, d.scale, values[i]);
    for (const std::size_t target : targets)
      std::memcpy(image.expected(target) + i * size, &expected, size);
  }

  const std::string where = fmt::format("n_src {}, n_dst {}, count {}, in place {}, seed {}",
                                        c.n_src, c.n_dst, c.count, c.in_place, c.seed);
  const Result<penstock_completion> done = rig.run(d);
  tally->compared(c.count * c.n_dst);
  if (!done.ok()) return tally->fail(where + ": " + done.status().message());
  tally->expect(done.value().status == PENSTOCK_OK && done.value().cookie == c.seed,
                where + ": completed with " + describe(done.value()));
  if (const std::string wrong = image.compare(size); !wrong.empty())
    tally->fail(where + ": " + wrong);
}

void check_reduction(Rig& rig, std::uint32_t type, std::uint32_t redop,
                     std::vector<ConformanceRow>* rows) {
  const std::string operation = fmt::format("REDUCE {}", penstock_redop_name(redop));
  const std::string type_name = penstock_type_name(type);
  penstock_descriptor probe = make_descriptor(PENSTOCK_OP_REDUCE, 1, 1);
  probe.type = probe.out_type = static_cast<std::uint8_t>(type);
  probe.redop = static_cast<std::uint8_t>(redop);
  probe.count = 1;
  probe.src[0] = rig.address(0);
  probe.dst[0] = rig.address(64);
  if (refused(rig, probe, operation, type_name, rows)) return;
  Tally tally;
  const Capabilities& caps = rig.capabilities();
  std::uint64_t seed = rig.options().seed * 1'000'003 + type * 1009 + redop * 101;
  for (const std::uint32_t n_src : source_counts(rig.options().quick)) {
    if (n_src > caps.max_sources) continue;
    for (const std::uint64_t count : lengths(rig.options().quick)) {
      if (tally.failed()) break;
      if (count * penstock_type_size(type) > caps.max_bytes || (count > 1000 && n_src > 9))
        continue;
      ++seed;
      Case c{type, redop, n_src, 1, count, seed, -1};
      c.n_dst = 1 + static_cast<std::uint32_t>(mix(seed) % std::min(caps.max_destinations, 3u));
      if (mix(seed) >> 33 & 1)
        c.in_place = static_cast<int>(mix(seed) >> 40) % static_cast<int>(n_src);
      run_case(rig, c, &tally);
    }
  }
  rows->push_back(tally.row(operation, type_name));
}

}  // namespace

void check_reduce(Rig& rig, std::vector<ConformanceRow>* rows) {
  for (std::uint32_t redop = 0; redop < PENSTOCK_REDOP_COUNT; ++redop)
    for (std::uint32_t type = 0; type < PENSTOCK_TYPE_COUNT; ++type)
      check_reduction(rig, type, redop, rows);
}

void check_copy(Rig& rig, std::vector<ConformanceRow>* rows) {
  const Capabilities& caps = rig.capabilities();
  if ((caps.opcodes >> PENSTOCK_OP_COPY & 1) == 0) {
    rows->push_back(unsupported_row("COPY", "", "the engine has no COPY"));
    return;
  }
  Tally tally;
  std::uint64_t seed = rig.options().seed * 77;
  std::vector<std::uint64_t> sizes = lengths(rig.options().quick);
  if (!rig.options().quick) sizes.push_back(4097 * 8);
  for (const std::uint64_t bytes : sizes) {
    for (std::uint32_t n_dst = 1; n_dst <= std::min(caps.max_destinations, 3u); ++n_dst) {
      for (const std::uint32_t way : {0u, 1u, 2u, 3u}) {
        const bool in_place = (way & 1) != 0;
        if (bytes > caps.max_bytes) continue;
        ++seed;
        Image image(rig);
        const std::byte* source = image.lay(0, mix(seed) % 64, bytes);
        const std::vector<std::byte> data(source, source + bytes);
        for (std::uint32_t k = 0; k < n_dst; ++k) image.lay(1 + k, mix(seed + k + 1) % 64, bytes);
        penstock_descriptor d = make_descriptor(PENSTOCK_OP_COPY, 1, n_dst);
        d.count = bytes;
        if ((way & 2) != 0) d.flags = PENSTOCK_FLAG_STREAM;
        d.src[0] = image.address(0);
        for (std::uint32_t k = 0; k < n_dst; ++k)
          d.dst[k] = image.address(in_place && k == 0 ? 0 : 1 + k);
        image.store();
        for (std::uint32_t k = in_place ? 1 : 0; k < n_dst; ++k)
          std::copy(data.begin(), data.end(), image.expected(1 + k));
        const Result<penstock_completion> done = rig.run(d);
        const std::string where = fmt::format("{} bytes, n_dst {}, flags {}, in place {}", bytes,
                                              n_dst, d.flags, in_place);
        tally.compared(bytes * n_dst);
        if (!done.ok())
          return rows->push_back((tally.fail(done.status().message()), tally.row("COPY")));
        tally.expect(done.value().status == PENSTOCK_OK, where + ": " + describe(done.value()));
        if (const std::string wrong = image.compare(1); !wrong.empty())
          tally.fail(where + ": " + wrong);
      }
    }
  }
  rows->push_back(tally.row("COPY"));
}

}  // namespace penstock::conformance
