// A Verilated block with one clock, for unit tests: reset, cycles, randomness by seed.
#ifndef PENSTOCK_RTL_COMMON_CLOCKED_TEST_H_
#define PENSTOCK_RTL_COMMON_CLOCKED_TEST_H_

#include <verilated.h>

#include <cstdint>
#include <memory>
#include <random>

#include "penstock/rtl/coverage/save_coverage.h"

namespace penstock::rtl {

// Model is a class that penstock_verilate() made, with clk_i and rst_ni. A test sets inputs, calls
// eval() where it wants to see what follows from them in the same cycle, and tick() for the clock's
// edge. What the block does not reset is random by the seed. Not thread-safe.
template <typename Model>
class Clocked {
 public:
  explicit Clocked(unsigned seed) : random(seed) {
    context_->randReset(2);
    context_->randSeed(static_cast<int>(seed) + 1);
    model_ = std::make_unique<Model>(context_.get());
    model_->clk_i = 0;
    model_->rst_ni = 0;
  }
  ~Clocked() {
    model_->final();
    save_coverage(*context_);
  }
  Clocked(const Clocked&) = delete;
  Clocked& operator=(const Clocked&) = delete;

  Model& operator*() { return *model_; }
  Model* operator->() { return model_.get(); }

  // Holds reset for some cycles; the inputs are the caller's, and may be anything.
  void reset(int cycles = 3) {
    model_->rst_ni = 0;
    for (int i = 0; i < cycles; ++i) tick();
    model_->rst_ni = 1;
    model_->eval();
    if (!was_reset_) forget_toggles(*context_);
    was_reset_ = true;
  }
  // A failing assertion is printed and does not end the process. Otherwise it does.
  void tolerate_errors() {
    context_->fatalOnError(false);
    context_->errorLimit(1 << 20);
  }
  void eval() { model_->eval(); }
  // One cycle, up to and with its rising edge: outputs then show what the registers hold.
  void tick() {
    model_->clk_i = 0;
    model_->eval();
    context_->timeInc(1);
    model_->clk_i = 1;
    model_->eval();
    context_->timeInc(1);
    ++cycles_;
  }
  std::uint64_t cycles() const { return cycles_; }

  // True in `percent` of 100 calls.
  bool chance(unsigned percent) { return random() % 100 < percent; }

  std::mt19937_64 random;

 private:
  std::unique_ptr<VerilatedContext> context_ = std::make_unique<VerilatedContext>();
  std::unique_ptr<Model> model_;
  std::uint64_t cycles_ = 0;
  bool was_reset_ = false;
};

}  // namespace penstock::rtl

#endif
