// A Platform that hands everything on to the real one, for tests that watch or change a few calls.
#ifndef PENSTOCK_BASE_FORWARDING_PLATFORM_TEST_H_
#define PENSTOCK_BASE_FORWARDING_PLATFORM_TEST_H_

#include "penstock/base/platform.h"

namespace penstock {

class ForwardingPlatform : public Platform {
 public:
  std::uint64_t now_ns() override { return to_.now_ns(); }
  std::uint64_t random() override { return to_.random(); }
  unsigned cpu_count() override { return to_.cpu_count(); }
  void pause() override { to_.pause(); }
  void yield() override { to_.yield(); }
  void sleep_ns(std::uint64_t ns) override { to_.sleep_ns(ns); }
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode,
                                     unsigned permissions) override {
    return to_.open(path, mode, permissions);
  }
  Status remove(const std::string& path) override { return to_.remove(path); }
  bool exists(const std::string& path) override { return to_.exists(path); }
  std::uint64_t file_identity(const std::string& path) override { return to_.file_identity(path); }
  Status unmap(void* address, std::uint64_t bytes) override { return to_.unmap(address, bytes); }
  ProcessIdentity self() override { return to_.self(); }
  std::uint64_t process_generation() override { return to_.process_generation(); }
  Liveness liveness(const ProcessIdentity& process) override { return to_.liveness(process); }
  char process_state(const ProcessIdentity& process) override { return to_.process_state(process); }
  void write_back(const void* data, std::size_t bytes) override { to_.write_back(data, bytes); }
  void invalidate(const void* data, std::size_t bytes) override { to_.invalidate(data, bytes); }
  void store_fence() override { to_.store_fence(); }
  void full_fence() override { to_.full_fence(); }

 protected:
  Platform& to_ = Platform::host();
};

}  // namespace penstock
#endif
