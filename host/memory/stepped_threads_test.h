// Threads of which one runs at a time, each from one point to its next, as the test says: for
// code that waits or loops, where a schedule of steps is to be played.
#ifndef PENSTOCK_MEMORY_STEPPED_THREADS_TEST_H_
#define PENSTOCK_MEMORY_STEPPED_THREADS_TEST_H_

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock {

class SteppedThreads {
 public:
  explicit SteppedThreads(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) threads_.push_back(std::make_unique<Entry>());
  }
  ~SteppedThreads() {
    for (std::size_t who = 0; who < threads_.size(); ++who) stop(who);
  }
  SteppedThreads(const SteppedThreads&) = delete;
  SteppedThreads& operator=(const SteppedThreads&) = delete;

  std::size_t count() const { return threads_.size(); }
  bool is_running(std::size_t who) const { return threads_[who]->running; }

  // The body begins at the first step.
  void start(std::size_t who, std::function<void()> body) {
    stop(who);
    Entry& entry = *threads_[who];
    entry.stopped = false;
    entry.running = true;
    entry.thread = std::thread([&entry, body = std::move(body)] {
      entry.go.take();
      try {
        if (!entry.stopped) body();
      } catch (const Stop&) {
      }
      entry.running = false;
      entry.done.give();
    });
  }
  // Up to the thread's next point; false once it has ended.
  bool step(std::size_t who) {
    Entry& entry = *threads_[who];
    if (!entry.running) return false;
    entry.go.give();
    entry.done.take();
    return entry.running;
  }
  // The thread ends where it stands, like a process that is killed.
  void stop(std::size_t who) {
    Entry& entry = *threads_[who];
    entry.stopped = true;
    while (step(who)) {
    }
    if (entry.thread.joinable()) entry.thread.join();
  }

  // Called by thread `who`.
  void point(std::size_t who) {
    Entry& entry = *threads_[who];
    if (!entry.stopped) {
      entry.done.give();
      entry.go.take();
    }
    // A destructor that runs because of the stop goes through.
    if (entry.stopped && std::uncaught_exceptions() == 0) throw Stop();
  }

 private:
  struct Stop {};
  // Hands the turn from one thread to another. Sleeps at once: whoever spins or yields here waits
  // for its next time slice on a machine that is busy.
  class Turn {
   public:
    void give() {
      const std::lock_guard<std::mutex> guard(mutex_);
      given_ = true;
      condition_.notify_one();
    }
    void take() {
      std::unique_lock<std::mutex> guard(mutex_);
      condition_.wait(guard, [this] { return given_; });
      given_ = false;
    }

   private:
    std::mutex mutex_;
    std::condition_variable condition_;
    bool given_ = false;
  };
  struct Entry {
    std::thread thread;
    Turn go;
    Turn done;
    bool running = false;
    bool stopped = false;
  };
  std::vector<std::unique_ptr<Entry>> threads_;
};

}  // namespace penstock
#endif
