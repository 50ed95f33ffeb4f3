// A device that is not there, behind XRT: what is programmed into it is the card's RTL, and kernels
// that are C++ functions.
#ifndef PENSTOCK_SIM_XRT_STANDIN_DEVICE_H_
#define PENSTOCK_SIM_XRT_STANDIN_DEVICE_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/drivers/xrt/xclbin_file.h"
#include "penstock/sim/verilated/verilated_card.h"
#include "penstock/sim/xrt/bank_memory.h"

namespace penstock::sim {

// PENSTOCK_XRT_STANDIN has them as "key=value;key=value".
struct StandinOptions {
  static Result<StandinOptions> parse(const std::string& text);

  std::uint32_t devices = 1;
  std::string platform = "penstock_standin_1";
  VerilatedCardOptions card;
  bool user_memory = false;  // memory of the process may be in the host's bank
  // What goes wrong.
  std::uint32_t version = 0;   // of the register map, in place of the card's; 0: the card's
  bool no_permission = false;  // nobody may open a device
  bool no_host_bank = false;   // the host's bank was not enabled
  std::uint64_t most_buffers = UINT64_MAX;
  // So many register accesses until the device is lost: reads give ones, writes go nowhere, and
  // nothing moves any more. 0: never.
  std::uint64_t lost_after = 0;
  // Likewise until accesses fail, as those of a device that the driver has given up do.
  std::uint64_t register_errors_after = 0;
};

// Thread-safe. Errors are errno values; 0 is success.
class StandinDevice {
 public:
  explicit StandinDevice(const StandinOptions& options);
  ~StandinDevice();
  StandinDevice(const StandinDevice&) = delete;
  StandinDevice& operator=(const StandinDevice&) = delete;

  // What is in the device goes, unless it is the same file.
  int load(const char* xclbin, std::size_t bytes);
  int open_context(std::uint32_t ip, bool shared);
  int close_context(std::uint32_t ip);

  int read_register(std::uint32_t ip, std::uint32_t offset, std::uint32_t* value);
  int write_register(std::uint32_t ip, std::uint32_t offset, std::uint32_t value);

  int allocate(std::uint64_t bytes, std::uint32_t flags, void* user, std::uint32_t* handle);
  int free(std::uint32_t handle);
  int sync(std::uint32_t handle, bool to_device, std::uint64_t bytes, std::uint64_t offset);
  // A copy; the memory it names stays until free().
  int describe(std::uint32_t handle, Buffer* buffer);

  // An ert_packet in a buffer for commands: begun, and done some time later.
  int execute(std::uint32_t handle);
  // Whether a command was done since the last time, waiting for up to `ms` milliseconds.
  bool wait(int ms);

 private:
  struct Kernel {
    std::string name;
    bool exclusive = false;
    std::uint32_t users = 0;
  };

  void reached(const Buffer& buffer, bool begins);
  bool lost();
  int register_access(std::uint32_t ip, bool* is_lost);
  void live();
  bool card_at_rest();
  void work();
  std::uint32_t run_kernel(std::byte* packet);

  const StandinOptions options_;
  std::atomic<std::uint32_t> callers_{0};  // of the card, whom the thread that it lives in lets by
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::string uuid_;
  std::vector<Kernel> kernels_;  // by address, which is how contexts and registers name them
  std::uint32_t clock_khz_ = 0;
  std::unique_ptr<VerilatedCard> card_;
  std::uint32_t card_ip_ = UINT32_MAX;
  BankMemory memory_;
  std::uint64_t accesses_ = 0;
  bool awake_ = false;  // the card has or may have something to do
  std::deque<std::uint32_t> commands_;
  std::uint64_t done_ = 0, seen_ = 0;
  std::thread card_thread_, command_thread_;
};

}  // namespace penstock::sim
#endif
