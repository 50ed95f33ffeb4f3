#include "tune_measure.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace penstock::tool {
namespace {

constexpr double kLeastGain = 0.03;
constexpr double kSampleNs = 400'000;
constexpr std::uint64_t kMaxCalls = 200;
constexpr std::uint64_t kNever = std::uint64_t{1} << 30;
constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;

double cost(const std::vector<double>& first, const std::vector<double>& second,
            std::size_t split) {
  double sum = 0;
  for (std::size_t i = 0; i < first.size(); ++i) sum += std::log(i < split ? first[i] : second[i]);
  return sum;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

bool in_parts_sent(Collective collective) {
  return collective == Collective::reduce_scatter || collective == Collective::all_to_all ||
         collective == Collective::scatter;
}
bool in_parts_received(Collective collective) {
  return collective == Collective::all_gather || collective == Collective::all_to_all ||
         collective == Collective::gather;
}

}  // namespace

std::size_t best_split(const std::vector<double>& first, const std::vector<double>& second) {
  std::size_t best = 0;
  for (std::size_t split = 1; split <= first.size(); ++split) {
    if (cost(first, second, split) < cost(first, second, best)) best = split;
  }
  return best;
}

double gain_of_split(const std::vector<double>& first, const std::vector<double>& second,
                     std::size_t split, std::size_t other) {
  const double difference = cost(first, second, other) - cost(first, second, split);
  return std::exp(difference / static_cast<double>(first.size())) - 1;
}

// One field: up to (or from) which size to do it the one way rather than the other.
struct TuneMeasure::Question {
  const char* field;
  std::vector<Collective> collectives;
  std::vector<std::uint64_t> sizes;  // of one part
  // The field's value that makes every size go the first way (small sizes), and the second.
  std::uint64_t always_first;
  std::uint64_t always_second;
  std::uint64_t unit;    // the field counts so many parts
  bool is_upper_bound;   // sizes up to the value go the first way; else sizes below it
  bool in_pool = false;  // where the buffers are
  std::function<void(CommConfig&, std::uint64_t)> set;
  std::function<std::uint64_t(const CommConfig&)> get;

  std::uint64_t value_of(std::size_t split) const {
    if (is_upper_bound) return split == 0 ? 0 : sizes[split - 1] * unit;
    return split == sizes.size() ? kNever : sizes[split] * unit;
  }
  std::size_t split_of(std::uint64_t value) const {
    std::size_t split = 0;
    while (split < sizes.size() &&
           (is_upper_bound ? sizes[split] * unit <= value : sizes[split] * unit < value)) {
      ++split;
    }
    return split;
  }
};

struct TuneMeasure::Buffers {
  std::vector<std::byte> owned;
  Pool* pool = nullptr;
  Region region;
  std::byte* send = nullptr;
  std::byte* recv = nullptr;

  Buffers() = default;
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers() {
    if (pool != nullptr) (void)pool->free(region);
  }
  Status make(Pool& from, std::uint64_t bytes, bool in_pool) {
    const std::uint64_t whole = (bytes + 4095) / 4096 * 4096;
    if (in_pool) {
      RegionRequest request;
      request.bytes = 2 * whole;
      PENSTOCK_ASSIGN(region, from.allocate(request));
      pool = &from;
      send = from.resolve(region.address, 2 * whole);
    } else {
      owned.resize(2 * whole);
      send = owned.data();
    }
    recv = send + whole;
    std::memset(send, 0, 2 * whole);
    return {};
  }
};

Result<std::unique_ptr<Comm>> TuneMeasure::join(const CommConfig& config) {
  CommConfig named = config;
  named.name = fmt::format("{}.{}", base_.name, comms_++);
  return Comm::join(world_.pool(), named);
}

Result<double> TuneMeasure::slowest(double own) {
  double result = 0;
  Call call;
  call.collective = Collective::all_reduce;
  call.send = &own;
  call.recv = &result;
  call.count = 1;
  call.type = PENSTOCK_F64;
  call.redop = PENSTOCK_MAX;
  PENSTOCK_TRY(agreement_->run(call));
  return result;
}

// Nanoseconds of the slowest rank per call. Every call gets fresh input, and starts together.
Result<double> TuneMeasure::time_calls(Comm& comm, const Call& call, const Buffers& buffers,
                                       std::uint64_t bytes, std::uint64_t calls) {
  Platform& platform = world_.pool().platform();
  std::uint64_t spent = 0;
  const Call barrier;
  for (std::uint64_t i = 0; i < calls; ++i) {
    std::memset(buffers.send, static_cast<int>(i & 1), bytes);
    PENSTOCK_TRY(comm.run(barrier));
    const std::uint64_t began = platform.now_ns();
    PENSTOCK_TRY(comm.run(call));
    spent += platform.now_ns() - began;
  }
  return slowest(static_cast<double>(spent) / static_cast<double>(calls));
}

Result<std::vector<double>> TuneMeasure::times_of(const std::vector<Comm*>& ways,
                                                  Collective collective, std::uint64_t part_bytes,
                                                  const Buffers& buffers) {
  Call call;
  call.collective = collective;
  call.send = buffers.send;
  call.recv = buffers.recv;
  call.type = PENSTOCK_F32;
  call.count = part_bytes / 4;
  const std::uint64_t sent = part_bytes * (in_parts_sent(collective) ? base_.size : 1);
  PENSTOCK_ASSIGN(const double once, time_calls(*ways[0], call, buffers, sent, 3));
  const auto calls = std::clamp<std::uint64_t>(
      static_cast<std::uint64_t>(kSampleNs / std::max(1.0, once)), 1, kMaxCalls);
  std::vector<std::vector<double>> found(ways.size());
  for (std::uint32_t sample = 0; sample < samples_; ++sample) {
    for (std::size_t way = 0; way < ways.size(); ++way) {
      PENSTOCK_ASSIGN(const double ns, time_calls(*ways[way], call, buffers, sent, calls));
      found[way].push_back(std::max(1.0, ns) / 1000);
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& each : found) medians.push_back(median(std::move(each)));
  return medians;
}

Result<std::vector<double>> TuneMeasure::times(const std::vector<Comm*>& ways,
                                               const std::vector<Collective>& collectives,
                                               std::uint64_t part_bytes, bool in_pool) {
  std::vector<double> logs(ways.size(), 0);
  for (const Collective collective : collectives) {
    const bool parts = in_parts_sent(collective) || in_parts_received(collective);
    Buffers buffers;
    PENSTOCK_TRY(buffers.make(world_.pool(), part_bytes * (parts ? base_.size : 1), in_pool));
    PENSTOCK_ASSIGN(const std::vector<double> us, times_of(ways, collective, part_bytes, buffers));
    for (std::size_t way = 0; way < ways.size(); ++way) logs[way] += std::log(us[way]);
  }
  for (double& value : logs) {
    value = std::exp(value / static_cast<double>(collectives.size()));
  }
  return logs;
}

Status TuneMeasure::ask(const Question& question, const Report& report) {
  CommConfig first_way = base_;
  CommConfig second_way = base_;
  question.set(first_way, question.always_first);
  question.set(second_way, question.always_second);
  PENSTOCK_ASSIGN(const auto first_comm, join(first_way));
  PENSTOCK_ASSIGN(const auto second_comm, join(second_way));
  std::vector<double> first, second;
  for (const std::uint64_t size : question.sizes) {
    PENSTOCK_ASSIGN(
        const std::vector<double> us,
        times({first_comm.get(), second_comm.get()}, question.collectives, size, question.in_pool));
    first.push_back(us[0]);
    second.push_back(us[1]);
  }
  TuneFinding finding{question.field, question.get(base_), question.get(base_), 0};
  const std::size_t built_in = question.split_of(finding.built_in);
  const std::size_t best = best_split(first, second);
  const double gain = gain_of_split(first, second, best, built_in);
  if (best != built_in && gain >= kLeastGain) {
    finding.value = question.value_of(best);
    finding.gain = gain;
    question.set(base_, finding.value);
  }
  report(finding);
  return {};
}

// In how many chunks a large part moves.
Status TuneMeasure::ask_chunks(const Report& report) {
  constexpr std::uint32_t kCandidates[] = {1, 2, 4, 8};
  std::vector<std::unique_ptr<Comm>> comms;
  std::vector<Comm*> ways;
  std::vector<double> logs;
  for (const std::uint32_t chunks : kCandidates) {
    CommConfig config = base_;
    config.tuning.chunks = chunks;
    PENSTOCK_ASSIGN(auto comm, join(config));
    ways.push_back(comm.get());
    comms.push_back(std::move(comm));
    logs.push_back(0);
  }
  constexpr std::uint64_t kSizes[] = {256 * kKiB, kMiB};
  for (const std::uint64_t size : kSizes) {
    PENSTOCK_ASSIGN(
        const std::vector<double> us,
        times(ways, {Collective::broadcast, Collective::all_gather, Collective::all_reduce}, size,
              false));
    for (std::size_t way = 0; way < us.size(); ++way) logs[way] += std::log(us[way]);
  }
  TuneFinding finding{"chunks", base_.tuning.chunks, base_.tuning.chunks, 0};
  const auto best =
      static_cast<std::size_t>(std::min_element(logs.begin(), logs.end()) - logs.begin());
  for (std::size_t way = 0; way < ways.size(); ++way) {
    if (kCandidates[way] != base_.tuning.chunks) continue;
    const double gain = std::exp((logs[way] - logs[best]) / std::size(kSizes)) - 1;
    if (gain < kLeastGain) break;
    finding.value = kCandidates[best];
    finding.gain = gain;
    base_.tuning.chunks = kCandidates[best];
    break;
  }
  report(finding);
  return {};
}

Result<TuningEntry> TuneMeasure::measure(const Report& report) {
  base_.tuning = {};
  base_.local = {};
  PENSTOCK_ASSIGN(agreement_, join(base_));
  const auto tuning_field = [](std::uint32_t Tuning::*field) {
    return std::pair(std::function([field](CommConfig& config, std::uint64_t value) {
                       config.tuning.*field = static_cast<std::uint32_t>(std::min(value, kNever));
                     }),
                     std::function([field](const CommConfig& config) {
                       return std::uint64_t{config.tuning.*field};
                     }));
  };
  const auto local_field = [](std::uint64_t LocalTuning::*field) {
    return std::pair(
        std::function(
            [field](CommConfig& config, std::uint64_t value) { config.local.*field = value; }),
        std::function([field](const CommConfig& config) { return config.local.*field; }));
  };
  using enum Collective;
  const auto inlined = tuning_field(&Tuning::inline_bytes);
  PENSTOCK_TRY(ask({"inline_bytes",
                    {all_reduce, broadcast, all_gather},
                    {64, 256, 512, kKiB, 2 * kKiB, 4 * kKiB},
                    64 * kKiB,
                    0,
                    1,
                    true,
                    false,
                    inlined.first,
                    inlined.second},
                   report));
  const auto one_shot = tuning_field(&Tuning::one_shot_bytes);
  PENSTOCK_TRY(ask({"one_shot_bytes",
                    {all_reduce},
                    {4 * kKiB, 8 * kKiB, 16 * kKiB, 32 * kKiB, 64 * kKiB, 128 * kKiB},
                    kNever,
                    0,
                    base_.size,
                    true,
                    false,
                    one_shot.first,
                    one_shot.second},
                   report));
  if (base_.size >= 3) {
    const auto sharded = tuning_field(&Tuning::sharded_bytes);
    PENSTOCK_TRY(ask({"sharded_bytes",
                      {reduce},
                      {4 * kKiB, 16 * kKiB, 64 * kKiB, 256 * kKiB},
                      kNever,
                      64,
                      1,
                      false,
                      false,
                      sharded.first,
                      sharded.second},
                     report));
  }
  PENSTOCK_TRY(ask_chunks(report));
  if (base_.tuning.chunks > 1) {
    const auto chunk = tuning_field(&Tuning::chunk_bytes);
    PENSTOCK_TRY(ask({"chunk_bytes",
                      {broadcast, all_gather, all_reduce},
                      {16 * kKiB, 64 * kKiB, 256 * kKiB, kMiB},
                      kNever,
                      64,
                      1,
                      false,
                      false,
                      chunk.first,
                      chunk.second},
                     report));
  }
  const auto expose = local_field(&LocalTuning::expose_bytes);
  PENSTOCK_TRY(ask({"expose_bytes",
                    {all_reduce, broadcast, all_gather},
                    {kKiB, 4 * kKiB, 16 * kKiB, 64 * kKiB},
                    kNever,
                    0,
                    1,
                    false,
                    true,
                    expose.first,
                    expose.second},
                   report));
  const auto stream = local_field(&LocalTuning::stream_bytes);
  PENSTOCK_TRY(ask({"stream_bytes",
                    {all_reduce, broadcast},
                    {kMiB, 4 * kMiB, 16 * kMiB},
                    std::uint64_t{1} << 60,
                    0,
                    1,
                    false,
                    false,
                    stream.first,
                    stream.second},
                   report));
  TuningEntry entry;
  entry.machine = this_machine(world_.pool().platform(), world_.pool().coherence());
  entry.ranks = base_.size;
  entry.tuning = base_.tuning;
  entry.local = base_.local;
  return entry;
}

}  // namespace penstock::tool
