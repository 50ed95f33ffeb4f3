#include "table_scenarios.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>

#include "penstock/base/platform.h"
#include "penstock/base/status.h"
#include "penstock/engine/select_conformance.h"
#include "penstock/sched/cluster.h"
#include "penstock/sched/gang.h"
#include "penstock/sched/preemption.h"

namespace penstock::bench {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::size_t kGang = 32;
constexpr std::size_t kBetweenChanges = 64;
constexpr std::uint32_t kMostClusterNodes = 10000;

template <typename T>
T must(Result<T> result) {
  PENSTOCK_CHECK(result.ok(), "{}", result.status().to_string());
  return std::move(result).value();
}
void must(const Status& status) { PENSTOCK_CHECK(status.ok(), "{}", status.to_string()); }

NodeSpec make_node(std::uint32_t number, SeededRandom& random) {
  NodeSpec node;
  node.facts.name = fmt::format("node-{}", number);
  const std::int64_t cores = 32 * random.between(1, 3);
  node.allocatable = {cores * 1000, cores * 4 * kGiB, 500 * kGiB, 250};
  return node;
}

std::unique_ptr<NodeTable> make_table(std::uint32_t nodes, SeededRandom& random) {
  NodeTableConfig config;
  config.capacity = nodes + 64;
  config.resources = {
      {"cpu", "milli"}, {"memory", "bytes"}, {"ephemeral-storage", "bytes"}, {"pods", ""}};
  config.bit_columns = 64;
  auto table = must(NodeTable::create(nullptr, must(make_engine("simd,scalar")), config));
  std::vector<NodeSpec> specs;
  for (std::uint32_t i = 0; i < nodes; i++) specs.push_back(make_node(i, random));
  must(table->add_nodes(specs));
  return table;
}

Task make_plain_task(std::int64_t milli) {
  Task task;
  task.name = "task";
  const std::int64_t request[] = {milli, milli << 20, 0, 1};
  std::copy_n(request, 4, task.record.request);
  std::copy_n(request, 4, task.record.scored_request);
  task.record.n_terms = 1;
  task.record.terms[0] = {PENSTOCK_BIT_UNSCHEDULABLE,
                          static_cast<std::uint8_t>(TermGroup::unschedulable), 1, 0};
  return task;
}

// Adds the line of `total` decisions since `begin`.
void keep(std::vector<Line>* lines, std::uint32_t nodes, const char* scenario, const char* how,
          std::uint64_t total, std::uint64_t spent_ns, std::vector<std::uint32_t> times,
          const std::string& note) {
  Line line;
  line.nodes = nodes;
  line.scenario = scenario;
  line.how = how;
  line.decisions = total;
  line.per_second = static_cast<double>(total) / (static_cast<double>(spent_ns) / 1e9);
  line.note = note;
  take_percentiles(&times, &line);
  lines->push_back(std::move(line));
  fmt::print(stderr, "{}: {:.0f}/s\n", scenario, lines->back().per_second);
}

void run_gangs(const Options& options, std::uint32_t nodes, bool come_together,
               std::vector<Line>* lines) {
  const char* const name = come_together ? "gangs of 32" : "gangs of 32, taken back";
  if (!wanted(options, name)) return;
  SeededRandom random(1);
  const auto table = make_table(nodes, random);
  const Program program = must(compile_policy(must(find_policy("default")), *table, {}));
  std::vector<Task> gang(kGang, make_plain_task(100));
  if (!come_together) gang.back().record.request[0] = 1'000'000'000;
  const std::uint64_t gangs = std::min<std::uint64_t>(options.tasks / kGang, 3000);
  std::vector<std::uint32_t> times;
  const std::uint64_t begin = thread_ns();
  for (std::uint64_t i = 0; i < gangs; i++) {
    const std::uint64_t before = Platform::host().now_ns();
    const GangResult result = must(place_gang(*table, program.record, gang));
    times.push_back(static_cast<std::uint32_t>(Platform::host().now_ns() - before));
    PENSTOCK_CHECK(result.placed == come_together, "a gang of the benchmark");
  }
  keep(lines, nodes, name, "incremental", gangs * kGang, thread_ns() - begin, std::move(times),
       "times of a gang");
}

void run_churn(const Options& options, std::uint32_t nodes, std::vector<Line>* lines) {
  const char* const name = "nodes change every 64 tasks";
  if (!wanted(options, name)) return;
  SeededRandom random(1);
  const auto table = make_table(nodes, random);
  const Program program = must(compile_policy(must(find_policy("default")), *table, {}));
  std::vector<penstock_task> tasks;
  for (std::size_t i = 0; i < kBetweenChanges; i++)
    tasks.push_back(make_plain_task(100 + 50 * static_cast<std::int64_t>(i % 8)).record);
  std::vector<penstock_result> results(tasks.size());
  std::vector<std::uint32_t> times;
  const std::uint64_t rounds = options.tasks / kBetweenChanges;
  const std::uint64_t begin = thread_ns();
  for (std::uint64_t round = 0; round < rounds; round++) {
    const std::uint64_t before = Platform::host().now_ns();
    must(table->select(program.record, tasks, true, results.data()));
    times.push_back(static_cast<std::uint32_t>(Platform::host().now_ns() - before));
    std::uint32_t row = static_cast<std::uint32_t>(random.below(table->rows()));
    while (!table->holds_node(row)) row = static_cast<std::uint32_t>(random.below(table->rows()));
    if (round % 4 == 0) {
      must(table->remove_node(row));
    } else if (round % 4 == 1) {
      const NodeSpec node = make_node(nodes + static_cast<std::uint32_t>(round), random);
      must(table->add_nodes({&node, 1}));
    } else if (round % 4 == 2) {
      must(table->set_unschedulable(row, random.one_in(2)));
    } else {
      const penstock_update update = {PENSTOCK_UPDATE_ALLOCATABLE,  PENSTOCK_UPDATE_SET, 0, row, 0,
                                      random.between(32, 96) * 1000};
      must(table->update({&update, 1}));
    }
  }
  keep(lines, nodes, name, "incremental", rounds * kBetweenChanges, thread_ns() - begin,
       std::move(times), "8 classes; times of 64 tasks; the changes are in the rate");
}

std::unique_ptr<Cluster> make_pod_cluster(std::uint32_t nodes) {
  ClusterConfig config;
  config.capacity = nodes;
  auto cluster = must(Cluster::create(config));
  SeededRandom random(1);
  for (std::uint32_t i = 0; i < nodes; i++) {
    KubernetesNode node;
    node.facts.name = fmt::format("node-{}", i);
    node.facts.labels = {{"kubernetes.io/hostname", node.facts.name},
                         {"topology.kubernetes.io/zone", fmt::format("zone-{}", i % 10)}};
    const std::int64_t cores = 32 * random.between(1, 3);
    node.allocatable = {{"cpu", cores * 1000}, {"memory", cores * 4 * kGiB}, {"pods", 250}};
    must(cluster->put_node(node));
  }
  return cluster;
}

KubernetesPod make_pod(std::uint64_t number, std::int64_t milli, std::int32_t priority) {
  KubernetesPod pod;
  pod.name = fmt::format("ns/pod-{}", number);
  pod.namespace_name = "ns";
  pod.labels = {{"app", "web"}};
  pod.priority = priority;
  pod.request = pod.scored_request = {{"cpu", milli}, {"memory", milli << 20}};
  return pod;
}

void run_pods(const Options& options, std::uint32_t nodes, std::vector<Line>* lines) {
  const char* const name = "pods through Cluster";
  if (!wanted(options, name)) return;
  const auto cluster = make_pod_cluster(nodes);
  const std::uint64_t total = std::min<std::uint64_t>(options.tasks, 20000);
  std::vector<std::uint32_t> times;
  const std::uint64_t begin = thread_ns();
  for (std::uint64_t i = 0; i < total; i++) {
    const KubernetesPod pod = make_pod(i, 100 + 50 * static_cast<std::int64_t>(i % 8), 0);
    const std::uint64_t before = Platform::host().now_ns();
    const PodDecision decision = must(cluster->decide(pod, true));
    times.push_back(static_cast<std::uint32_t>(Platform::host().now_ns() - before));
    PENSTOCK_CHECK(!decision.node.empty(), "{}", decision.reason);
  }
  keep(lines, nodes, name, cluster->engine_name().c_str(), total, thread_ns() - begin,
       std::move(times), "8 sizes of pods; names, labels and the pod's record in the rate");
}

void run_preemption(const Options& options, std::uint32_t nodes, std::vector<Line>* lines) {
  const char* const name = "preemption, all nodes full";
  if (!wanted(options, name)) return;
  const auto cluster = make_pod_cluster(nodes);
  SeededRandom random(2);
  std::uint64_t number = 0;
  for (const std::string& node : cluster->node_names()) {
    const std::int64_t cores = cluster->find_node(node)->allocatable.at("cpu") / 1000;
    for (std::int64_t i = 0; i < 8; i++) {
      KubernetesPod pod =
          make_pod(number++, cores * 125, static_cast<std::int32_t>(random.below(5)));
      pod.node_name = node;
      pod.start_time_s = random.between(1, 1000000);
      must(cluster->put_pod(pod));
    }
  }
  const std::uint64_t total = options.repeat;
  std::vector<std::uint32_t> times;
  const std::uint64_t begin = thread_ns();
  for (std::uint64_t i = 0; i < total; i++) {
    const std::uint64_t before = Platform::host().now_ns();
    const Preemption made = must(preempt(*cluster, make_pod(number + i, 9000, 10)));
    times.push_back(static_cast<std::uint32_t>(Platform::host().now_ns() - before));
    PENSTOCK_CHECK(!made.node.empty() && made.candidates == nodes, "{}", made.reason);
  }
  keep(lines, nodes, name, "all nodes", total, thread_ns() - begin, std::move(times),
       "8 pods on each node");
}

}  // namespace

void run_table_scenarios(const Options& options, std::uint32_t nodes, std::vector<Line>* lines) {
  run_gangs(options, nodes, true, lines);
  run_gangs(options, nodes, false, lines);
  run_churn(options, nodes, lines);
}

void run_cluster_scenarios(const Options& options, std::uint32_t nodes, std::vector<Line>* lines) {
  if (nodes > kMostClusterNodes) return;
  run_pods(options, nodes, lines);
  run_preemption(options, nodes, lines);
}

}  // namespace penstock::bench
