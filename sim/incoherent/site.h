// Where production code asks for cache control: the call sites of write_back, invalidate and the
// fences, told by the return addresses above them, and a way to ignore some of them as if their
// line were not there.
#ifndef PENSTOCK_SIM_INCOHERENT_SITE_H_
#define PENSTOCK_SIM_INCOHERENT_SITE_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "penstock/base/status.h"

namespace penstock::sim {

enum class Primitive : std::uint8_t { write_back, invalidate, store_fence, full_fence };
inline constexpr int kPrimitives = 4;
const char* primitive_name(Primitive primitive);

// A call site to be ignored: calls of these primitives with `address` among the return addresses
// above them. Addresses are offsets into the program's file, as addr2line takes them.
struct Drop {
  std::uint8_t primitives = 0;  // bit per Primitive
  std::uint64_t address = 0;
};
// "write_back@1a2b" or "any@1a2b", several joined by ','.
Result<std::vector<Drop>> parse_drops(const std::string& text);

// Watches the sites of one or more worlds.
class SiteWatch {
 public:
  static constexpr std::size_t kDepth = 8;
  struct Site {
    Primitive primitive;
    std::array<std::uint64_t, kDepth> callers;  // innermost first, 0 where there are fewer
    auto operator<=>(const Site&) const = default;
  };

  // Ignores these; remembers all sites if told.
  SiteWatch(std::vector<Drop> drops, bool records);

  // To be called by the platform with its own return address. True: act as if the call were not
  // there.
  bool sees(Primitive primitive, const void* return_address);

  const std::map<Site, std::uint64_t>& sites() const { return sites_; }  // with how often
  std::uint64_t dropped() const { return dropped_; }

 private:
  bool may_be_above(const void* frame) const;

  std::vector<Drop> drops_;
  std::uint8_t droppable_ = 0;         // bit per Primitive
  std::uint64_t lowest_ = UINT64_MAX;  // address of a drop
  std::uint64_t highest_ = 0;
  bool records_;
  std::map<Site, std::uint64_t> sites_;
  std::uint64_t dropped_ = 0;
};

}  // namespace penstock::sim
#endif
