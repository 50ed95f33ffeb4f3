// A pool that is nothing but lines of an IncoherentHost: for tests of what takes a Pool, but uses
// only its memory.
#ifndef PENSTOCK_MEMORY_LINE_POOL_TEST_H_
#define PENSTOCK_MEMORY_LINE_POOL_TEST_H_

#include <memory>
#include <string>
#include <vector>

#include "penstock/memory/incoherent_memory_test.h"
#include "penstock/memory/pool.h"

namespace penstock {

class LinePool final : public Pool {
 public:
  LinePool(IncoherentHost& host, std::uint32_t host_id, std::uint32_t hosts, std::size_t bytes)
      : host_(host), host_id_(host_id), hosts_(hosts), bytes_(bytes) {}

  Platform& platform() const override { return host_; }
  const std::string& spec() const override { return spec_; }
  Coherence coherence() const override { return Coherence::software; }
  std::uint32_t host_id() const override { return host_id_; }
  std::uint32_t device_count() const override { return 1; }
  std::vector<DeviceInfo> devices() const override { return {}; }
  bool still_named() const override { return true; }
  std::byte* resolve(penstock_address address, std::uint64_t bytes) const override {
    return address <= bytes_ && bytes <= bytes_ - address ? host_.base() + address : nullptr;
  }
  bool address_of(const void* data, std::uint64_t, penstock_address* out) const override {
    *out = static_cast<std::uint64_t>(static_cast<const std::byte*>(data) - host_.base());
    return *out < bytes_;
  }
  AgreementSpace agreement_space(std::uint32_t which) const override {
    return {host_.base() + which * agreement_bytes(hosts_, kPoolAgreementDepth), hosts_,
            kPoolAgreementDepth};
  }
  void publish(const void* data, std::size_t bytes) const override {
    host_.write_back(data, bytes);
  }
  void observe(const void* data, std::size_t bytes) const override {
    host_.invalidate(data, bytes);
    host_.full_fence();
  }
  Result<Region> allocate(const RegionRequest&) override { return none(); }
  Status free(const Region&) override { return none(); }
  Result<Region> find(RegionKind, const std::string&) override { return none(); }
  std::vector<RegionInfo> regions() override { return {}; }
  Status hold(const Region&) override { return none(); }
  Status drop(const Region&) override { return none(); }
  Result<std::uint32_t> reclaim() override { return none(); }
  std::vector<std::string> check() override { return {}; }
  Lease lease() const override { return {host_id_, 0, {}}; }
  Liveness liveness(const Lease&) override { return Liveness::unknown; }
  Result<std::unique_ptr<Lock>> lock(std::uint32_t, std::uint32_t) override {
    return std::make_unique<Lock>();
  }

 private:
  static Status none() { return error(Code::unsupported, "a pool without regions"); }
  IncoherentHost& host_;
  std::uint32_t host_id_;
  std::uint32_t hosts_;
  std::size_t bytes_;
  std::string spec_ = "lines";
};

}  // namespace penstock
#endif
