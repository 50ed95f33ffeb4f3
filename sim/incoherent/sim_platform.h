// The platform of one simulated process.
#ifndef PENSTOCK_SIM_INCOHERENT_SIM_PLATFORM_H_
#define PENSTOCK_SIM_INCOHERENT_SIM_PLATFORM_H_

#include "penstock/sim/incoherent/world.h"

namespace penstock::sim {

class SimPlatform final : public Platform {
 public:
  SimPlatform(World& world, Process& process) : world_(world), process_(process) {}

  std::uint64_t now_ns() override;
  std::uint64_t random() override;
  unsigned cpu_count() override { return world_.config_.cpus; }
  void pause() override;
  void yield() override;
  void sleep_ns(std::uint64_t ns) override;
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode,
                                     unsigned permissions) override;
  Status remove(const std::string& path) override;
  bool exists(const std::string& path) override { return file_identity(path) != 0; }
  std::uint64_t file_identity(const std::string& path) override;
  Status unmap(void* address, std::uint64_t bytes) override;
  ProcessIdentity self() override { return process_.identity; }
  std::uint64_t process_generation() override { return 0; }
  Liveness liveness(const ProcessIdentity& process) override;
  void write_back(const void* data, std::size_t bytes) override;
  void invalidate(const void* data, std::size_t bytes) override;
  void store_fence() override;
  void full_fence() override;

 private:
  friend class SimFile;
  Host& host() const { return *world_.hosts_[process_.host]; }
  // The range in a device that this host caches, cut to its end; null for other memory.
  CachedDevice* place(const void* data, std::size_t* bytes, std::uint64_t* offset) const;
  bool is_dropped(Primitive primitive, const void* return_address) const {
    return world_.config_.sites != nullptr && !process_.is_ghost &&
           world_.config_.sites->sees(primitive, return_address);
  }

  World& world_;
  Process& process_;
  // What is mapped: by how many of the process's mappings, and the file.
  struct Mapping {
    std::byte* address;
    std::shared_ptr<Inode> inode;
  };
  std::vector<Mapping> mappings_;
};

}  // namespace penstock::sim
#endif
