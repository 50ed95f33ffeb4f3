#include "line_forwarder.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace penstock::tool {
namespace {

bool write_all(int fd, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = ::write(fd, text.data() + done, text.size() - done);
    if (got >= 0) {
      done += static_cast<std::size_t>(got);
    } else if (errno == EAGAIN) {
      struct pollfd ready = {fd, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace

LineForwarder::LineForwarder(int from, int to, std::string prefix)
    : from_(from), to_(to), prefix_(std::move(prefix)) {
  ::fcntl(from_, F_SETFL, ::fcntl(from_, F_GETFL) | O_NONBLOCK);
}

LineForwarder::~LineForwarder() {
  if (from_ >= 0) ::close(from_);
}

bool LineForwarder::forward() {
  char buffer[16 << 10];
  while (from_ >= 0) {
    const ssize_t got = ::read(from_, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) {
      ::close(from_);
      from_ = -1;
      return flush(true);
    }
    partial_.append(buffer, static_cast<std::size_t>(got));
    const std::size_t end = partial_.rfind('\n');
    if (end != std::string::npos && !write_lines(end + 1)) return false;
    if (partial_.size() > kMaxPartial && !write_lines(partial_.size())) return false;
  }
  return true;
}

bool LineForwarder::flush(bool at_end) {
  if (partial_.empty() || (!prefix_.empty() && !at_end)) return true;
  if (!prefix_.empty()) partial_ += '\n';
  return write_lines(partial_.size());
}

bool LineForwarder::write_lines(std::size_t bytes) {
  std::string out;
  for (std::size_t at = 0; at < bytes;) {
    std::size_t end = partial_.find('\n', at);
    end = end == std::string::npos || end >= bytes ? bytes : end + 1;
    if (at_line_start_) out += prefix_;
    out.append(partial_, at, end - at);
    at_line_start_ = partial_[end - 1] == '\n';
    at = end;
  }
  partial_.erase(0, bytes);
  return write_all(to_, out);
}

}  // namespace penstock::tool
