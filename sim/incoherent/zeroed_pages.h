// Memory that is zero when it is taken and cheap to give back: only the pages that were touched are
// cleared. Thousands of worlds of a few megabytes each begin with it.
#ifndef PENSTOCK_SIM_INCOHERENT_ZEROED_PAGES_H_
#define PENSTOCK_SIM_INCOHERENT_ZEROED_PAGES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::sim {

inline constexpr std::uint64_t kPage = 4096;
inline constexpr std::uint64_t kLine = 64;

class ZeroedPages {
 public:
  // Whether pages may be written by others than their owner, who calls touch() for what it writes.
  enum class Writers { owner_only, anyone };
  ZeroedPages(std::uint64_t bytes, Writers writers);
  ~ZeroedPages();
  ZeroedPages(const ZeroedPages&) = delete;
  ZeroedPages& operator=(const ZeroedPages&) = delete;

  std::byte* data() const { return data_; }
  std::uint64_t bytes() const { return bytes_; }
  void touch(std::uint64_t offset) { touched_[offset / kPage] = true; }
  bool touched(std::uint64_t page) const { return touched_[page]; }
  std::uint64_t pages() const { return touched_.size(); }

 private:
  std::byte* data_;
  std::uint64_t bytes_;  // a multiple of kPage
  std::vector<bool> touched_;
  bool watched_;
};

}  // namespace penstock::sim
#endif
