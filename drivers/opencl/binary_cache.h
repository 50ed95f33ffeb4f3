// Compiled programs on disk, one file each:
//
//   bytes  0  "PstkCLb1"
//          8  CRC-32C of all that follows
//         12  bytes of the identity
//         16  bytes of the binary, 64 bits
//         24  identity, then binary
//
// A file that is not whole, is another program's, or could have been written by somebody else is as
// good as none. It is written beside its place and then named, so that no reader sees half of it.
#ifndef PENSTOCK_DRIVERS_OPENCL_BINARY_CACHE_H_
#define PENSTOCK_DRIVERS_OPENCL_BINARY_CACHE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/status.h"

namespace penstock::opencl {

class BinaryCache {
 public:
  // The folder is made with the first file, for its owner alone. "": nothing is kept.
  explicit BinaryCache(std::string folder) : folder_(std::move(folder)) {}
  // $XDG_CACHE_HOME/penstock/opencl, $HOME/.cache/penstock/opencl, or "" where neither is set.
  static std::string users_folder();

  // Where a program is kept. `identity` tells it from all others: device, driver, options, source.
  std::string path_of(const std::string& identity) const;
  std::optional<std::vector<unsigned char>> load(const std::string& identity) const;
  // An error says what could not be written; nothing half-made stays.
  Status store(const std::string& identity, const std::vector<unsigned char>& binary) const;

 private:
  const std::string folder_;
};

// FNV-1a, 64 bits (Fowler, Noll, Vo).
std::uint64_t fnv1a(const std::string& text);

}  // namespace penstock::opencl
#endif
