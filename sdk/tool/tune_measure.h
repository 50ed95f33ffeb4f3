// Finds the tuning of a machine by measuring it: for each field, calls of several sizes with the
// one way and with the other, in turn, and the size at which to change over.
#ifndef PENSTOCK_SDK_TOOL_TUNE_MEASURE_H_
#define PENSTOCK_SDK_TOOL_TUNE_MEASURE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "penstock/comm/tuning_file.h"
#include "penstock/comm/world.h"

namespace penstock::tool {

// How many of the sizes, in rising order, to do the first way and the rest the second, so that the
// product of all times is least. Both lists are as long as each other, and hold positive times.
std::size_t best_split(const std::vector<double>& first, const std::vector<double>& second);
// The mean gain (0.05: 5 % faster) of splitting at `split` over splitting at `other`.
double gain_of_split(const std::vector<double>& first, const std::vector<double>& second,
                     std::size_t split, std::size_t other);

// What was found about one field.
struct TuneFinding {
  std::string field;
  std::uint64_t value = 0;
  std::uint64_t built_in = 0;
  double gain = 0;  // over the built-in value, in the mean of what was measured
};

// One rank of a measurement; all ranks construct it and call measure together. Not thread-safe.
class TuneMeasure {
 public:
  using Report = std::function<void(const TuneFinding&)>;
  // `samples` of each way and size; the median counts.
  TuneMeasure(World& world, const CommConfig& base, std::uint32_t samples)
      : world_(world), base_(base), samples_(samples) {}

  // The same entry on every rank. `report` is called after each field. A field whose best value is
  // less than 3 % better than what is built in keeps that.
  Result<TuningEntry> measure(const Report& report);

 private:
  struct Question;
  struct Buffers;

  Result<std::unique_ptr<Comm>> join(const CommConfig& config);
  Status ask(const Question& question, const Report& report);
  Status ask_chunks(const Report& report);
  // Microseconds of each way at one size, geometric mean over the collectives.
  Result<std::vector<double>> times(const std::vector<Comm*>& ways,
                                    const std::vector<Collective>& collectives,
                                    std::uint64_t part_bytes, bool in_pool);
  Result<std::vector<double>> times_of(const std::vector<Comm*>& ways, Collective collective,
                                       std::uint64_t part_bytes, const Buffers& buffers);
  Result<double> time_calls(Comm& comm, const Call& call, const Buffers& buffers,
                            std::uint64_t bytes, std::uint64_t calls);
  Result<double> slowest(double own);

  World& world_;
  CommConfig base_;
  const std::uint32_t samples_;
  std::unique_ptr<Comm> agreement_;  // exchanges what the ranks measured
  std::uint32_t comms_ = 0;
};

}  // namespace penstock::tool
#endif
