// What an agreement has to keep, watched from outside: per number at most one value is decided, and
// somebody proposed it.
#ifndef PENSTOCK_MEMORY_AGREEMENT_ORACLE_TEST_H_
#define PENSTOCK_MEMORY_AGREEMENT_ORACLE_TEST_H_

#include <fmt/core.h>

#include <map>
#include <optional>
#include <set>
#include <string>

#include "penstock/memory/agreement.h"

namespace penstock {

class AgreementOracle {
 public:
  void propose(std::uint64_t number, const AgreementValue& value) {
    numbers_[number].proposed.insert(value);
  }
  void decide(std::uint64_t number, const AgreementValue& value) {
    Number& entry = numbers_[number];
    ++entry.decisions;
    if (entry.proposed.count(value) == 0 && violation_.empty()) {
      violation_ = fmt::format("decision {} was proposed by nobody", number);
    }
    if (entry.decided && *entry.decided != value && violation_.empty()) {
      violation_ = fmt::format("decision {} was decided twice, and differently", number);
    }
    entry.decided = value;
  }
  // "" while all is well.
  const std::string& violation() const { return violation_; }
  std::optional<AgreementValue> value(std::uint64_t number) { return numbers_[number].decided; }
  // How many participants have learned it.
  std::uint64_t decisions(std::uint64_t number) { return numbers_[number].decisions; }
  std::uint64_t newest() const { return numbers_.empty() ? 0 : numbers_.rbegin()->first; }

 private:
  struct Number {
    std::set<AgreementValue> proposed;
    std::optional<AgreementValue> decided;
    std::uint64_t decisions = 0;
  };
  std::map<std::uint64_t, Number> numbers_;
  std::string violation_;
};

}  // namespace penstock
#endif
