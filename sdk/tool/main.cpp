// The command-line tool: parses the command line and runs one subcommand.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "command.h"
#include "penstock/base/env.h"

namespace penstock::tool {
namespace {

// "penstock pool create" for the subcommand that was being parsed.
std::string chosen_command(const CLI::App& app) {
  std::string name = "penstock";
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    name += " " + at->get_name();
  }
  return name;
}

// The ranks of a launcher all have the same command line, so rank 0 speaks for them.
bool is_silent_rank() { return env::is_set(env::Id::rank) && env::text(env::Id::rank) != "0"; }

// The word where a subcommand should stand, if there is one; CLI11 only says that one is required.
std::string unknown_subcommand(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* at = &app;
  for (const std::string& word : arguments) {
    if (at->get_subcommands([](const CLI::App*) { return true; }).empty()) return "";
    const auto named = [&word](const CLI::App* sub) { return sub->get_name() == word; };
    const std::vector<const CLI::App*> found = at->get_subcommands(named);
    const CLI::App* const next = found.empty() ? nullptr : found.front();
    if (next == nullptr) return word.empty() || word[0] == '-' ? "" : word;
    at = next;
  }
  return "";
}

int usage_error(const CLI::App& app, const std::vector<std::string>& arguments,
                const CLI::ParseError& problem) {
  if (is_silent_rank()) return kExitUsage;
  const std::string command = chosen_command(app);
  std::string what = command == "penstock" ? "usage" : command.substr(std::strlen("penstock "));
  std::string why = problem.what();
  const std::string unknown = unknown_subcommand(app, arguments);
  if (!unknown.empty()) why = "there is no subcommand '" + unknown + "'";
  for (char& c : why) {
    if (c == '\n') c = ' ';
  }
  std::fprintf(stderr, "penstock: %s: %s; see `%s --help`\n", what.c_str(), why.c_str(),
               command.c_str());
  return kExitUsage;
}

int run(int argc, char** argv) {
  CLI::App app("Collectives and scheduling decisions over a CXL memory pool", "penstock");
  app.require_subcommand(1);
  app.set_version_flag("--version", "penstock " PENSTOCK_VERSION);
  app.footer("`penstock SUBCOMMAND --help` shows the options with an example.");
  Context context;
  add_info(app, context);
  add_pool(app, context);
  add_run(app, context);
  add_perf(app, context);
  add_plan(app, context);
  add_replay(app, context);
  add_explain(app, context);
  add_extender(app, context);
  add_scheduler(app, context);
  add_conformance(app, context);
  add_vectors(app, context);
  add_tune(app, context);
  add_trace(app, context);
  add_version(app, context);

  std::vector<std::string> arguments(argv + 1, argv + argc);
  // What follows `--` of `penstock run` is another program's command line.
  if (!arguments.empty() && arguments[0] == "run") {
    for (std::size_t i = 1; i < arguments.size(); ++i) {
      if (arguments[i] != "--") continue;
      context.rank_command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                  arguments.end());
      arguments.resize(i);
      break;
    }
  }
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& problem) {
    return usage_error(app, arguments, problem);
  }
  return context.action();
}

}  // namespace

int fail(const std::string& what, const Status& status) {
  std::fprintf(stderr, "penstock: %s: %s\n", what.c_str(), status.message().c_str());
  switch (status.code()) {
    case Code::deadline_exceeded:
    case Code::cancelled:
    case Code::peer_dead:
    case Code::revoked:
    case Code::mismatch:
    case Code::internal:
      return kExitWrong;
    default:
      return kExitUsage;
  }
}

int fail_usage(const std::string& what, const std::string& message) {
  if (is_silent_rank()) return kExitUsage;
  std::fprintf(stderr, "penstock: %s: %s\n", what.c_str(), message.c_str());
  return kExitUsage;
}

void add_version(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("version", "Print the version");
  command->footer("Example: penstock version");
  command->callback([&context] {
    context.action = [] {
      std::puts("penstock " PENSTOCK_VERSION);
      return kExitOk;
    };
  });
}

}  // namespace penstock::tool

int main(int argc, char** argv) {
  try {
    return penstock::tool::run(argc, argv);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "penstock: internal error: %s\n", problem.what());
    return penstock::tool::kExitUsage;
  }
}
