// What a connection needs of the operating system beyond what a library of protocols brings:
// waiting with a deadline, and reading and writing without blocking.
#ifndef PENSTOCK_BASE_SOCKET_LINUX_H_
#define PENSTOCK_BASE_SOCKET_LINUX_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "penstock/base/status.h"

namespace penstock::socket_io {

// Reads and writes no longer block.
Status make_nonblocking(int socket);
// A listening socket takes an address that connections of an earlier one still linger on, but not
// one that somebody else listens at.
void reuse_address(int socket);
// True once there is something to read (an end counts), or room to write. False when timeout_ms
// have passed.
bool wait_readable(int socket, std::uint64_t timeout_ms);
bool wait_writable(int socket, std::uint64_t timeout_ms);
// Bytes read, 0 at the end of the stream, busy when there is nothing at the moment. No signal is
// raised when the other side has gone.
Result<std::size_t> receive(int socket, void* data, std::size_t bytes);
Result<std::size_t> send(int socket, const void* data, std::size_t bytes);
void shutdown_write(int socket);
void close(int socket);
// Address and port of the other side; "" and 0 when there is none.
std::string peer_address(int socket, int* port);

}  // namespace penstock::socket_io
#endif
