// penstock explain: why a pod goes where it goes, or nowhere.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "penstock/sched/explain.h"
#include "penstock/sched/kubernetes.h"

namespace penstock::tool {
namespace {

using nlohmann::ordered_json;

struct ExplainOptions {
  std::string cluster;
  std::string pod;
  bool all_pending = false;
  std::string policy = "default";
  std::string engine = "auto";
  bool json = false;
};

int run_explain(const ExplainOptions& options) {
  const auto cluster = read_kubernetes(options.cluster);
  if (!cluster.ok()) return fail("explain", cluster.status());
  std::vector<std::string> pods;
  if (!options.pod.empty()) pods.push_back(options.pod);
  if (options.all_pending) {
    for (const KubernetesPod& pod : cluster.value().pods) {
      if (pod.node_name.empty()) pods.push_back(pod.name);
    }
  }
  ordered_json all = ordered_json::array();
  std::string text;
  for (const std::string& pod : pods) {
    const auto explanation = explain_pod(cluster.value(), pod, options.policy, options.engine);
    if (!explanation.ok()) return fail("explain", explanation.status());
    if (options.json) {
      all.push_back(ordered_json::parse(explanation_json(explanation.value())));
    } else {
      if (!text.empty()) text += "\n";
      text += explanation_text(explanation.value());
    }
  }
  if (options.json) {
    std::puts((options.all_pending ? all : all.front()).dump(2).c_str());
  } else {
    std::fputs(text.c_str(), stdout);
    if (pods.empty()) std::puts("no pod is pending");
  }
  return kExitOk;
}

}  // namespace

void add_explain(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("explain", "Explain where a Kubernetes pod goes: filters and scores");
  command->footer(
      "Example: kubectl get nodes,pods -A -o json > cluster.json\n"
      "         penstock explain --cluster cluster.json --pod default/web");
  auto options = std::make_shared<ExplainOptions>();
  command
      ->add_option("--cluster", options->cluster, "What kubectl get nodes,pods -A -o json prints")
      ->type_name("FILE")
      ->required();
  CLI::Option* pod = command->add_option("--pod", options->pod, "namespace/name, or a unique name");
  pod->type_name("POD");
  CLI::Option* pending =
      command->add_flag("--all-pending", options->all_pending, "Every pod that has no node yet");
  pod->excludes(pending);
  command
      ->add_option("--policy", options->policy,
                   "Policy, or a file with a KubeSchedulerConfiguration")
      ->type_name("NAME|FILE")
      ->default_str("default");
  command->add_option("--engine", options->engine, "Engine, by name")
      ->type_name("NAME")
      ->default_str("auto");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([&context, options] {
    if (options->pod.empty() && !options->all_pending) {
      throw CLI::RequiredError("--pod or --all-pending");
    }
    context.action = [options] { return run_explain(*options); };
  });
}

}  // namespace penstock::tool
