// Stand-in for the vendor's hls_stream.h: hls::stream<T, DEPTH>. Stages that run one after another
// need streams without a bound, as in the vendor's C simulation; stages that run at the same time
// (hls_region.h) get the depth that is declared, and block as hardware does. A read of an empty
// stream that nobody will fill is aborted on, as is an end with something left in it.
#ifndef PENSTOCK_HLS_PLAIN_HLS_STREAM_H_
#define PENSTOCK_HLS_PLAIN_HLS_STREAM_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>

#include "hls_region.h"

namespace hls {

template <typename T, int DEPTH = 2>
class stream {
 public:
  explicit stream(const char* name = "stream")
      : name_(name), concurrent_(penstock_hls_plain::concurrent()) {}
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
  ~stream() {
    penstock_hls_plain::stream_check(values_.empty(), name_.c_str(), "ends with data in it");
    if (concurrent_) penstock_hls_plain::report_fill(name_, most_, DEPTH);
  }

  T read() {
    if (!concurrent_) {
      penstock_hls_plain::stream_check(!values_.empty(), name_.c_str(), "is read while empty");
      T value = values_.front();
      values_.pop_front();
      return value;
    }
    std::unique_lock<std::mutex> lock(mutex_);
    penstock_hls_plain::wait(lock, changed_, name_.c_str(), [this] { return !values_.empty(); });
    T value = values_.front();
    values_.pop_front();
    if (values_.size() + 1 == std::size_t{DEPTH}) changed_.notify_one();
    return value;
  }
  void write(const T& value) {
    if (!concurrent_) {
      values_.push_back(value);
      return;
    }
    std::unique_lock<std::mutex> lock(mutex_);
    penstock_hls_plain::wait(lock, changed_, name_.c_str(),
                             [this] { return values_.size() < std::size_t{DEPTH}; });
    values_.push_back(value);
    most_ = values_.size() > most_ ? values_.size() : most_;
    if (values_.size() == 1) changed_.notify_one();
  }

 private:
  std::string name_;
  bool concurrent_;
  std::deque<T> values_;
  std::size_t most_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace hls
#endif
