// Stand-in for the vendor's ap_int.h, for builds without it: ap_uint<W> with W a multiple of 64 and
// above 64, and of it what the kernels use. Bit ranges start and end on multiples of 8 and lie
// within 64 bits that are aligned to 64. Shifts are by whole bytes.
#ifndef PENSTOCK_HLS_PLAIN_AP_INT_H_
#define PENSTOCK_HLS_PLAIN_AP_INT_H_

#include <cstdint>

template <int W>
class ap_uint {
  static_assert(W > 64 && W % 64 == 0, "only the words of wide ports stand in here");

 public:
  static constexpr int width = W;

  ap_uint() : pieces_{} {}
  ap_uint(std::uint64_t low) : pieces_{} { pieces_[0] = low; }

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

  friend ap_uint operator|(const ap_uint& a, const ap_uint& b) {
    ap_uint result;
    for (int i = 0; i < W / 64; ++i) result.pieces_[i] = a.pieces_[i] | b.pieces_[i];
    return result;
  }
  // What is shifted out is lost; by W or more nothing is left.
  friend ap_uint operator<<(const ap_uint& a, unsigned by) {
    ap_uint result;
    const int whole = static_cast<int>(by / 64);
    const unsigned rest = by % 64;
    for (int i = W / 64 - 1; i >= whole; --i) {
      result.pieces_[i] = a.pieces_[i - whole] << rest;
      if (rest != 0 && i > whole) result.pieces_[i] |= a.pieces_[i - whole - 1] >> (64 - rest);
    }
    return result;
  }
  friend ap_uint operator>>(const ap_uint& a, unsigned by) {
    ap_uint result;
    const int whole = static_cast<int>(by / 64);
    const unsigned rest = by % 64;
    for (int i = 0; i + whole < W / 64; ++i) {
      result.pieces_[i] = a.pieces_[i + whole] >> rest;
      if (rest != 0 && i + whole + 1 < W / 64)
        result.pieces_[i] |= a.pieces_[i + whole + 1] << (64 - rest);
    }
    return result;
  }
  friend bool operator==(const ap_uint& a, const ap_uint& b) {
    for (int i = 0; i < W / 64; ++i)
      if (a.pieces_[i] != b.pieces_[i]) return false;
    return true;
  }

 private:
  std::uint64_t pieces_[W / 64];  // lowest first
};

#endif
