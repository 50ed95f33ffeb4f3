#include "penstock/sim/cuda/machine.h"

#include <sys/mman.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "penstock/base/status.h"

namespace penstock::sim::cuda {
namespace {

constexpr std::size_t kAddressBytes = std::size_t{1} << 40;
constexpr std::size_t kPage = 4096;

}  // namespace

std::optional<Options> Options::parse(const std::string& text) {
  Options o;
  const std::pair<const char*, std::uint64_t*> known[] = {
      {"seed", &o.seed},     {"delay_us", &o.delay_us},     {"devices", &o.devices},
      {"memory", &o.memory}, {"fail_alloc", &o.fail_alloc}, {"lost_after", &o.lost_after},
      {"deny", &o.deny},     {"register", &o.reg},          {"pageable", &o.pageable}};
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty()) continue;
    bool taken = false;
    for (const auto& [name, value] : known) {
      const std::string start = std::string(name) + "=";
      if (!part.starts_with(start)) continue;
      const char* last = part.data() + part.size();
      const auto [stop, failure] = std::from_chars(part.data() + start.size(), last, *value);
      taken = failure == std::errc() && stop == last;
    }
    if (!taken) return std::nullopt;
  }
  return o;
}

Memory::Memory() {
  void* range =
      mmap(nullptr, kAddressBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  PENSTOCK_CHECK(range != MAP_FAILED, "no address space for the stand-in's devices");
  first_ = next_ = reinterpret_cast<CUdeviceptr>(range);
  end_ = first_ + kAddressBytes;
}

// Addresses are used once, with a page that is nobody's between two ranges.
CUdeviceptr Memory::reserve(std::size_t bytes) {
  const std::size_t whole = (bytes + kPage - 1) / kPage * kPage + kPage;
  if (whole > end_ - next_) return 0;
  const CUdeviceptr address = next_;
  next_ += whole;
  return address;
}

CUdeviceptr Memory::add_device(std::size_t bytes, int ordinal) {
  const std::lock_guard lock(mutex_);
  auto* storage = static_cast<std::byte*>(std::malloc(bytes));
  const CUdeviceptr address = storage != nullptr ? reserve(bytes) : 0;
  if (address == 0) {
    std::free(storage);
    return 0;
  }
  std::memset(storage, 0xd5, bytes);  // whatever was there
  ranges_[address] = {address, bytes, storage, false, ordinal};
  device_bytes_ += bytes;
  return address;
}

CUdeviceptr Memory::add_host(void* host, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  CUdeviceptr address = reserve(bytes + kPage);
  if (address == 0) return 0;
  address += reinterpret_cast<std::uintptr_t>(host) % kPage;
  ranges_[address] = {address, bytes, static_cast<std::byte*>(host), true, 0};
  return address;
}

bool Memory::remove_device(CUdeviceptr address) {
  const std::lock_guard lock(mutex_);
  const auto found = ranges_.find(address);
  if (found == ranges_.end() || found->second.host) return false;
  device_bytes_ -= found->second.bytes;
  std::free(found->second.storage);
  ranges_.erase(found);
  return true;
}

bool Memory::remove_host(void* host) {
  const std::lock_guard lock(mutex_);
  for (auto at = ranges_.begin(); at != ranges_.end(); ++at) {
    if (!at->second.host || at->second.storage != host) continue;
    ranges_.erase(at);
    return true;
  }
  return false;
}

std::optional<Memory::Range> Memory::find(CUdeviceptr address) const {
  const std::lock_guard lock(mutex_);
  auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return std::nullopt;
  const Range& range = std::prev(after)->second;
  if (address - range.address >= range.bytes) return std::nullopt;
  return range;
}

std::optional<Memory::Range> Memory::find_host(const void* data) const {
  const std::lock_guard lock(mutex_);
  const auto* at = static_cast<const std::byte*>(data);
  for (const auto& [address, range] : ranges_)
    if (range.host && at >= range.storage &&
        static_cast<std::size_t>(at - range.storage) < range.bytes)
      return range;
  return std::nullopt;
}

std::byte* Memory::translate(CUdeviceptr address, std::size_t bytes) const {
  const std::optional<Range> range = find(address);
  if (!range) return nullptr;
  const std::size_t into = address - range->address;
  return bytes <= range->bytes - into ? range->storage + into : nullptr;
}

Stream::Stream()
    : random_(Machine::instance().options.seed + Machine::instance().counts.streams),
      thread_([this] { work(); }) {}

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Stream::put(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
}

void Stream::synchronize() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return tasks_.empty() && !busy_; });
}

void Stream::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    busy_ = true;
    lock.unlock();
    if (const std::uint64_t most = Machine::instance().options.delay_us; most != 0)
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % (most + 1)));
    task();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

Machine::Machine() {
  const char* text = std::getenv("PENSTOCK_CUDA_STANDIN");
  const std::optional<Options> given = Options::parse(text != nullptr ? text : "");
  PENSTOCK_CHECK(given.has_value(), "PENSTOCK_CUDA_STANDIN={} is wrong", text);
  options = *given;
}

Machine& Machine::instance() {
  static auto* const machine = new Machine;
  return *machine;
}

bool Machine::restart(const std::string& text) {
  const std::optional<Options> given = Options::parse(text);
  if (!given) return false;
  options = *given;
  lost = false;
  allocations = 0;
  counts.launches = 0;
  counts.graph_launches = 0;
  return true;
}

bool Machine::launch() {
  const std::uint64_t n = ++counts.launches;
  if (options.lost_after != 0 && n > options.lost_after) lost = true;
  return !lost;
}

void Machine::finish(Completion& completion) {
  {
    const std::lock_guard lock(mutex_);
    completion.done = true;
  }
  finished_.notify_all();
}

void Machine::wait(const Completion& completion) {
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return completion.done.load(); });
}

}  // namespace penstock::sim::cuda
