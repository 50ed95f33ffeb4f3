#include "penstock/sim/incoherent/zeroed_pages.h"

#include <cstdlib>
#include <cstring>
#include <map>

#include "penstock/base/status.h"

namespace penstock::sim {
namespace {

constexpr std::size_t kKept = 64;  // buffers of one size that wait for their next use

struct Buffers {
  std::map<std::uint64_t, std::vector<std::byte*>> free;
  ~Buffers() {
    for (auto& [bytes, list] : free) {
      for (std::byte* data : list) std::free(data);
    }
  }
};
Buffers& buffers() {
  static Buffers all;
  return all;
}

bool is_zero(const std::byte* page) {
  static const std::byte zeros[kPage] = {};
  return std::memcmp(page, zeros, kPage) == 0;
}

}  // namespace

ZeroedPages::ZeroedPages(std::uint64_t bytes, Writers writers)
    : bytes_((bytes + kPage - 1) / kPage * kPage),
      touched_(bytes_ / kPage, false),
      watched_(writers == Writers::anyone) {
  std::vector<std::byte*>& list = buffers().free[bytes_];
  if (!list.empty()) {
    data_ = list.back();
    list.pop_back();
    return;
  }
  data_ = static_cast<std::byte*>(std::aligned_alloc(kPage, bytes_));
  PENSTOCK_CHECK(data_ != nullptr, "no memory for {} simulated bytes", bytes_);
  std::memset(data_, 0, bytes_);
}

ZeroedPages::~ZeroedPages() {
  std::vector<std::byte*>& list = buffers().free[bytes_];
  if (list.size() >= kKept) {
    std::free(data_);
    return;
  }
  for (std::uint64_t page = 0; page < touched_.size(); ++page) {
    std::byte* at = data_ + page * kPage;
    if (touched_[page] || (watched_ && !is_zero(at))) std::memset(at, 0, kPage);
  }
  list.push_back(data_);
}

}  // namespace penstock::sim
