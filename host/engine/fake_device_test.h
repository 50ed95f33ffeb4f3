// A device in a few lines: an in-order stream whose work is done by the scalar kernels, when a test
// lets it.
#ifndef PENSTOCK_ENGINE_FAKE_DEVICE_TEST_H_
#define PENSTOCK_ENGINE_FAKE_DEVICE_TEST_H_

#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "penstock/engine/device_engine.h"
#include "penstock/engine/update.h"

namespace penstock {

class FakeDevice final : public Device {
 public:
  // What a test says.
  std::uint32_t looks_for_each = 0;  // an operation is over after so many looks; 0: when told to
  std::deque<Status> answers;        // to the next operations; an ok one starts it
  Status open_answer;
  std::uint32_t select_refusal = PENSTOCK_OK;  // of every SELECT, with field PROGRAM, detail 3
  bool lost = false;
  const void* unreadable = nullptr;  // the host does not read what lies here
  // What a test sees.
  std::uint32_t started = 0;
  std::uint32_t done = 0;
  std::uint32_t marks = 0;
  std::uint32_t refusals = 0;
  std::vector<std::string> log;

  // Lets the oldest n operations of all streams happen.
  void run(std::size_t n = 1) {
    for (; n > 0 && !work_.empty(); --n) {
      work_.front()();
      work_.pop_front();
      ++done;
    }
  }
  std::size_t waiting() const { return work_.size(); }

  Result<std::unique_ptr<DeviceStream>> open(Queue&) override {
    if (!open_answer.ok()) return open_answer;
    return std::unique_ptr<DeviceStream>(std::make_unique<Stream>(*this));
  }
  bool host_reads(const void* data, std::uint64_t) const override { return data != unreadable; }

 private:
  class Stream final : public DeviceStream {
   public:
    explicit Stream(FakeDevice& device) : device_(device) {}
    ~Stream() override {
      device_.log.push_back("closed");
      if (!device_.lost) device_.run(device_.waiting());
    }
    Status copy(void* const* dst, std::uint32_t n_dst, const void* src,
                std::uint64_t bytes) override {
      const std::vector<void*> to(dst, dst + n_dst);
      return device_.start("copy", [=, this] {
        kernels_->copy(to.data(), static_cast<std::uint32_t>(to.size()), src, bytes, false);
      });
    }
    Status reduce(const ReduceArguments& arguments) override {
      struct Kept {
        ReduceArguments a;
        std::vector<const void*> src;
        std::vector<void*> dst;
        std::vector<std::byte> weights;
      };
      auto kept = std::make_shared<Kept>();
      kept->a = arguments;
      kept->src.assign(arguments.src, arguments.src + arguments.n_src);
      kept->dst.assign(arguments.dst, arguments.dst + arguments.n_dst);
      kept->a.src = kept->src.data();
      kept->a.dst = kept->dst.data();
      if (arguments.weights != nullptr) {
        const auto* weights = static_cast<const std::byte*>(arguments.weights);
        const std::size_t size = arguments.type == PENSTOCK_F64 ? 8 : 4;
        kept->weights.assign(weights, weights + arguments.n_src * size);
        kept->a.weights = kept->weights.data();
      }
      return device_.start("reduce", [kept, this] { kernels_->reduce(kept->a); });
    }
    Status outer_step(const OuterStepArguments& arguments) override {
      OuterStepArguments a = arguments;
      const std::vector<const void*> src(a.src, a.src + a.n_src);
      return device_.start("outer_step", [=, this]() mutable {
        a.src = src.data();
        kernels_->outer_step(a);
      });
    }
    Status select(const SelectArguments& a) override {
      return device_.start("select", [a, this] {
        if (device_.select_refusal != PENSTOCK_OK) {
          *a.status = device_.select_refusal;
          *a.field = PENSTOCK_FIELD_PROGRAM;
          *a.detail = 3;
          return;
        }
        penstock_node_table header = *a.view.header;
        const TableView view = table_view(&header, a.table);
        for (std::uint64_t i = 0; i < a.n; ++i) {
          penstock_result result;
          kernels_->select(view, *a.program, a.tasks[i], a.commit, &result);
          std::memcpy(a.results + i * sizeof(result), &result, sizeof(result));
        }
      });
    }
    Status update(const UpdateArguments& a) override {
      return device_.start("update", [a] {
        penstock_node_table header = *a.view.header;
        *a.status = apply_updates(table_view(&header, a.table), a.updates, a.n, a.bad_index);
      });
    }
    Result<std::uint64_t> mark() override {
      if (device_.lost) return error(Code::io_error, "it fell off the bus");
      ++device_.marks;
      return std::uint64_t{device_.started};
    }
    Result<bool> reached(std::uint64_t mark) override {
      if (device_.lost) return error(Code::io_error, "it fell off the bus");
      if (device_.looks_for_each != 0 && ++looks_ % device_.looks_for_each == 0) device_.run();
      return device_.done >= mark;
    }

   private:
    FakeDevice& device_;
    const std::unique_ptr<const Kernels> kernels_ = scalar_kernels();
    std::uint32_t looks_ = 0;
  };

  Status start(const char* what, std::function<void()> work) {
    if (!answers.empty()) {
      const Status answer = answers.front();
      answers.pop_front();
      if (!answer.ok()) {
        ++refusals;
        return answer;
      }
    }
    log.emplace_back(what);
    ++started;
    work_.push_back(std::move(work));
    return {};
  }

  std::deque<std::function<void()>> work_;
};

}  // namespace penstock
#endif
