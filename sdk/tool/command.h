// What the subcommands share: how they are added, how they end, and what they say when they fail.
//
// Exit status: 0 fine; 1 what was asked about is wrong (a check failed, a result is wrong, a rank
// died); 2 bad input or usage. A failure is one line on standard error:
// "penstock: <what>: <why>; <what would be right>".
#ifndef PENSTOCK_SDK_TOOL_COMMAND_H_
#define PENSTOCK_SDK_TOOL_COMMAND_H_

#include <functional>
#include <string>
#include <vector>

#include "penstock/base/status.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own name
class App;
}

namespace penstock::tool {

inline constexpr int kExitOk = 0;
inline constexpr int kExitWrong = 1;
inline constexpr int kExitUsage = 2;

// Filled while the command line is parsed, and called afterwards, once. Returns the exit status.
using Action = std::function<int()>;

struct Context {
  Action action;
  std::vector<std::string> rank_command;  // what stood behind `--` of `penstock run`
};

// Each adds one subcommand to `app`; when it is chosen it sets context.action. Both outlive the
// parsing.
void add_version(CLI::App& app, Context& context);
void add_info(CLI::App& app, Context& context);
void add_pool(CLI::App& app, Context& context);
void add_run(CLI::App& app, Context& context);
void add_plan(CLI::App& app, Context& context);
void add_perf(CLI::App& app, Context& context);
void add_replay(CLI::App& app, Context& context);
void add_explain(CLI::App& app, Context& context);
void add_extender(CLI::App& app, Context& context);
void add_scheduler(CLI::App& app, Context& context);
void add_conformance(CLI::App& app, Context& context);
void add_tune(CLI::App& app, Context& context);
void add_trace(CLI::App& app, Context& context);
void add_vectors(CLI::App& app, Context& context);

// Prints "penstock: what: message" and returns the exit status that the code means: 1 for what went
// wrong while running (a peer died, a deadline passed), else 2.
int fail(const std::string& what, const Status& status);
// For usage errors that are found after parsing.
int fail_usage(const std::string& what, const std::string& message);

}  // namespace penstock::tool
#endif
