// Fibers: the processes of a simulated world take turns on one thread, and only where they call
// into their platform.
#ifndef PENSTOCK_SIM_INCOHERENT_FIBER_H_
#define PENSTOCK_SIM_INCOHERENT_FIBER_H_

#include <cstddef>
#include <functional>
#include <memory>

namespace penstock::sim {

// A function with a stack of its own. resume() runs it until it calls pause() or ends. All fibers
// of a world belong to the thread that resumes them; nesting is not supported. A fiber has to have
// ended before it is destroyed: what lives on its stack would leak.
class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void resume();
  // Back to the resumer. Only inside the running fiber.
  void pause();
  bool ended() const { return ended_; }
  // Where the stack of the running fiber ends (its highest address); null outside of fibers.
  static const void* end_of_running_stack();

 private:
  static void enter();
  void run();

  std::function<void()> body_;
  std::byte* stack_;
  void* own_stack_pointer_ = nullptr;
  void* resumer_stack_pointer_ = nullptr;
  bool ended_ = false;
  // What the sanitizers want to know about the two stacks.
  void* own_shadow_ = nullptr;
  void* resumer_shadow_ = nullptr;
  const void* resumer_stack_ = nullptr;
  std::size_t resumer_stack_bytes_ = 0;
  void* thread_fiber_ = nullptr;
  void* resumer_thread_fiber_ = nullptr;
};

}  // namespace penstock::sim
#endif
