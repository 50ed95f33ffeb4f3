// The one source of chance of a simulated world.
#ifndef PENSTOCK_SIM_INCOHERENT_RANDOM_H_
#define PENSTOCK_SIM_INCOHERENT_RANDOM_H_

#include <cstdint>

namespace penstock::sim {

// splitmix64 (Steele, Lea, Flood, OOPSLA 2014): every seed is fine, also 0. Value type.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // 0 .. bound - 1; the bias of the multiplication does not matter here. bound is at least 1.
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
  }
  bool chance(std::uint32_t one_in) { return one_in != 0 && below(one_in) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace penstock::sim
#endif
