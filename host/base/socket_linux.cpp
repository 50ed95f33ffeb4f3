#include "penstock/base/socket_linux.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>

namespace penstock::socket_io {
namespace {

std::uint64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1000000;
}

bool wait_for(int socket, short events, std::uint64_t timeout_ms) {
  const std::uint64_t end = now_ms() + timeout_ms;
  for (;;) {
    const std::uint64_t now = now_ms();
    const std::uint64_t left = end > now ? end - now : 0;
    pollfd entry{socket, events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::min<std::uint64_t>(left, INT_MAX)));
    if (ready > 0) return true;
    if (ready == 0 && left == 0) return false;
    if (ready < 0 && errno != EINTR) return true;  // the read or write that follows says what it is
  }
}

Status failure(const char* what) {
  const int number = errno;
  if (number == EAGAIN || number == EWOULDBLOCK || number == EINTR) {
    return error(Code::busy, "{}: nothing at the moment", what);
  }
  return error(Code::io_error, "{}: {}", what, std::strerror(number));
}

}  // namespace

Status make_nonblocking(int socket) {
  const int flags = ::fcntl(socket, F_GETFL);
  if (flags < 0 || ::fcntl(socket, F_SETFL, flags | O_NONBLOCK) < 0) return failure("a connection");
  return {};
}

void reuse_address(int socket) {
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
}

bool wait_readable(int socket, std::uint64_t timeout_ms) {
  return wait_for(socket, POLLIN, timeout_ms);
}

bool wait_writable(int socket, std::uint64_t timeout_ms) {
  return wait_for(socket, POLLOUT, timeout_ms);
}

Result<std::size_t> receive(int socket, void* data, std::size_t bytes) {
  const ssize_t n = ::recv(socket, data, bytes, MSG_DONTWAIT);
  if (n < 0) return failure("reading from a connection");
  return static_cast<std::size_t>(n);
}

Result<std::size_t> send(int socket, const void* data, std::size_t bytes) {
  const ssize_t n = ::send(socket, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0) return failure("writing to a connection");
  return static_cast<std::size_t>(n);
}

void shutdown_write(int socket) { ::shutdown(socket, SHUT_WR); }

void close(int socket) { ::close(socket); }

std::string peer_address(int socket, int* port) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof(address);
  *port = 0;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return "";
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address);
    ::inet_ntop(AF_INET, &v4->sin_addr, text.data(), text.size());
    *port = ntohs(v4->sin_port);
  } else if (address.ss_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address);
    ::inet_ntop(AF_INET6, &v6->sin6_addr, text.data(), text.size());
    *port = ntohs(v6->sin6_port);
  }
  return text.data();
}

}  // namespace penstock::socket_io
