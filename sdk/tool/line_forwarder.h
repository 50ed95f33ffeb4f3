// Forwards what a process writes to a pipe, whole lines at a time, so that the lines of several
// processes do not run into each other.
#ifndef PENSTOCK_SDK_TOOL_LINE_FORWARDER_H_
#define PENSTOCK_SDK_TOOL_LINE_FORWARDER_H_

#include <string>

namespace penstock::tool {

// Not thread-safe. Owns the descriptor it reads from, which it makes non-blocking.
class LineForwarder {
 public:
  LineForwarder(int from, int to, std::string prefix);
  ~LineForwarder();
  LineForwarder(const LineForwarder&) = delete;
  LineForwarder& operator=(const LineForwarder&) = delete;

  int fd() const { return from_; }  // -1 once the writer has closed it
  bool has_partial() const { return !partial_.empty(); }
  // Reads what is there. False if the output cannot be written (its reader is gone).
  bool forward();
  // Writes a line that has not ended yet; with a prefix only when `at_end`.
  bool flush(bool at_end);

 private:
  static constexpr std::size_t kMaxPartial = 64 << 10;
  bool write_lines(std::size_t bytes);

  int from_;
  int to_;
  std::string prefix_;
  std::string partial_;
  bool at_line_start_ = true;
};

}  // namespace penstock::tool
#endif
