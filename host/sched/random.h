// Random numbers that are the same on every machine for a seed.
#ifndef PENSTOCK_SCHED_RANDOM_H_
#define PENSTOCK_SCHED_RANDOM_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace penstock {

// splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  // Of [0, limit), each as likely; limit is at least 1.
  std::uint64_t below(std::uint64_t limit) {
    const std::uint64_t unfair = (0 - limit) % limit;  // 2^64 mod limit
    for (;;) {
      const std::uint64_t value = next();
      if (value >= unfair) return value % limit;
    }
  }

  // Fisher-Yates.
  template <typename T>
  void shuffle(std::vector<T>* list) {
    for (std::size_t left = list->size(); left > 1; --left) {
      std::swap((*list)[left - 1], (*list)[below(left)]);
    }
  }

 private:
  std::uint64_t state_;
};

}  // namespace penstock
#endif
