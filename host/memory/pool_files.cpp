#include "penstock/memory/pool_files.h"

#include <algorithm>

#include "penstock/descriptor/address.h"

namespace penstock {
namespace {

Result<Superblock> superblock_of(const File& file) {
  PENSTOCK_ASSIGN(const std::vector<std::byte> page, read_first_page(file));
  PENSTOCK_ASSIGN(const std::uint64_t bytes, file.size());
  if (bytes == 0) return error(Code::not_found, "{} is empty: there is no pool in it", file.path());
  return read_superblock(file.path(), page.data(), page.size(), bytes);
}

// Device 0 of the spec: the path itself, the first of a list, or PATH.0.
Result<std::string> first_path(Platform& platform, const std::string& spec, bool* numbered) {
  *numbered = false;
  PENSTOCK_ASSIGN(const std::vector<std::string> paths, device_paths(spec, 1));
  if (paths.size() > 1 || platform.exists(paths[0])) return paths[0];
  if (platform.exists(paths[0] + ".0")) {
    *numbered = true;
    return paths[0] + ".0";
  }
  return error(Code::not_found, "there is no pool {}: neither that file nor {}.0 exists", spec,
               spec);
}

// One attempt; busy while device 0 says that the pool is being made.
Result<PoolFiles> try_open(Platform& platform, const std::string& spec) {
  bool numbered = false;
  PENSTOCK_ASSIGN(const std::string first, first_path(platform, spec, &numbered));
  PoolFiles pool;
  PENSTOCK_ASSIGN(auto file, platform.open(first, OpenMode::read_write));
  Result<Superblock> block = superblock_of(*file);
  if (block.status().code() == Code::busy || block.status().code() == Code::not_found) {
    PENSTOCK_ASSIGN(const bool being_made, file->is_locked(kMakingLock, 1));
    if (being_made) return error(Code::busy, "{} is a pool that is still being made", first);
    if (block.status().code() == Code::busy) {
      return error(
          Code::corrupt,
          "{} was left half-made by a process that ended; making the pool again replaces it",
          first);
    }
  }
  if (!block.ok()) return block.status();

  PENSTOCK_ASSIGN(const std::vector<std::string> paths,
                  device_paths(spec, numbered ? block->device_count : 1));
  if (paths.size() != block->device_count) {
    return error(Code::corrupt, "{} is device {} of a pool of {} devices, but the spec names {}",
                 first, block->device_index, block->device_count, paths.size());
  }
  PENSTOCK_TRY(check_same_pool(first, *block, *block, 0));
  pool.files.push_back(std::move(file));
  pool.superblocks.push_back(*block);
  for (std::uint32_t index = 1; index < paths.size(); ++index) {
    PENSTOCK_ASSIGN(auto other, platform.open(paths[index], OpenMode::read_write));
    PENSTOCK_ASSIGN(const Superblock other_block, superblock_of(*other));
    PENSTOCK_TRY(check_same_pool(paths[index], pool.superblocks[0], other_block, index));
    pool.files.push_back(std::move(other));
    pool.superblocks.push_back(other_block);
  }
  return pool;
}

}  // namespace

Result<std::vector<std::string>> device_paths(const std::string& spec, std::uint32_t devices) {
  std::vector<std::string> paths;
  std::size_t begin = 0;
  while (true) {
    const std::size_t comma = spec.find(',', begin);
    paths.push_back(spec.substr(begin, comma == std::string::npos ? comma : comma - begin));
    if (comma == std::string::npos) break;
    begin = comma + 1;
  }
  const bool is_list = paths.size() > 1;
  const std::size_t count = is_list ? paths.size() : devices;
  if (count < 1 || count > PENSTOCK_MAX_DEVICES) {
    return error(Code::invalid_argument, "pool \"{}\" has {} devices, but it must be 1..{}", spec,
                 count, PENSTOCK_MAX_DEVICES);
  }
  for (const std::string& path : paths) {
    if (path.empty() || path.find('\0') != std::string::npos) {
      return error(Code::invalid_argument,
                   "pool \"{}\" names an empty path: a spec is one path, or paths joined by commas",
                   spec);
    }
  }
  if (is_list) {
    std::vector<std::string> sorted = paths;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) {
      return error(Code::invalid_argument, "pool \"{}\" names {} twice", spec, *twice);
    }
  } else if (devices > 1) {
    const std::string base = paths[0];
    paths.clear();
    for (std::uint32_t index = 0; index < devices; ++index) {
      paths.push_back(fmt::format("{}.{}", base, index));
    }
  }
  return paths;
}

Result<std::vector<std::byte>> read_first_page(const File& file) {
  std::vector<std::byte> page(kPageBytes);
  PENSTOCK_ASSIGN(const std::size_t length, file.read_at(0, page.data(), page.size()));
  page.resize(length);
  return page;
}

Result<PoolFiles> open_pool_files(Platform& platform, const std::string& spec,
                                  std::uint32_t timeout_ms) {
  const std::uint64_t deadline_ns = platform.now_ns() + std::uint64_t{timeout_ms} * 1'000'000;
  while (true) {
    Result<PoolFiles> pool = try_open(platform, spec);
    if (pool.status().code() != Code::busy || platform.now_ns() >= deadline_ns) return pool;
    platform.sleep_ns(1'000'000);
  }
}

}  // namespace penstock
