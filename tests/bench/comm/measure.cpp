#include "measure.h"

#include <dirent.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace penstock::bench {
namespace {

// Nanoseconds for which this process's threads could have run but had no CPU.
double waited_for_cpu_ns() {
  double total = 0;
  DIR* const tasks = ::opendir("/proc/self/task");
  if (tasks == nullptr) return 0;
  while (const dirent* entry = ::readdir(tasks)) {
    if (entry->d_name[0] == '.') continue;
    const std::string path = std::string("/proc/self/task/") + entry->d_name + "/schedstat";
    std::FILE* const file = std::fopen(path.c_str(), "r");
    if (file == nullptr) continue;
    unsigned long long ran = 0;
    unsigned long long waited = 0;
    if (std::fscanf(file, "%llu %llu", &ran, &waited) == 2) total += static_cast<double>(waited);
    std::fclose(file);
  }
  ::closedir(tasks);
  return total;
}

double cpu_ns() {
  rusage usage;
  ::getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_usec) * 1e3;
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

// Reads every line.
void read_all(const void* data, std::size_t bytes) {
  unsigned char sum = 0;
  const auto* const from = static_cast<const unsigned char*>(data);
  for (std::size_t at = 0; at < bytes; at += 64) sum = static_cast<unsigned char>(sum + from[at]);
  asm volatile("" : : "r"(sum));  // so that the reads are not left out
}

struct Timed {
  double wall_ns = 0;   // of the whole loop
  double calls_ns = 0;  // of the calls alone, together
};

Timed loop(Peer& peer, Control& control, const Problem& problem, const Buffers& buffers,
           double empty_ticks, std::uint64_t calls) {
  const bool in_place = problem.collective == Collective::broadcast;
  void* const input = in_place ? buffers.recv : buffers.send;
  const std::size_t input_bytes = !in_place          ? problem.send_bytes(peer.rank())
                                  : peer.rank() == 0 ? problem.part_bytes()
                                                     : 0;
  const std::size_t output_bytes = problem.recv_bytes(peer.rank());
  double spent = 0;
  const std::uint64_t began = ticks();
  for (std::uint64_t call = 0; call < calls; ++call) {
    if (input_bytes > 0) std::memcpy(input, buffers.original, input_bytes);
    const std::uint64_t start = control.start_together();
    peer.run();
    spent += static_cast<double>(ticks() - start);
    read_all(buffers.recv, output_bytes);
  }
  const double per_ns = ticks_per_ns();
  const double calls_ns = (spent - empty_ticks * static_cast<double>(calls)) / per_ns;
  return {static_cast<double>(ticks() - began) / per_ns, std::max(0.0, calls_ns)};
}

// How many calls fill a sample. The same on every rank.
std::uint64_t calls_per_sample(Peer& peer, Control& control, const Problem& problem,
                               const Buffers& buffers, double sample_ms) {
  double per_call = 0;
  for (std::uint64_t calls = 1; calls <= 64; calls *= 8) {
    per_call = control.max(loop(peer, control, problem, buffers, 0, calls).wall_ns) /
               static_cast<double>(calls);
    if (per_call * static_cast<double>(calls) > sample_ms * 5e5) break;
  }
  return static_cast<std::uint64_t>(std::clamp(sample_ms * 1e6 / per_call, 1.0, 20000.0));
}

Placement placement_of(double one_way_ns) {
  return one_way_ns > kFarNs ? Placement::far : Placement::near;
}

class Sampler {
 public:
  Sampler(Peer& peer, Control& control, const Problem& problem, const Buffers& buffers,
          double empty_ticks, const MeasureOptions& options)
      : peer_(peer),
        control_(control),
        problem_(problem),
        buffers_(buffers),
        empty_ticks_(empty_ticks),
        options_(options) {}

  std::vector<Sample> run() {
    calls_ = calls_per_sample(peer_, control_, problem_, buffers_, options_.sample_ms);
    const std::uint64_t began = ticks();
    double place = control_.probe(options_.pinned);
    std::vector<Sample> samples;
    std::size_t tries = 0;
    while (!enough(samples, tries, static_cast<double>(ticks() - began) / ticks_per_ns() / 1e6)) {
      ++tries;
      const Sample sample = take(place);
      // With more ranks than CPUs the probe has to wait until the others sleep; it is dear.
      const bool probes = !control_.oversubscribed() || tries % 4 == 0;
      const double after = probes ? control_.probe(options_.pinned) : place;
      if (placement_of(after) == placement_of(place)) samples.push_back(sample);
      place = after;
    }
    return samples;
  }

 private:
  Sample take(double place) {
    const double waited_before = waited_for_cpu_ns();
    const double cpu_before = cpu_ns();
    control_.barrier();
    const Timed timed = loop(peer_, control_, problem_, buffers_, empty_ticks_, calls_);
    const double cpu = cpu_ns() - cpu_before;
    const double waited = waited_for_cpu_ns() - waited_before;
    const std::vector<double> all = control_.exchange({timed.calls_ns, timed.wall_ns, waited, cpu});
    double slowest = 0, wall = 0, most_waited = 0, all_cpu = 0;
    for (std::size_t at = 0; at < all.size(); at += 4) {
      slowest = std::max(slowest, all[at]);
      wall = std::max(wall, all[at + 1]);
      most_waited = std::max(most_waited, all[at + 2]);
      all_cpu += all[at + 3];
    }
    Sample sample;
    sample.us = slowest / static_cast<double>(calls_) / 1e3;
    sample.one_way_ns = place;
    sample.placement = placement_of(place);
    if (!control_.oversubscribed()) {
      const double limit = peer_.has_helpers() ? 0.1 : options_.max_waited;
      sample.clean = most_waited <= limit * wall;
    } else {
      const auto cpus = static_cast<double>(allowed_cpus().size());
      sample.clean = peer_.has_helpers() || all_cpu > 0.85 * cpus * wall;
    }
    return sample;
  }

  bool enough(const std::vector<Sample>& samples, std::size_t tries, double spent_ms) {
    const auto wanted = static_cast<std::ptrdiff_t>(options_.samples);
    bool done = false;
    for (const Placement placement : {Placement::near, Placement::far}) {
      done = done || std::count_if(samples.begin(), samples.end(), [&](const Sample& sample) {
                       return sample.clean && sample.placement == placement;
                     }) >= wanted;
    }
    const bool late = control_.exchange({spent_ms})[0] > options_.point_ms;
    return done || tries >= 4 * static_cast<std::size_t>(options_.samples) ||
           (late && samples.size() >= 3) || (late && tries >= 12);
  }

  Peer& peer_;
  Control& control_;
  const Problem& problem_;
  const Buffers& buffers_;
  const double empty_ticks_;
  const MeasureOptions& options_;
  std::uint64_t calls_ = 1;
};

double quantile(const std::vector<double>& sorted, double q) {
  return sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1) + 0.5)];
}

}  // namespace

std::vector<Row> rows_of(const std::vector<Sample>& samples) {
  std::vector<Row> rows;
  for (const Placement placement : {Placement::near, Placement::far}) {
    Row row;
    std::vector<double> all, clean;
    for (const Sample& sample : samples) {
      if (sample.placement != placement) continue;
      all.push_back(sample.us);
      row.one_way_ns += sample.one_way_ns;
      if (sample.clean) clean.push_back(sample.us);
    }
    if (all.empty() || (all.size() < 3 && samples.size() - all.size() >= all.size())) continue;
    row.one_way_ns /= static_cast<double>(all.size());
    row.placement = placement;
    row.samples = all.size();
    row.clean = clean.size();
    std::vector<double>& counted = clean.size() >= 3 ? clean : all;
    std::sort(counted.begin(), counted.end());
    row.us = quantile(counted, 0.5);
    row.us_min = counted.front();
    row.us_p25 = quantile(counted, 0.25);
    row.us_p75 = quantile(counted, 0.75);
    rows.push_back(row);
  }
  return rows;
}

double empty_call_ticks(Control& control) {
  constexpr int kCalls = 501;
  std::vector<double> all;
  for (int call = 0; call < kCalls; ++call) {
    const std::uint64_t start = control.start_together();
    all.push_back(static_cast<double>(ticks() - start));
  }
  std::sort(all.begin(), all.end());
  return all[kCalls / 2];
}

std::vector<Row> measure(Peer& peer, Control& control, const Problem& problem,
                         const Buffers& buffers, double empty_ticks,
                         const MeasureOptions& options) {
  std::vector<Row> rows;
  fill(problem, peer.rank(), buffers.send, buffers.recv);
  const bool in_place = problem.collective == Collective::broadcast;
  const std::size_t input_bytes =
      in_place ? problem.recv_bytes(peer.rank()) : problem.send_bytes(peer.rank());
  std::memcpy(buffers.original, in_place ? buffers.recv : buffers.send, input_bytes);
  const std::vector<std::string> variants = peer.prepare(problem, buffers.send, buffers.recv);
  for (std::size_t variant = 0; variant < variants.size(); ++variant) {
    peer.select(variant);
    fill(problem, peer.rank(), buffers.send, buffers.recv);
    control.barrier();
    peer.run();
    bool right = is_right(problem, peer.rank(), buffers.recv);
    const std::vector<Sample> samples =
        Sampler(peer, control, problem, buffers, empty_ticks, options).run();
    right = right && is_right(problem, peer.rank(), buffers.recv);
    right = control.max(right ? 0 : 1) == 0;
    if (peer.rank() != 0) continue;
    for (Row& row : rows_of(samples)) {
      row.variant = variants[variant];
      row.right = right;
      rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace penstock::bench
