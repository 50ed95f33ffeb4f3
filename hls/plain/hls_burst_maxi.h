// Stand-in for the vendor's hls_burst_maxi.h: a memory port with bursts that are asked for by hand.
// Requests, and data of them, come in order; a read or write without a request, more of them than
// were asked for, a response without a write, and an end with something left are aborted on,
// because a real port would hang, then or at its next use.
#ifndef PENSTOCK_HLS_PLAIN_HLS_BURST_MAXI_H_
#define PENSTOCK_HLS_PLAIN_HLS_BURST_MAXI_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>

// A port moves whole words, also those that an operand only reaches into. They lie on a boundary of
// their own size, so that none of them reaches into a page that the operand does not touch.
#if defined(__GNUC__)
#define PENSTOCK_HLS_BUS __attribute__((no_sanitize("address", "thread"), noinline))
#else
#define PENSTOCK_HLS_BUS
#endif

namespace penstock_hls_plain {

inline void port_check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "hls::burst_maxi: %s\n", what);
  std::abort();
}
PENSTOCK_HLS_BUS inline void move_word(volatile std::uint64_t* to,
                                       const volatile std::uint64_t* from, std::size_t pieces) {
  for (std::size_t i = 0; i < pieces; ++i) to[i] = from[i];
}

}  // namespace penstock_hls_plain

namespace hls {

template <typename T>
class burst_maxi {
  static_assert(sizeof(T) % sizeof(std::uint64_t) == 0, "words of whole 64 bits");

 public:
  burst_maxi(void* base) : state_(std::make_shared<State>()) {
    state_->base = static_cast<std::uint64_t*>(base);
  }

  void read_request(std::size_t offset, unsigned length) {
    penstock_hls_plain::port_check(length > 0, "a request for nothing");
    state_->reads.push_back({offset, length});
  }
  T read() {
    penstock_hls_plain::port_check(!state_->reads.empty(), "a read that was not asked for");
    T value;
    penstock_hls_plain::move_word(reinterpret_cast<std::uint64_t*>(&value),
                                  state_->base + state_->reads.front().offset * kPieces, kPieces);
    state_->reads.front().advance(&state_->reads);
    return value;
  }
  void write_request(std::size_t offset, unsigned length) {
    penstock_hls_plain::port_check(length > 0, "a request for nothing");
    state_->writes.push_back({offset, length});
    ++state_->responses;
  }
  void write(const T& value) {
    penstock_hls_plain::port_check(!state_->writes.empty(), "a write that was not asked for");
    penstock_hls_plain::move_word(state_->base + state_->writes.front().offset * kPieces,
                                  reinterpret_cast<const std::uint64_t*>(&value), kPieces);
    state_->writes.front().advance(&state_->writes);
  }
  void write_response() {
    penstock_hls_plain::port_check(state_->responses > state_->writes.size(),
                                   "a response for which nothing was written");
    --state_->responses;
  }

 private:
  static constexpr std::size_t kPieces = sizeof(T) / sizeof(std::uint64_t);
  struct Burst {
    std::size_t offset;
    unsigned left;
    void advance(std::deque<Burst>* bursts) {
      ++offset;
      if (--left == 0) bursts->pop_front();
    }
  };
  struct State {
    ~State() {
      penstock_hls_plain::port_check(reads.empty() && writes.empty() && responses == 0,
                                     "ends with data or a response that nobody took");
    }
    std::uint64_t* base = nullptr;
    std::deque<Burst> reads, writes;
    std::size_t responses = 0;  // bursts asked for whose response was not taken
  };
  std::shared_ptr<State> state_;  // a port is one, however often it is passed on
};

}  // namespace hls
#endif
