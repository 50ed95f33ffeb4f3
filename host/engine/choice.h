// Which engine a text means: one by name, a list, or the fastest that is here.
//
// "auto" takes the engines of the host, unless there may be a device beside it. Then every engine
// that can run here, is no simulation and has a preference of at least 0 is measured once
// (speed.h), the figures are kept for this machine, and the fastest that has what the caller needs
// is taken. Whichever it is, results are the same bits. PENSTOCK_SPEED=none measures nothing: then
// it is the one with the highest preference, simd.
#ifndef PENSTOCK_ENGINE_CHOICE_H_
#define PENSTOCK_ENGINE_CHOICE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/engine/engine.h"
#include "penstock/engine/speed.h"

namespace penstock {

// What a caller needs of an engine that "auto" takes. A name that is written out is taken as it is.
struct EngineNeeds {
  std::uint32_t opcodes = 0;  // bit per penstock_opcode; SELECT among them: its speed decides
  std::uint32_t types = 0;    // bit per element type of which REDUCE has every operation
  bool host_memory = false;
};
EngineNeeds needs_of_collectives();
EngineNeeds needs_of_decisions();

struct AutoCandidate {
  std::string name;   // for make_engine
  EngineSpeed speed;  // zeros: not measured
  std::string out;    // why it is not taken in spite of its speed; "" for those that may be
};
struct AutoChoice {
  std::vector<AutoCandidate> candidates;  // as they are tried, then those that are out
  std::string reason;                     // for people: how the first was chosen
  const std::string& first() const { return candidates.front().name; }
};
// Measures if nothing is kept. The engines of the host are always there. Thread-safe.
AutoChoice choose_automatically(const EngineNeeds& needs);

// The engines that a text allows: "simd", "card:verilator,simd", "auto". A name that stands alone
// allows one. Not thread-safe.
class EngineSource {
 public:
  // not_found for an empty text or an empty part of it.
  static Result<EngineSource> parse(const std::string& text, const EngineNeeds& needs = {});

  // Makes the first that can be made of those that were not tried yet. When there is none, the
  // error is that of the first one, which is what was wanted.
  Result<std::shared_ptr<Engine>> next();
  // Whether next() has anything left to try.
  bool more() const { return tried_ < names_.size(); }
  // The same, but that what next() made last has not been tried yet.
  EngineSource from_here() const;
  // What next() made last, as it was asked for.
  const std::string& name() const { return name_; }

 private:
  std::vector<std::string> names_;
  std::size_t tried_ = 0;
  std::string name_;
  Status first_;
};

// The first that EngineSource gives.
Result<std::shared_ptr<Engine>> make_engine(const std::string& text, const EngineNeeds& needs);

}  // namespace penstock
#endif
