#include "penstock/drivers/opencl/staging.h"

#include <algorithm>
#include <utility>

#include "penstock/descriptor/descriptor.h"

namespace penstock::opencl {
namespace {

constexpr std::uint64_t kAlignment = 64;
// Elements of a piece are a multiple of this, so that no block-scaled record is cut.
constexpr std::uint64_t kGrain = 64;

std::uint64_t bytes_of(const StagedOperand& operand, std::uint64_t count) {
  return penstock_operand_bytes(operand.type, operand.block, count);
}
std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}
bool is_over(const cl::Event& event) {
  return event.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>() <= CL_COMPLETE;
}

}  // namespace

Staging::Staging(cl::Context context, cl::Device device, cl::CommandQueue kernels,
                 std::uint64_t chunk_bytes)
    : context_(std::move(context)),
      device_(std::move(device)),
      kernels_(std::move(kernels)),
      chunk_bytes_(chunk_bytes) {}

void Staging::open() {
  if (in_() != nullptr && out_() != nullptr) return;
  in_ = cl::CommandQueue(context_, device_);
  out_ = cl::CommandQueue(context_, device_);
}

Staging::Slot& Staging::next_slot() {
  Slot& slot = slots_[next_];
  if (slot.buffer() == nullptr) slot.buffer = cl::Buffer(context_, CL_MEM_READ_WRITE, chunk_bytes_);
  next_ = (next_ + 1) % slots_.size();
  return slot;
}

void Staging::wait_for_out(const void* data, std::uint64_t bytes, std::vector<cl::Event>* before) {
  if (last_out_() == nullptr || is_over(last_out_)) going_out_.clear();
  const auto* begin = static_cast<const std::byte*>(data);
  const bool waits = std::any_of(going_out_.begin(), going_out_.end(), [&](const Range& range) {
    return begin < range.end && range.begin < begin + bytes;
  });
  if (waits) before->push_back(last_out_);
}

void Staging::goes_out(const void* data, std::uint64_t bytes) {
  const auto* begin = static_cast<const std::byte*>(data);
  going_out_.push_back({begin, begin + bytes});
}

void Staging::run(const std::vector<StagedOperand>& operands, std::uint32_t regions,
                  std::uint64_t count, const Launch& launch, const std::vector<cl::Event>& after) {
  open();
  std::vector<std::uint64_t> grain_bytes(regions, 0);
  std::vector<cl::Event> before = after;
  for (const StagedOperand& operand : operands) {
    grain_bytes[operand.region] = bytes_of(operand, kGrain);
    if (operand.in) wait_for_out(operand.data, bytes_of(operand, count), &before);
  }
  for (const StagedOperand& operand : operands)
    if (operand.out) goes_out(operand.data, bytes_of(operand, count));
  std::uint64_t for_grain = 0;
  for (const std::uint64_t bytes : grain_bytes) for_grain += bytes;
  const std::uint64_t most =
      std::max<std::uint64_t>((chunk_bytes_ - regions * kAlignment) / for_grain, 1) * kGrain;

  std::vector<std::uint64_t> offset(regions, 0);
  for (std::uint64_t first = 0; first < count; first += most) {
    const std::uint64_t n = std::min(most, count - first);
    for (std::uint32_t r = 1; r < regions; ++r)
      offset[r] = offset[r - 1] + aligned((n + kGrain - 1) / kGrain * grain_bytes[r - 1]);
    Slot& slot = next_slot();
    if (slot.free() != nullptr) before.push_back(slot.free);
    cl::Event ready;
    for (const StagedOperand& operand : operands) {
      if (!operand.in) continue;
      ready = write(slot.buffer, offset[operand.region], operand.data + bytes_of(operand, first),
                    bytes_of(operand, n), before);
      before.clear();
    }
    if (launch) ready = launch(slot.buffer, offset.data(), n, {ready});
    for (const StagedOperand& operand : operands)
      if (operand.out)
        slot.free = read(slot.buffer, offset[operand.region],
                         operand.data + bytes_of(operand, first), bytes_of(operand, n), {ready});
    // The queues wait for one another: none may hold back what another one waits for.
    kernels_.flush();
    flush();
  }
}

cl::Event Staging::write(const cl::Buffer& buffer, std::uint64_t offset, const void* data,
                         std::uint64_t bytes, const std::vector<cl::Event>& after) {
  open();
  cl::Event event;
  in_.enqueueWriteBuffer(buffer, CL_FALSE, offset, bytes, data, after.empty() ? nullptr : &after,
                         &event);
  began_ = true;
  return event;
}

cl::Event Staging::read(const cl::Buffer& buffer, std::uint64_t offset, void* data,
                        std::uint64_t bytes, const std::vector<cl::Event>& after) {
  open();
  out_.enqueueReadBuffer(buffer, CL_FALSE, offset, bytes, data, after.empty() ? nullptr : &after,
                         &last_out_);
  began_ = true;
  return last_out_;
}

void Staging::flush() {
  if (in_() != nullptr) in_.flush();
  if (out_() != nullptr) out_.flush();
}

void Staging::finish() {
  if (in_() != nullptr) in_.finish();
  if (out_() != nullptr) out_.finish();
}

}  // namespace penstock::opencl
