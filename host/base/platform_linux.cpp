// The real platform: Linux on x86-64.
//
// Cache lines are written back with clwb, else clflushopt, else clflush, and invalidated with
// clflushopt, else clflush; cpuid decides when the process starts. libpmem's pmem_flush is no
// substitute: it does nothing on machines whose caches survive a power failure (eADR), where
// another host would still not see the store.
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <thread>

#include "penstock/base/file_linux.h"
#include "penstock/base/platform.h"
#include "penstock/base/process_linux.h"

#if !defined(__x86_64__)
#error "Penstock's cache control is written for x86-64; another processor needs its own here"
#endif
#include <cpuid.h>
#include <emmintrin.h>

namespace penstock {
namespace {

constexpr std::uintptr_t kLine = 64;

struct CacheInstructions {
  bool clflushopt = false;
  bool clwb = false;
};

CacheInstructions probe_cache_instructions() {
  CacheInstructions has;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) {
    has.clflushopt = (ebx & (1u << 23)) != 0;
    has.clwb = (ebx & (1u << 24)) != 0;
  }
  return has;
}

// Runs `instruction` on each line of the range. A range of 0 bytes has no line.
template <typename Instruction>
void for_each_line(const void* data, std::size_t bytes, Instruction instruction) {
  if (bytes == 0) return;
  const auto first = reinterpret_cast<std::uintptr_t>(data) & ~(kLine - 1);
  const auto end = reinterpret_cast<std::uintptr_t>(data) + bytes;
  for (std::uintptr_t line = first; line < end; line += kLine) {
    instruction(reinterpret_cast<volatile char*>(line));
  }
}

// As assembly, so that the file compiles for the oldest x86-64; "memory" keeps stores before it.
void clwb(volatile char* line) { asm volatile("clwb %0" : "+m"(*line) : : "memory"); }
void clflushopt(volatile char* line) { asm volatile("clflushopt %0" : "+m"(*line) : : "memory"); }
void clflush(volatile char* line) { asm volatile("clflush %0" : "+m"(*line) : : "memory"); }

class LinuxPlatform final : public Platform {
 public:
  std::uint64_t now_ns() override {
    struct timespec now;
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(now.tv_nsec);
  }

  std::uint64_t random() override {
    // The system's generator has no state in this process that a forked child could repeat.
    std::random_device source;
    return (static_cast<std::uint64_t>(source()) << 32) | source();
  }

  unsigned cpu_count() override {
    cpu_set_t set;
    if (::sched_getaffinity(0, sizeof set, &set) == 0) {
      return static_cast<unsigned>(CPU_COUNT(&set));
    }
    // More CPUs than the set has bits.
    const unsigned count = std::thread::hardware_concurrency();
    return count > 0 ? count : 1;
  }

  void pause() override { _mm_pause(); }
  void yield() override { ::sched_yield(); }
  void sleep_ns(std::uint64_t ns) override {
    struct timespec left = {static_cast<time_t>(ns / 1'000'000'000u),
                            static_cast<long>(ns % 1'000'000'000u)};
    while (::clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR) {
    }
  }

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode,
                                     unsigned permissions) override {
    return open_file(*this, path, mode, permissions);
  }
  Status remove(const std::string& path) override { return remove_file(path); }
  bool exists(const std::string& path) override { return identity_of_path(path) != 0; }
  std::uint64_t file_identity(const std::string& path) override { return identity_of_path(path); }
  Status unmap(void* address, std::uint64_t bytes) override { return unmap_memory(address, bytes); }

  ProcessIdentity self() override { return this_process(); }
  std::uint64_t process_generation() override { return this_process_generation(); }
  Liveness liveness(const ProcessIdentity& process) override { return process_liveness(process); }
  char process_state(const ProcessIdentity& process) override { return state_of_process(process); }

  void write_back(const void* data, std::size_t bytes) override {
    if (has_.clwb) {
      for_each_line(data, bytes, clwb);
    } else {
      invalidate(data, bytes);
    }
  }
  void invalidate(const void* data, std::size_t bytes) override {
    if (has_.clflushopt) {
      for_each_line(data, bytes, clflushopt);
    } else {
      for_each_line(data, bytes, clflush);
    }
  }
  void store_fence() override { _mm_sfence(); }
  void full_fence() override { _mm_mfence(); }

 private:
  const CacheInstructions has_ = probe_cache_instructions();
};

}  // namespace

Platform& Platform::host() {
  // Never destroyed: files that outlive main still use it.
  static LinuxPlatform* const instance = new LinuxPlatform;
  return *instance;
}

}  // namespace penstock
