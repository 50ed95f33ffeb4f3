// From a pool's spec to its open device files, with what their superblocks say.
#ifndef PENSTOCK_MEMORY_POOL_FILES_H_
#define PENSTOCK_MEMORY_POOL_FILES_H_

#include <memory>
#include <string>
#include <vector>

#include "penstock/base/platform.h"
#include "penstock/memory/superblock.h"

namespace penstock {

// The paths that a spec names when there are `devices` of them: the list as it stands, or PATH, or
// PATH.0 .. PATH.n-1. invalid_argument for an empty or repeated path, and for too many.
Result<std::vector<std::string>> device_paths(const std::string& spec, std::uint32_t devices);

struct PoolFiles {
  std::vector<std::unique_ptr<File>> files;
  std::vector<Superblock> superblocks;
};

// Opens every device of an existing pool and checks the superblocks against each other. While
// another process makes the pool, waits up to timeout_ms. Errors: not_found, permission_denied,
// corrupt, unsupported, busy (still being made, or half-made by a process that ended).
Result<PoolFiles> open_pool_files(Platform& platform, const std::string& spec,
                                  std::uint32_t timeout_ms);

// The first page of a device, or as much of it as there is.
Result<std::vector<std::byte>> read_first_page(const File& file);

}  // namespace penstock
#endif
