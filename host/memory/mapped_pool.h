// The implementation of Pool: mapped devices, a lease, and the region table.
#ifndef PENSTOCK_MEMORY_MAPPED_POOL_H_
#define PENSTOCK_MEMORY_MAPPED_POOL_H_

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "penstock/memory/lease.h"
#include "penstock/memory/pool.h"
#include "penstock/memory/pool_files.h"
#include "penstock/memory/region_table.h"
#include "penstock/memory/shared_memory.h"

namespace penstock {

// Locking order: a named lock (an in-process flag, then the file's lock), then mutex_, which guards
// the File of device 0 and the set of holds. mutex_ is never kept while waiting.
class MappedPool final : public Pool {
 public:
  static Result<std::unique_ptr<Pool>> make(Platform& platform, const std::string& spec,
                                            const MapOptions& options);
  ~MappedPool() override;
  MappedPool(const MappedPool&) = delete;
  MappedPool& operator=(const MappedPool&) = delete;

  Platform& platform() const override { return platform_; }
  const std::string& spec() const override { return spec_; }
  Coherence coherence() const override { return options_.coherence; }
  std::uint32_t host_id() const override { return options_.host_id; }
  std::uint32_t device_count() const override {
    return static_cast<std::uint32_t>(devices_.size());
  }
  std::vector<DeviceInfo> devices() const override;
  bool still_named() const override;

  std::byte* resolve(penstock_address address, std::uint64_t bytes) const override;
  DeviceData device_data(std::uint32_t device) const override;
  bool address_of(const void* data, std::uint64_t bytes, penstock_address* out) const override;
  AgreementSpace agreement_space(std::uint32_t which) const override;
  void publish(const void* data, std::size_t bytes) const override;
  void observe(const void* data, std::size_t bytes) const override;

  Result<Region> allocate(const RegionRequest& request) override;
  Status free(const Region& region) override;
  Result<Region> find(RegionKind kind, const std::string& name) override;
  std::vector<RegionInfo> regions() override;
  Status hold(const Region& region) override;
  Status drop(const Region& region) override;
  Result<std::uint32_t> reclaim() override;
  std::vector<std::string> check() override;

  Lease lease() const override { return lease_; }
  Liveness liveness(const Lease& lease) override;
  Result<std::unique_ptr<Lock>> lock(std::uint32_t which, std::uint32_t timeout_ms) override;

 private:
  struct Device {
    std::string path;
    std::byte* base = nullptr;
    std::uint64_t bytes = 0;
    std::uint64_t data_offset = 0;
    std::uint64_t identity = 0;  // of the file
  };
  class NamedLock;

  MappedPool(Platform& platform, const std::string& spec, const MapOptions& options);
  Status open();
  Status take_lease();
  // An error in a forked child, which shares the parent's locks and so cannot tell who holds what.
  Status check_process() const;
  LeaseRecord* lease_record(std::uint32_t host, std::uint32_t slot) const;
  std::string label(const RegionEntry& entry) const;

  // The pool offset of memory inside another mapping of the same files by this process.
  bool address_elsewhere(const void* data, std::uint64_t bytes, penstock_address* out) const;

  void check_agreements(std::vector<std::string>* findings) const;

  // All below with the table lock held.
  bool is_reclaimable(const LiveEntry& entry);
  std::uint32_t reclaim_locked();
  Status check_name(const RegionRequest& request, bool* reclaimed);
  std::optional<std::uint32_t> free_slot();
  // Whether other hosts may claim this name at the same time.
  bool is_contested(const RegionRequest& request) const {
    return !request.name.empty() && table_->geometry()[0].hosts > 1;
  }
  Status settle_name(const RegionRequest& request, std::uint32_t slot);
  // nullopt: no room now, perhaps after a reclaim.
  std::optional<Region> place(const RegionRequest& request, std::uint64_t bytes);
  Status no_room(const RegionRequest& request, std::uint64_t bytes) const;

  Result<RegionEntry> entry_of(const Region& region) const;
  bool is_held(std::uint32_t slot);
  void forget_hold(std::uint32_t slot);

  Platform& platform_;
  const std::string spec_;
  const MapOptions options_;
  const ProcessIdentity self_;
  const std::uint64_t generation_;
  const SharedMemory memory_;
  std::vector<Device> devices_;
  std::optional<RegionTable> table_;
  std::uint64_t file_identity_ = 0;
  Lease lease_;
  bool has_lease_ = false;
  bool is_listed_ = false;  // in the list of this process's mappings
  std::array<std::atomic<bool>, kNamedLocks> lock_taken_{};

  mutable std::mutex mutex_;
  std::unique_ptr<File> file_;                    // device 0: the locks
  std::map<std::uint32_t, std::uint64_t> holds_;  // slot to generation
};

}  // namespace penstock
#endif
