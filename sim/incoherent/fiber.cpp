#include "penstock/sim/incoherent/fiber.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "penstock/base/status.h"

#if defined(__has_feature)
#define PENSTOCK_HAS_FEATURE(name) __has_feature(name)
#else
#define PENSTOCK_HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || PENSTOCK_HAS_FEATURE(address_sanitizer)
#define PENSTOCK_FIBER_ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__) || PENSTOCK_HAS_FEATURE(thread_sanitizer)
#define PENSTOCK_FIBER_TSAN 1
#include <sanitizer/tsan_interface.h>
#endif

#if !defined(__x86_64__)
#error "the switch between fibers is written for x86-64; another processor needs its own here"
#endif

// void penstock_sim_switch(void** save, void* load): keeps what the System V ABI says that a call
// keeps (rbx, rbp, r12..r15, the control bits of SSE and x87) on the old stack, and takes it from
// the new one. swapcontext would do, but it makes a system call each time.
asm(R"(
  .text
  .type penstock_sim_switch, @function
penstock_sim_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  subq $8, %rsp
  stmxcsr (%rsp)
  fnstcw 4(%rsp)
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  ldmxcsr (%rsp)
  fldcw 4(%rsp)
  addq $8, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size penstock_sim_switch, .-penstock_sim_switch
)");
extern "C" void penstock_sim_switch(void** save, void* load);

namespace penstock::sim {
namespace {

constexpr std::size_t kStackBytes = std::size_t{512} << 10;
constexpr std::uint64_t kCanary = 0x6b63617473207364;  // at the deepest end of every stack

Fiber* running = nullptr;

// Stacks are used again: a world has a handful, and there are many worlds.
struct Stacks {
  std::vector<std::byte*> free;
  ~Stacks() {
    for (std::byte* stack : free) std::free(stack);
  }
};
Stacks& stacks() {
  static Stacks all;
  return all;
}

std::byte* take_stack() {
  std::vector<std::byte*>& free = stacks().free;
  std::byte* stack;
  if (free.empty()) {
    stack = static_cast<std::byte*>(std::aligned_alloc(4096, kStackBytes));
    PENSTOCK_CHECK(stack != nullptr, "no memory for the stack of a fiber");
  } else {
    stack = free.back();
    free.pop_back();
  }
  std::memcpy(stack, &kCanary, sizeof kCanary);
  return stack;
}

}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), stack_(take_stack()) {
  // As if enter() had been called from address 0, where every backtrace ends, and had switched away
  // at once: the ABI wants the stack 8 bytes off a multiple of 16 at a function's first
  // instruction.
  std::byte* top = stack_ + kStackBytes - 64;
  const auto put = [](std::byte* at, std::uint64_t value) { std::memcpy(at, &value, 8); };
  put(top - 8, 0);
  put(top - 16, reinterpret_cast<std::uint64_t>(&Fiber::enter));
  for (int word = 3; word <= 8; ++word) put(top - 8 * word, 0);
  std::uint32_t control = 0;
  asm volatile("stmxcsr %0" : "=m"(control));
  std::uint16_t x87 = 0;
  asm volatile("fnstcw %0" : "=m"(x87));
  put(top - 72, control | std::uint64_t{x87} << 32);
  own_stack_pointer_ = top - 72;
#ifdef PENSTOCK_FIBER_TSAN
  thread_fiber_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
  PENSTOCK_CHECK(ended_, "a fiber is destroyed before it has ended");
#ifdef PENSTOCK_FIBER_TSAN
  __tsan_destroy_fiber(thread_fiber_);
#endif
#ifdef PENSTOCK_FIBER_ASAN
  __asan_unpoison_memory_region(stack_, kStackBytes);
#endif
  stacks().free.push_back(stack_);
}

void Fiber::resume() {
  PENSTOCK_CHECK(running == nullptr && !ended_, "a fiber is resumed inside another, or too late");
  running = this;
#ifdef PENSTOCK_FIBER_ASAN
  __sanitizer_start_switch_fiber(&resumer_shadow_, stack_, kStackBytes);
#endif
#ifdef PENSTOCK_FIBER_TSAN
  resumer_thread_fiber_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(thread_fiber_, 0);
#endif
  penstock_sim_switch(&resumer_stack_pointer_, own_stack_pointer_);
#ifdef PENSTOCK_FIBER_ASAN
  __sanitizer_finish_switch_fiber(resumer_shadow_, nullptr, nullptr);
#endif
  running = nullptr;
  std::uint64_t canary = 0;
  std::memcpy(&canary, stack_, sizeof canary);
  PENSTOCK_CHECK(canary == kCanary, "a fiber has used more than its {} bytes of stack",
                 kStackBytes);
}

void Fiber::pause() {
  PENSTOCK_CHECK(running == this, "only the running fiber can pause");
#ifdef PENSTOCK_FIBER_ASAN
  __sanitizer_start_switch_fiber(ended_ ? nullptr : &own_shadow_, resumer_stack_,
                                 resumer_stack_bytes_);
#endif
#ifdef PENSTOCK_FIBER_TSAN
  __tsan_switch_to_fiber(resumer_thread_fiber_, 0);
#endif
  penstock_sim_switch(&own_stack_pointer_, resumer_stack_pointer_);
#ifdef PENSTOCK_FIBER_ASAN
  __sanitizer_finish_switch_fiber(own_shadow_, &resumer_stack_, &resumer_stack_bytes_);
#endif
}

const void* Fiber::end_of_running_stack() {
  return running == nullptr ? nullptr : running->stack_ + kStackBytes;
}

void Fiber::enter() { running->run(); }

void Fiber::run() {
#ifdef PENSTOCK_FIBER_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &resumer_stack_, &resumer_stack_bytes_);
#endif
  body_();
  ended_ = true;
  pause();
  PENSTOCK_CHECK(false, "a fiber that has ended was resumed");
}

}  // namespace penstock::sim
