// penstock trace: timelines of a job.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "command.h"
#include "trace_merge.h"

namespace penstock::tool {
namespace {

struct MergeOptions {
  std::string file;
  std::string out;
  bool remove = false;
};

int merge(const MergeOptions& options) {
  const std::string out = options.out.empty() ? options.file : options.out;
  const auto merged = merge_trace(options.file, out);
  if (!merged.ok()) return fail("trace merge", merged.status());
  for (const std::string& finding : merged.value().findings) {
    std::fprintf(stderr, "penstock: trace merge: %s\n", finding.c_str());
  }
  fmt::print("{}: {} slices of {} {}, {} dropped; ui.perfetto.dev opens it\n", out,
             merged.value().slices, merged.value().parts,
             merged.value().parts == 1 ? "rank" : "ranks", merged.value().dropped);
  if (options.remove) remove_parts(options.file);
  return merged.value().findings.empty() ? kExitOk : kExitWrong;
}

}  // namespace

void add_trace(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("trace", "Timelines of a job");
  command->require_subcommand(1);
  command->footer("Example: penstock trace merge timeline.json");
  CLI::App* join = command->add_subcommand("merge", "Join the parts that the ranks wrote");
  join->footer(
      "Ranks that run with PENSTOCK_TRACE=FILE write FILE.0, FILE.1 and so on when they end.\n"
      "Exit status 1 if a rank left no part, or one that was cut; the others are joined.\n"
      "Example: penstock trace merge timeline.json -o all.json");
  auto options = std::make_shared<MergeOptions>();
  join->add_option("FILE", options->file, "What PENSTOCK_TRACE named")->required();
  join->add_option("-o,--output", options->out, "Where the whole goes")
      ->type_name("FILE")
      ->default_str("FILE");
  join->add_flag("--remove", options->remove, "Remove the parts afterwards");
  join->callback([&context, options] { context.action = [options] { return merge(*options); }; });
}

}  // namespace penstock::tool
