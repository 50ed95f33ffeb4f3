// penstock vectors: files of test vectors for kube-scheduler's arithmetic.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "command.h"
#include "penstock/engine/engine.h"
#include "penstock/sched/vectors.h"

namespace penstock::tool {
namespace {

struct VectorsChoice {
  std::vector<std::string> files;
  std::string engine = "all";
  bool compat = false;
  bool json = false;
};

// The engines of the host that place tasks, which is what "all" means here.
std::vector<std::string> host_engines() {
  std::vector<std::string> names;
  for (const EngineInfo& engine : list_engines()) {
    if (engine.available && (engine.name == "scalar" || engine.name == "simd")) {
      names.push_back(engine.name);
    }
  }
  return names;
}

int run_files(const VectorsChoice& choice) {
  VectorsOptions options;
  options.compat = choice.compat;
  options.engines = choice.engine == "all" ? host_engines() : std::vector{choice.engine};
  std::vector<VectorResult> all;
  for (const std::string& file : choice.files) {
    auto results = run_vectors(file, options);
    if (!results.ok()) return fail("vectors", results.status());
    all.insert(all.end(), results.value().begin(), results.value().end());
  }
  const std::string text =
      choice.json ? vectors_json(all, options) + "\n" : vectors_text(all, options);
  std::fputs(text.c_str(), stdout);
  return count_vectors(all).failed == 0 ? kExitOk : kExitWrong;
}

}  // namespace

void add_vectors(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("vectors", "Hold decisions against test vectors of kube-scheduler");
  command->footer(
      "Example: penstock vectors node_affinity.json taint_toleration.json --engine simd\n"
      "         penstock vectors *.json --compat\n"
      "penstock-vectors(1) has the schema of a file.");
  auto choice = std::make_shared<VectorsChoice>();
  command->add_option("FILE", choice->files, "Files of vectors")->required();
  command
      ->add_option("--engine", choice->engine,
                   "Engine, by name; all: scalar and simd, which have to agree")
      ->type_name("NAME")
      ->default_str("all");
  command->add_flag("--compat", choice->compat,
                    "Also cases of feature gates that v1.34 lacks, and of sampling nodes");
  command->add_flag("--json", choice->json, "Print JSON, with every case");
  command->callback(
      [&context, choice] { context.action = [choice] { return run_files(*choice); }; });
}

}  // namespace penstock::tool
