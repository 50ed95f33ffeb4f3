// Stand-in for the vendor's ap_int.h, for builds without it: of ap_uint<W> what the kernels use.
//
// Up to 64 bits it stores a number, as in a bank of memory: it is made from a 64-bit integer, of
// which the low W bits count, and read as one. Above, with W a multiple of 64, it is the word of a
// wide port: bit ranges lie within 64 bits that are aligned to 64.
#ifndef PENSTOCK_HLS_PLAIN_AP_INT_H_
#define PENSTOCK_HLS_PLAIN_AP_INT_H_

#include <cstdint>

namespace penstock_hls_plain {

template <int W>
class Stored {
 public:
  Stored() = default;  // any value, as in the vendor's
  Stored(std::uint64_t value) : value_(value & ~std::uint64_t{0} >> (64 - W)) {}
  operator std::uint64_t() const { return value_; }
  std::uint64_t to_uint64() const { return value_; }

 private:
  std::uint64_t value_;
};

template <int W>
class WideWord {
  static_assert(W % 64 == 0, "only the words of wide ports stand in here");

 public:
  WideWord() = default;
  WideWord(std::uint64_t low) : pieces_{} { pieces_[0] = low; }

  // A range of bits, as a value and as what is assigned to.
  class Range {
   public:
    Range(std::uint64_t* piece, int high, int low) : piece_(piece), high_(high), low_(low) {}
    std::uint64_t to_uint64() const { return *piece_ >> low_ & mask(); }
    Range& operator=(std::uint64_t value) {
      *piece_ = (*piece_ & ~(mask() << low_)) | (value & mask()) << low_;
      return *this;
    }

   private:
    std::uint64_t mask() const { return ~std::uint64_t{0} >> (63 - (high_ - low_)); }
    std::uint64_t* piece_;
    int high_, low_;
  };
  Range range(int high, int low) { return Range(&pieces_[low / 64], high % 64, low % 64); }
  Range range(int high, int low) const {
    return Range(const_cast<std::uint64_t*>(&pieces_[low / 64]), high % 64, low % 64);
  }

  friend WideWord operator|(const WideWord& a, const WideWord& b) {
    WideWord result;
    for (int i = 0; i < W / 64; ++i) result.pieces_[i] = a.pieces_[i] | b.pieces_[i];
    return result;
  }
  // What is shifted out is lost; by W or more nothing is left.
  friend WideWord operator<<(const WideWord& a, unsigned by) {
    WideWord result(0);
    const int whole = static_cast<int>(by / 64);
    const unsigned rest = by % 64;
    for (int i = W / 64 - 1; i >= whole; --i) {
      result.pieces_[i] = a.pieces_[i - whole] << rest;
      if (rest != 0 && i > whole) result.pieces_[i] |= a.pieces_[i - whole - 1] >> (64 - rest);
    }
    return result;
  }
  friend WideWord operator>>(const WideWord& a, unsigned by) {
    WideWord result(0);
    const int whole = static_cast<int>(by / 64);
    const unsigned rest = by % 64;
    for (int i = 0; i + whole < W / 64; ++i) {
      result.pieces_[i] = a.pieces_[i + whole] >> rest;
      if (rest != 0 && i + whole + 1 < W / 64)
        result.pieces_[i] |= a.pieces_[i + whole + 1] << (64 - rest);
    }
    return result;
  }

 private:
  std::uint64_t pieces_[W / 64];  // lowest first
};

template <int W, bool WIDE>
struct Choice {
  using Type = Stored<W>;
};
template <int W>
struct Choice<W, true> {
  using Type = WideWord<W>;
};

}  // namespace penstock_hls_plain

template <int W>
using ap_uint = typename penstock_hls_plain::Choice<W, (W > 64)>::Type;

#endif
