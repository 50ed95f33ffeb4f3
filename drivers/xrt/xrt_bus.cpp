#include "penstock/drivers/xrt/xrt_bus.h"

#include <experimental/xrt_ip.h>
#include <experimental/xrt_system.h>
#include <experimental/xrt_xclbin.h>
#include <xrt/xrt_bo.h>
#include <xrt/xrt_device.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "penstock/base/log.h"
#include "penstock/base/platform.h"
#include "penstock/descriptor/descriptor.h"
#include "penstock/descriptor/register_map.h"
#include "penstock/drivers/xrt/xclbin_file.h"

namespace penstock::card {
namespace {

constexpr char kKernel[] = "penstock_card";
constexpr char kXclbinVariable[] = "PENSTOCK_XCLBIN";
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kNsPerUs = 1000;
// How long after the last doorbell waiting is done awake.
constexpr std::uint64_t kAwakeNs = 200 * kNsPerUs;
constexpr std::chrono::microseconds kNap{20};
constexpr std::chrono::milliseconds kInterruptWait{1};

// The kernel's arguments, by their id in rtl/vitis/kernel.xml.
enum Argument : std::uint32_t {
  kRings = 0,       // what m_axi_ctl reaches in the host's memory
  kLists = 1,       // what it reaches in the device's
  kMemory = 2,      // what m_axi_data reaches in the device's memory
  kHostMemory = 3,  // what it reaches in the host's
};

// Runs what XRT may throw from. Its errors are sentences without a number that could be relied on.
template <class Call>
auto guarded(Code code, const std::string& what, Call&& call) -> Result<decltype(call())> {
  try {
    return std::forward<Call>(call)();
  } catch (const std::exception& failure) {
    return error(code, "{}: XRT says: {}", what, failure.what());
  }
}

// Of three words, by its place.
enum class Interrupts { automatic, on, off };
enum class Memory { automatic, direct, staged };

struct Options {
  std::string xclbin, device, ip;
  Interrupts interrupts = Interrupts::automatic;
  Memory memory = Memory::automatic;
  std::uint64_t staging_bytes = 0;
};

template <class Choice>
Status choose(BusOptions& options, const char* key, const char* const (&words)[3], Choice* choice) {
  const std::string text = options.text(key, words[0]);
  for (int i = 0; i < 3; ++i)
    if (text == words[i]) {
      *choice = static_cast<Choice>(i);
      return {};
    }
  return error(Code::invalid_argument, "bus xrt: {}={}: it has to be {}, {} or {}", key, text,
               words[0], words[1], words[2]);
}

Result<Options> parse_options(const std::string& text) {
  PENSTOCK_ASSIGN(BusOptions options, BusOptions::parse("xrt", text));
  Options made;
  const char* variable = std::getenv(kXclbinVariable);
  made.xclbin = options.text("xclbin", variable == nullptr ? "" : variable);
  made.device = options.text("device", "0");
  made.ip = options.text("ip", "");
  made.staging_bytes = options.number("staging", 64, 1, 1 << 20) << 20;
  const Status chosen[] = {choose(options, "interrupts", {"auto", "on", "off"}, &made.interrupts),
                           choose(options, "memory", {"auto", "direct", "staged"}, &made.memory)};
  PENSTOCK_TRY(options.finish());
  for (const Status& status : chosen) PENSTOCK_TRY(status);
  if (made.xclbin.empty())
    return error(Code::invalid_argument, "bus xrt: no xclbin is named: say xclbin=FILE, or set {}",
                 kXclbinVariable);
  return made;
}

// The bank of the host's memory, or of the device's, that an argument of the kernel is connected
// to.
std::optional<std::uint32_t> group_of(const XclbinFile& file, const XclbinFile::Ip& ip,
                                      Argument argument, bool host) {
  for (const XclbinFile::Connection& line : ip.connections) {
    const XclbinFile::Bank& bank = file.banks[line.bank];
    if (line.argument == argument && bank.host() == host && bank.used) return bank.group;
  }
  return std::nullopt;
}

// Groups of banks, and which way memory goes.
struct Banks {
  std::uint32_t rings = 0, memory = 0;
  bool staged = false;
};

// XRT's objects in the order in which they have to come: each needs those before it.
struct Opened {
  xrt::device device;
  xrt::ip ip;
  std::optional<xrt::ip::interrupt> interrupt;
  std::string name;  // of the device
};

class XrtBus final : public Bus {
 public:
  XrtBus(Opened opened, const XclbinFile& file, const XclbinFile::Ip& ip, const Banks& banks,
         const Options& options)
      : opened_(std::move(opened)),
        banks_(banks),
        staging_bytes_(options.staging_bytes),
        clock_khz_(file.kernel_clock_khz),
        description_(fmt::format("{} of {} on XRT's device {}{}{}, {} MHz, {}", ip.name(),
                                 file.path, options.device, opened_.name.empty() ? "" : ", ",
                                 opened_.name, clock_khz_ / 1000,
                                 opened_.interrupt ? "by interrupt" : "by polling")) {}

  std::string description() const override { return description_; }
  std::uint32_t read(std::uint32_t offset) override;
  void write(std::uint32_t offset, std::uint32_t value) override;
  Result<std::uint64_t> attach(std::byte* memory, std::uint64_t bytes) override;
  void detach(std::uint64_t bus) override;
  Result<BusMemory> allocate(std::uint64_t bytes) override;
  void release(const BusMemory& memory) override { detach(memory.bus); }
  bool stages() const override { return banks_.staged; }
  Result<BusMemory> allocate_staging() override;
  Status to_card(const BusMemory& memory, std::uint64_t at, std::uint64_t bytes) override {
    return move(memory, XCL_BO_SYNC_BO_TO_DEVICE, at, bytes);
  }
  Status from_card(const BusMemory& memory, std::uint64_t at, std::uint64_t bytes) override {
    return move(memory, XCL_BO_SYNC_BO_FROM_DEVICE, at, bytes);
  }
  // The bridge's accesses go through the host's caches.
  bool behind_caches() const override { return true; }
  bool interrupts() const override { return opened_.interrupt.has_value(); }
  std::uint32_t clock_khz() const override { return clock_khz_; }
  void idle() override;

 private:
  Result<BusMemory> make(std::uint64_t bytes, xrt::bo::flags flags, std::uint32_t group,
                         const std::string& what);
  Status move(const BusMemory& memory, xclBOSyncDirection direction, std::uint64_t at,
              std::uint64_t bytes);
  Result<std::uint64_t> keep(xrt::bo buffer);
  void failed(const char* what, std::uint32_t offset, const char* why);

  Opened opened_;
  const Banks banks_;
  const std::uint64_t staging_bytes_;
  const std::uint32_t clock_khz_;
  const std::string description_;
  std::mutex mutex_;                          // of registers and of `buffers_`
  std::map<std::uint64_t, xrt::bo> buffers_;  // by bus address; go before the device
  std::atomic<std::uint64_t> last_write_ns_{0};
  std::atomic<bool> told_{false};
};

// A register that cannot be reached reads as one of a link that is down does.
void XrtBus::failed(const char* what, std::uint32_t offset, const char* why) {
  if (!told_.exchange(true))
    log::warn("card: {}: register {:#x} cannot be {}: XRT says: {}", description_, offset, what,
              why);
}

std::uint32_t XrtBus::read(std::uint32_t offset) {
  const std::lock_guard lock(mutex_);
  try {
    return opened_.ip.read_register(offset);
  } catch (const std::exception& failure) {
    failed("read", offset, failure.what());
    return kNoAnswer;
  }
}

void XrtBus::write(std::uint32_t offset, std::uint32_t value) {
  const std::lock_guard lock(mutex_);
  try {
    opened_.ip.write_register(offset, value);
  } catch (const std::exception& failure) {
    failed("written", offset, failure.what());
  }
  last_write_ns_.store(Platform::host().now_ns(), std::memory_order_relaxed);
}

Result<std::uint64_t> XrtBus::keep(xrt::bo buffer) {
  PENSTOCK_ASSIGN(const std::uint64_t bus, guarded(Code::io_error, "the address of a buffer",
                                                   [&] { return buffer.address(); }));
  if (bus % kPage != 0)
    return error(Code::unsupported, "XRT gives a buffer the address {:#x}, which is no page's",
                 bus);
  const std::lock_guard lock(mutex_);
  if (!buffers_.emplace(bus, std::move(buffer)).second)
    return error(Code::internal, "XRT gives two buffers the address {:#x}", bus);
  return bus;
}

Result<std::uint64_t> XrtBus::attach(std::byte* memory, std::uint64_t bytes) {
  const std::string what = fmt::format(
      "{} bytes of this process's memory cannot be given to the device; its driver has "
      "to take them in the host's bank (drivers/xrt/README.md says which do)",
      bytes);
  PENSTOCK_ASSIGN(xrt::bo buffer, guarded(Code::unsupported, what, [&] {
                    return xrt::bo(opened_.device, memory, bytes, banks_.memory);
                  }));
  return keep(std::move(buffer));
}

void XrtBus::detach(std::uint64_t bus) {
  xrt::bo buffer;  // goes without the lock
  const std::lock_guard lock(mutex_);
  const auto found = buffers_.find(bus);
  PENSTOCK_CHECK(found != buffers_.end(), "a bus address that is not attached");
  buffer = std::move(found->second);
  buffers_.erase(found);
}

Result<BusMemory> XrtBus::make(std::uint64_t bytes, xrt::bo::flags flags, std::uint32_t group,
                               const std::string& what) {
  const std::uint64_t rounded = (bytes + kPage - 1) / kPage * kPage;
  PENSTOCK_ASSIGN(xrt::bo buffer, guarded(Code::no_space, what, [&] {
                    return xrt::bo(opened_.device, rounded, flags, group);
                  }));
  PENSTOCK_ASSIGN(std::byte* const data, guarded(Code::io_error, "a buffer cannot be mapped",
                                                 [&] { return buffer.map<std::byte*>(); }));
  if (data == nullptr || reinterpret_cast<std::uintptr_t>(data) % kPage != 0)
    return error(Code::io_error, "XRT maps a buffer at {:#x}, which is no page",
                 reinterpret_cast<std::uintptr_t>(data));
  PENSTOCK_ASSIGN(const std::uint64_t bus, keep(std::move(buffer)));
  return BusMemory{data, bus, rounded};
}

Result<BusMemory> XrtBus::allocate(std::uint64_t bytes) {
  Result<BusMemory> made =
      make(bytes, xrt::bo::flags::host_only, banks_.rings,
           fmt::format("no {} bytes in the host's bank for rings (enable it: xbutil configure "
                       "--device BDF --host-mem --size 1G ENABLE)",
                       bytes));
  if (made.ok()) std::memset(made->data, 0, made->bytes);
  return made;
}

Result<BusMemory> XrtBus::allocate_staging() {
  return make(staging_bytes_, xrt::bo::flags::normal, banks_.memory,
              fmt::format("no {} bytes in the device's memory for copies (staging={} says how many "
                          "MiB)",
                          staging_bytes_, staging_bytes_ >> 20));
}

Status XrtBus::move(const BusMemory& memory, xclBOSyncDirection direction, std::uint64_t at,
                    std::uint64_t bytes) {
  xrt::bo buffer;
  {
    const std::lock_guard lock(mutex_);
    const auto found = buffers_.find(memory.bus);
    PENSTOCK_CHECK(found != buffers_.end(), "a bus address that is not attached");
    buffer = found->second;
  }
  // Whole lines, as DMA engines like them; what is beside them belongs to nobody.
  const std::uint64_t first = at / PENSTOCK_CACHE_LINE * PENSTOCK_CACHE_LINE;
  const std::uint64_t last =
      std::min((at + bytes + PENSTOCK_CACHE_LINE - 1) / PENSTOCK_CACHE_LINE * PENSTOCK_CACHE_LINE,
               memory.bytes);
  return guarded(Code::io_error, fmt::format("{} bytes cannot be moved", last - first),
                 [&] {
                   buffer.sync(direction, last - first, first);
                   return true;
                 })
      .status();
}

void XrtBus::idle() {
  if (opened_.interrupt) {
    try {
      if (opened_.interrupt->wait(kInterruptWait) == std::cv_status::timeout) return;
    } catch (const std::exception& failure) {
      failed("waited for", PENSTOCK_REGISTER_IRQ_CAUSE_LO, failure.what());
      std::this_thread::sleep_for(kInterruptWait);
      return;
    }
    // What comes after this is a new cause. What came before is collected by the caller.
    for (const std::uint32_t cause :
         {PENSTOCK_REGISTER_IRQ_CAUSE_LO, PENSTOCK_REGISTER_IRQ_CAUSE_HI})
      write(cause, read(cause));
    try {
      opened_.interrupt->enable();
    } catch (const std::exception& failure) {
      failed("armed", PENSTOCK_REGISTER_IRQ_CAUSE_LO, failure.what());
    }
    return;
  }
  // A card answers within microseconds, unless it waits for somebody.
  Platform& platform = Platform::host();
  if (platform.now_ns() - last_write_ns_.load(std::memory_order_relaxed) < kAwakeNs)
    platform.yield();
  else
    std::this_thread::sleep_for(kNap);
}

// XRT counts no devices where they are emulated.
bool emulated() { return std::getenv("XCL_EMULATION_MODE") != nullptr; }

Status probe() {
  try {
    if (xrt::system::enumerate_devices() > 0 || emulated()) return {};
  } catch (const std::exception& failure) {
    return error(Code::unsupported,
                 "XRT does not come up: {}; XILINX_XRT has to name the folder of its installation",
                 failure.what());
  }
  return error(Code::unsupported,
               "XRT sees no device (xbutil examine shows those that are plugged in)");
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

Result<xrt::device> open_device(const std::string& name) {
  if (is_number(name) && !emulated()) {
    PENSTOCK_ASSIGN(const unsigned count, guarded(Code::io_error, "XRT does not count devices",
                                                  [] { return xrt::system::enumerate_devices(); }));
    if (name.size() > 6 || std::stoul(name) >= count)
      return error(Code::not_found, "bus xrt: device={}: XRT sees {} device{}, counted from 0",
                   name, count, count == 1 ? "" : "s");
  }
  // The shim leaves the reason in errno, if anywhere.
  errno = 0;
  Result<xrt::device> device = guarded(Code::not_found, "", [&] { return xrt::device(name); });
  const int number = errno;
  if (device.ok()) return device;
  const std::string why = device.status().message().substr(2);
  if (number == EACCES || number == EPERM || why.find("ermission denied") != std::string::npos)
    return error(Code::permission_denied,
                 "bus xrt: device={}: this user may not open it: {} (the files are "
                 "/dev/dri/renderD*, mostly of the group render)",
                 name, why);
  if (number == EBUSY)
    return error(Code::busy, "bus xrt: device={}: somebody else has it: {}", name, why);
  return error(
      Code::not_found,
      "bus xrt: device={}: {} (it has to be the number or the bus address of a device that "
      "xbutil examine shows)",
      name, why);
}

std::string device_name(const xrt::device& device) {
  try {
    return device.get_info<xrt::info::device::name>();
  } catch (const std::exception&) {
    return {};  // it is for people only
  }
}

Status load(xrt::device& device, const std::string& name, const XclbinFile& file, xrt::uuid* uuid) {
  try {
    *uuid = device.load_xclbin(xrt::xclbin(file.data));
    return {};
  } catch (const std::exception& failure) {
    const std::string what = failure.what();
    const Code code = what.find("busy") != std::string::npos ? Code::busy : Code::unsupported;
    return error(
        code,
        "xclbin {} (UUID {}, made for the platform {}) cannot be loaded onto {}: XRT says: "
        "{}",
        file.path, file.uuid, file.platform, name.empty() ? "the device" : name, what);
  }
}

Status open_interrupt(Opened& opened, const XclbinFile::Ip& ip, Interrupts choice) {
  if (choice == Interrupts::off) return {};
  std::string why = "the xclbin gives the kernel no interrupt";
  if (ip.interrupts) {
    try {
      opened.interrupt = opened.ip.create_interrupt_notify();
      return {};
    } catch (const std::exception& failure) {
      why = fmt::format("XRT says: {}", failure.what());
    }
  }
  if (choice == Interrupts::automatic) {
    log::info("card: {} is polled: {}", ip.name(), why);
    return {};
  }
  return error(Code::unsupported, "bus xrt: interrupts=on: {} has none: {}", ip.name(), why);
}

std::string tags_of(const XclbinFile& file, const XclbinFile::Ip& ip, Argument argument) {
  std::string tags;
  for (const XclbinFile::Connection& line : ip.connections)
    if (line.argument == argument) tags += (tags.empty() ? "" : ", ") + file.banks[line.bank].tag;
  return tags.empty() ? "no bank" : tags;
}

// What the xclbin's connections allow, as it was chosen.
Result<Banks> banks_of(const XclbinFile& file, const XclbinFile::Ip& ip, Memory choice,
                       const xrt::device& device) {
  const auto rings = group_of(file, ip, kRings, true);
  if (!rings)
    return error(Code::unsupported,
                 "xclbin {}: rings of {} is connected to {}; they are in the host's memory, so it "
                 "has to be linked with HOST[0]",
                 file.path, ip.name(), tags_of(file, ip, kRings));
  const auto direct = group_of(file, ip, kHostMemory, true);
  const auto staged = group_of(file, ip, kMemory, false);
  if (choice == Memory::automatic) {
    // A page tells whether the driver takes memory of a process there.
    const std::unique_ptr<void, void (*)(void*)> page(std::aligned_alloc(kPage, kPage), std::free);
    const bool takes = direct && guarded(Code::unsupported, "", [&] {
                                   return xrt::bo(device, page.get(), kPage, *direct);
                                 }).ok();
    choice = takes ? Memory::direct : Memory::staged;
  }
  if (choice == Memory::direct) {
    if (direct) return Banks{*rings, *direct, false};
    return error(Code::unsupported,
                 "xclbin {}: host_memory of {} is connected to {}; for memory=direct it has to be "
                 "linked with HOST[0]",
                 file.path, ip.name(), tags_of(file, ip, kHostMemory));
  }
  if (staged && group_of(file, ip, kLists, false) == staged) return Banks{*rings, *staged, true};
  return error(
      Code::unsupported,
      "xclbin {}: memory of {} is connected to {}, lists to {}; for memory=staged both have "
      "to be linked with one bank of the device's",
      file.path, ip.name(), tags_of(file, ip, kMemory), tags_of(file, ip, kLists));
}

Result<std::unique_ptr<Bus>> make(const std::string& text) {
  PENSTOCK_ASSIGN(const Options options, parse_options(text));
  PENSTOCK_ASSIGN(const XclbinFile file, XclbinFile::read(options.xclbin));
  PENSTOCK_ASSIGN(const XclbinFile::Ip* const ip, file.find(kKernel, options.ip));
  if (file.kernel_clock_khz == 0)
    return error(Code::unsupported,
                 "xclbin {}: it does not say what its clock is, by which the card counts deadlines",
                 file.path);
  Opened opened;
  PENSTOCK_ASSIGN(opened.device, open_device(options.device));
  opened.name = device_name(opened.device);
  xrt::uuid uuid;
  PENSTOCK_TRY(load(opened.device, opened.name, file, &uuid));
  const std::string busy =
      fmt::format("{} cannot be opened: has another process got it?", ip->name());
  PENSTOCK_ASSIGN(opened.ip, guarded(Code::busy, busy, [&] {
                    return xrt::ip(opened.device, uuid,
                                   fmt::format("{}:{{{}}}", ip->kernel, ip->instance));
                  }));
  PENSTOCK_ASSIGN(const Banks banks, banks_of(file, *ip, options.memory, opened.device));
  PENSTOCK_TRY(open_interrupt(opened, *ip, options.interrupts));
  return std::unique_ptr<Bus>(
      std::make_unique<XrtBus>(std::move(opened), file, *ip, banks, options));
}

}  // namespace

BusFactory xrt_bus_factory() {
  BusFactory factory;
  factory.name = "xrt";
  factory.preference = 20;  // a device that is there before one that is simulated
  factory.simulated = emulated();
  factory.probe = probe;
  factory.make = make;
  return factory;
}

}  // namespace penstock::card
