// Buffers of a stand-in device: which bank they are in, where, and what is on either side.
#ifndef PENSTOCK_SIM_XRT_BANK_MEMORY_H_
#define PENSTOCK_SIM_XRT_BANK_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace penstock::sim {

struct BankConfig {
  std::string tag;
  std::uint64_t base = 0, bytes = 0;
  bool used = false;

  bool host() const { return tag.rfind("HOST[", 0) == 0; }
};

struct Buffer {
  std::uint64_t address = 0, bytes = 0;  // bytes as asked for; memory is whole pages
  std::uint32_t flags = 0;
  bool mapped = false;          // it has an address
  std::byte* host = nullptr;    // what the process sees
  std::byte* device = nullptr;  // what the device sees; the same in the host's bank
  std::vector<std::byte*> owned;
};

// Follows the Linux driver of PCIe cards: which buffers there are, and which it refuses. Errors are
// errno values. Not thread-safe.
class BankMemory {
 public:
  // Told of each buffer that the device can reach, and of its end.
  using Reached = std::function<void(const Buffer& buffer, bool begins)>;
  explicit BankMemory(Reached reached) : reached_(std::move(reached)) {}
  ~BankMemory();
  BankMemory(const BankMemory&) = delete;
  BankMemory& operator=(const BankMemory&) = delete;

  void set_banks(std::vector<BankConfig> banks) { banks_ = std::move(banks); }
  // Whether memory of the process can be in the host's bank. No Linux driver of today can do it.
  void set_user_memory(bool able) { user_memory_ = able; }
  // Whether the host's bank was enabled.
  void set_host_bank(bool enabled) { host_bank_ = enabled; }
  void set_most_buffers(std::uint64_t most) { most_buffers_ = most; }

  // `user` may be null. 0 or an errno.
  int allocate(std::uint64_t bytes, std::uint32_t flags, std::byte* user, std::uint32_t* handle);
  int free(std::uint32_t handle);
  int sync(std::uint32_t handle, bool to_device, std::uint64_t bytes, std::uint64_t offset);
  // Null if there is none.
  Buffer* find(std::uint32_t handle);
  // The device's bytes at [address, address + bytes), null where no one buffer holds them.
  std::byte* at(std::uint64_t address, std::uint64_t bytes);
  // The buffer that holds the address.
  const Buffer* holder(std::uint64_t address) const;
  std::size_t count() const { return buffers_.size(); }

 private:
  int place(const BankConfig& bank, std::uint64_t bytes, std::uint64_t* address) const;
  void drop(Buffer& buffer);

  const Reached reached_;
  std::vector<BankConfig> banks_;
  bool user_memory_ = false, host_bank_ = true;
  std::uint64_t most_buffers_ = UINT64_MAX;
  std::uint32_t next_ = 1;
  std::map<std::uint32_t, Buffer> buffers_;
  std::map<std::uint64_t, std::uint32_t> by_address_;
};

}  // namespace penstock::sim
#endif
