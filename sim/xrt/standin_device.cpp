#include "penstock/sim/xrt/standin_device.h"

#include <ert.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "penstock/base/platform.h"
#include "penstock/descriptor/register_map.h"
#include "penstock/drivers/card/bus.h"
#include "penstock/sim/xrt/kernels.h"

namespace penstock::sim {
namespace {

constexpr char kCard[] = "penstock_card";
constexpr std::uint64_t kSliceCycles = 200;
// How long the card's rest is not believed.
constexpr std::uint32_t kSlicesAwake = 20;
constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::uint64_t kBeat = 64;

}  // namespace

Result<StandinOptions> StandinOptions::parse(const std::string& text) {
  PENSTOCK_ASSIGN(card::BusOptions options, card::BusOptions::parse("stand-in", text));
  StandinOptions made;
  AxiConfig& m = made.card.memory;
  const auto small = [&](const char* key, std::uint32_t otherwise, std::uint64_t most) {
    return static_cast<std::uint32_t>(options.number(key, otherwise, 0, most));
  };
  made.devices = small("devices", made.devices, 16);
  made.platform = options.text("platform", made.platform);
  m.seed = options.number("seed", m.seed, 0, UINT64_MAX);
  m.fixed = small("fixed", 0, 1) != 0;
  m.read_error_one_in = m.write_error_one_in = small("faults", 0, UINT32_MAX);
  made.card.control_error_one_in = small("control_faults", 0, UINT32_MAX);
  made.version = small("version", 0, UINT32_MAX);
  made.user_memory = small("user_memory", 0, 1) != 0;
  made.no_permission = small("no_permission", 0, 1) != 0;
  made.no_host_bank = small("no_host_bank", 0, 1) != 0;
  made.most_buffers = options.number("most_buffers", made.most_buffers, 0, UINT64_MAX);
  made.lost_after = options.number("lost_after", 0, 0, UINT64_MAX);
  made.register_errors_after = options.number("register_errors_after", 0, 0, UINT64_MAX);
  PENSTOCK_TRY(options.finish());
  return made;
}

StandinDevice::StandinDevice(const StandinOptions& options)
    : options_(options),
      memory_([this](const Buffer& buffer, bool begins) { reached(buffer, begins); }) {
  memory_.set_user_memory(options.user_memory);
  memory_.set_host_bank(!options.no_host_bank);
  memory_.set_most_buffers(options.most_buffers);
  card_thread_ = std::thread([this] { live(); });
  command_thread_ = std::thread([this] { work(); });
}

StandinDevice::~StandinDevice() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  card_thread_.join();
  command_thread_.join();
}

void StandinDevice::reached(const Buffer& buffer, bool begins) {
  if (!card_) return;
  if (begins)
    card_->memory().attach(buffer.address, buffer.device,
                           (buffer.bytes + kBeat - 1) / kBeat * kBeat);
  else
    card_->memory().detach(buffer.address);
}

int StandinDevice::load(const char* xclbin, std::size_t bytes) {
  Result<card::XclbinFile> parsed =
      card::XclbinFile::parse("", std::vector<char>(xclbin, xclbin + bytes));
  if (!parsed.ok()) return EINVAL;
  card::XclbinFile& file = *parsed;
  if (file.platform != options_.platform) return EOPNOTSUPP;
  const std::lock_guard lock(mutex_);
  if (file.uuid == uuid_) return 0;
  if (std::any_of(kernels_.begin(), kernels_.end(), [](const Kernel& k) { return k.users != 0; }) ||
      memory_.count() != 0)
    return EBUSY;
  std::stable_sort(file.ips.begin(), file.ips.end(),
                   [](const auto& a, const auto& b) { return a.base < b.base; });
  kernels_.clear();
  card_.reset();
  card_ip_ = UINT32_MAX;
  for (const card::XclbinFile::Ip& ip : file.ips) {
    if (ip.kernel == kCard && card_ == nullptr) {
      card_ip_ = static_cast<std::uint32_t>(kernels_.size());
      card_ = std::make_unique<VerilatedCard>(options_.card);
    }
    kernels_.push_back({ip.kernel, false, 0});
  }
  std::vector<BankConfig> banks;
  for (const card::XclbinFile::Bank& bank : file.banks)
    banks.push_back({bank.tag, bank.base, bank.bytes, bank.used});
  memory_.set_banks(std::move(banks));
  clock_khz_ = std::max<std::uint32_t>(file.kernel_clock_khz, 1);
  uuid_ = file.uuid;
  return 0;
}

int StandinDevice::open_context(std::uint32_t ip, bool shared) {
  const std::lock_guard lock(mutex_);
  if (ip == UINT32_MAX) return 0;  // of the device as a whole
  if (ip >= kernels_.size()) return EINVAL;
  Kernel& kernel = kernels_[ip];
  if (kernel.users != 0 && (kernel.exclusive || !shared)) return EBUSY;
  kernel.exclusive = !shared;
  ++kernel.users;
  return 0;
}

int StandinDevice::close_context(std::uint32_t ip) {
  const std::lock_guard lock(mutex_);
  if (ip == UINT32_MAX) return 0;
  if (ip >= kernels_.size() || kernels_[ip].users == 0) return EINVAL;
  --kernels_[ip].users;
  return 0;
}

bool StandinDevice::lost() { return options_.lost_after != 0 && accesses_ >= options_.lost_after; }

int StandinDevice::register_access(std::uint32_t ip, bool* is_lost) {
  ++accesses_;
  if (options_.register_errors_after != 0 && accesses_ > options_.register_errors_after) return EIO;
  *is_lost = lost();
  return card_ == nullptr || ip != card_ip_ ? EINVAL : 0;
}

int StandinDevice::read_register(std::uint32_t ip, std::uint32_t offset, std::uint32_t* value) {
  callers_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  callers_.fetch_sub(1, std::memory_order_relaxed);
  bool is_lost = false;
  if (const int failure = register_access(ip, &is_lost); failure != 0) return failure;
  *value = card::kNoAnswer;
  if (is_lost) return 0;
  static_cast<void>(card_->read(offset, value));
  if (offset == PENSTOCK_REGISTER_VERSION && options_.version != 0) *value = options_.version;
  return 0;
}

int StandinDevice::write_register(std::uint32_t ip, std::uint32_t offset, std::uint32_t value) {
  {
    callers_.fetch_add(1, std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    callers_.fetch_sub(1, std::memory_order_relaxed);
    bool is_lost = false;
    if (const int failure = register_access(ip, &is_lost); failure != 0) return failure;
    if (is_lost) return 0;
    static_cast<void>(card_->write(offset, value));
    awake_ = true;
  }
  changed_.notify_all();
  return 0;
}

int StandinDevice::allocate(std::uint64_t bytes, std::uint32_t flags, void* user,
                            std::uint32_t* handle) {
  const std::lock_guard lock(mutex_);
  return memory_.allocate(bytes, flags, static_cast<std::byte*>(user), handle);
}

int StandinDevice::free(std::uint32_t handle) {
  const std::lock_guard lock(mutex_);
  return memory_.free(handle);
}

int StandinDevice::sync(std::uint32_t handle, bool to_device, std::uint64_t bytes,
                        std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  return memory_.sync(handle, to_device, bytes, offset);
}

int StandinDevice::describe(std::uint32_t handle, Buffer* buffer) {
  const std::lock_guard lock(mutex_);
  const Buffer* found = memory_.find(handle);
  if (found == nullptr) return ENOENT;
  *buffer = *found;
  return 0;
}

bool StandinDevice::card_at_rest() {
  std::uint32_t status = 0;
  return card_->read(PENSTOCK_REGISTER_STATUS, &status) &&
         (status & PENSTOCK_REGISTER_STATUS_IDLE_MASK) != 0 &&
         (status & PENSTOCK_REGISTER_STATUS_RESETTING_MASK) == 0;
}

// The card's time passes here, as long as it has something to do, and never faster than the clock
// that its xclbin says: deadlines are counted with it.
void StandinDevice::live() {
  Platform& platform = Platform::host();
  std::unique_lock lock(mutex_);
  while (!stop_) {
    changed_.wait(lock, [&] { return stop_ || (awake_ && !lost()); });
    std::uint32_t slices = 0;
    while (!stop_ && !lost() && card_ != nullptr) {
      const std::uint64_t began = platform.now_ns();
      const std::uint64_t cycles = card_->run(kSliceCycles, false);
      if (++slices >= kSlicesAwake && card_at_rest()) break;
      if (slices >= kSlicesAwake) slices = 0;
      lock.unlock();
      const std::uint64_t until = began + cycles * kNsPerMs / clock_khz_;
      do {
        platform.yield();
      } while (platform.now_ns() < until || callers_.load(std::memory_order_relaxed) != 0);
      lock.lock();
    }
    awake_ = false;
  }
}

int StandinDevice::execute(std::uint32_t handle) {
  {
    const std::lock_guard lock(mutex_);
    if (memory_.find(handle) == nullptr) return ENOENT;
    commands_.push_back(handle);
  }
  changed_.notify_all();
  return 0;
}

bool StandinDevice::wait(int ms) {
  std::unique_lock lock(mutex_);
  const auto arrived = [&] { return done_ != seen_; };
  const bool some = changed_.wait_for(lock, std::chrono::milliseconds(ms), arrived);
  seen_ = done_;
  return some;
}

void StandinDevice::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || !commands_.empty(); });
    if (stop_) return;
    const std::uint32_t handle = commands_.front();
    commands_.pop_front();
    if (Buffer* buffer = memory_.find(handle); buffer != nullptr) {
      auto* packet = reinterpret_cast<ert_packet*>(buffer->host);
      const std::uint32_t state = run_kernel(buffer->host);
      ert_packet changed;
      std::memcpy(&changed.header, packet, sizeof(changed.header));
      changed.state = state & 0xf;
      std::memcpy(static_cast<void*>(packet), &changed.header, sizeof(changed.header));
    }
    ++done_;
    changed_.notify_all();
  }
}

// The registers of the kernel that a packet starts are in it, from offset 0 on.
std::uint32_t StandinDevice::run_kernel(std::byte* packet) {
  const auto word = [&](std::size_t index) {
    std::uint32_t value;
    std::memcpy(&value, packet + index * sizeof(value), sizeof(value));
    return value;
  };
  ert_start_kernel_cmd head;
  head.header = word(0);
  if (head.opcode != ERT_START_CU || head.count < 1u + head.extra_cu_masks)
    return ERT_CMD_STATE_ERROR;
  std::uint32_t unit = UINT32_MAX;
  for (std::uint32_t mask = 0; mask <= head.extra_cu_masks && unit == UINT32_MAX; ++mask)
    if (const std::uint32_t bits = word(1 + mask); bits != 0)
      unit = mask * 32 + static_cast<std::uint32_t>(__builtin_ctz(bits));
  if (unit >= kernels_.size()) return ERT_CMD_STATE_ERROR;
  std::vector<std::uint32_t> registers;
  for (std::uint32_t i = 1 + head.extra_cu_masks; i < head.count; ++i)
    registers.push_back(word(1 + i));
  return run_hls_kernel(kernels_[unit].name, registers, memory_) ? ERT_CMD_STATE_COMPLETED
                                                                 : ERT_CMD_STATE_ERROR;
}

}  // namespace penstock::sim
