// The pool half of the C interface.
#include <map>
#include <memory>
#include <mutex>

#include "last_error.h"
#include "penstock/base/env.h"
#include "penstock/memory/pool.h"

using penstock::Code;
using penstock::Status;
using penstock::sdk::guarded;

struct penstock_pool {
  std::unique_ptr<penstock::Pool> pool;
  std::mutex mutex;
  std::map<const void*, penstock::Region> regions;  // by address in this process
};

namespace {

Status missing(const char* what) { return penstock::error(Code::invalid_argument, "{}", what); }

penstock::Result<penstock::MapOptions> map_options() {
  namespace env = penstock::env;
  penstock::MapOptions options;
  PENSTOCK_ASSIGN(options.coherence, penstock::parse_coherence(env::text(env::Id::coherence)));
  PENSTOCK_ASSIGN(const std::uint64_t host, env::number(env::Id::host_id, 0, 15));
  options.host_id = static_cast<std::uint32_t>(host);
  return options;
}

Status remember(penstock_pool* pool, const penstock::Region& region, void** data) {
  std::byte* place = pool->pool->resolve(region.address, region.bytes);
  PENSTOCK_CHECK(place != nullptr, "a region lies outside of its pool");
  const std::lock_guard<std::mutex> lock(pool->mutex);
  pool->regions[place] = region;
  *data = place;
  return {};
}

}  // namespace

extern "C" {

penstock_status penstock_pool_create(const char* spec, std::uint32_t devices,
                                     std::uint64_t bytes_per_device) {
  return guarded([&]() -> Status {
    if (spec == nullptr) return missing("penstock_pool_create: spec is null");
    penstock::PoolConfig config;
    config.spec = spec;
    config.devices = devices;
    config.bytes_per_device = bytes_per_device;
    return penstock::Pool::create(penstock::Platform::host(), config);
  });
}

penstock_status penstock_pool_destroy(const char* spec) {
  return guarded([&]() -> Status {
    if (spec == nullptr) return missing("penstock_pool_destroy: spec is null");
    return penstock::Pool::destroy(penstock::Platform::host(), spec);
  });
}

penstock_status penstock_pool_map(const char* spec, penstock_pool** pool) {
  return guarded([&]() -> Status {
    if (spec == nullptr || pool == nullptr) {
      return missing("penstock_pool_map: spec or pool is null");
    }
    *pool = nullptr;
    PENSTOCK_ASSIGN(const penstock::MapOptions options, map_options());
    auto handle = std::make_unique<penstock_pool>();
    PENSTOCK_ASSIGN(handle->pool, penstock::Pool::map(penstock::Platform::host(), spec, options));
    *pool = handle.release();
    return {};
  });
}

void penstock_pool_unmap(penstock_pool* pool) { delete pool; }

penstock_status penstock_pool_allocate(penstock_pool* pool, const char* name, std::uint64_t bytes,
                                       std::int32_t device, void** data) {
  return guarded([&]() -> Status {
    if (pool == nullptr || data == nullptr) {
      return missing("penstock_pool_allocate: pool or data is null");
    }
    *data = nullptr;
    penstock::RegionRequest request;
    request.name = name == nullptr ? "" : name;
    request.bytes = bytes;
    request.device = device;
    PENSTOCK_ASSIGN(const penstock::Region region, pool->pool->allocate(request));
    return remember(pool, region, data);
  });
}

penstock_status penstock_pool_find(penstock_pool* pool, const char* name, void** data,
                                   std::uint64_t* bytes) {
  return guarded([&]() -> Status {
    if (pool == nullptr || name == nullptr || data == nullptr || bytes == nullptr) {
      return missing("penstock_pool_find: pool, name, data or bytes is null");
    }
    *data = nullptr;
    PENSTOCK_ASSIGN(const penstock::Region region,
                    pool->pool->find(penstock::RegionKind::user, name));
    *bytes = region.bytes;
    return remember(pool, region, data);
  });
}

penstock_status penstock_pool_free(penstock_pool* pool, void* data) {
  return guarded([&]() -> Status {
    if (pool == nullptr) return missing("penstock_pool_free: pool is null");
    penstock::Region region;
    {
      const std::lock_guard<std::mutex> lock(pool->mutex);
      const auto found = pool->regions.find(data);
      if (found == pool->regions.end()) {
        return penstock::error(Code::not_found,
                               "penstock_pool_free: {} is no region of pool {} that this process "
                               "allocated or found",
                               data, pool->pool->spec());
      }
      region = found->second;
      pool->regions.erase(found);
    }
    return pool->pool->free(region);
  });
}
}
