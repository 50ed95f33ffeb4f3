// penstock extender and penstock scheduler of a build that lacks their libraries.
#include <CLI/CLI.hpp>
#include <string>

#include "command.h"

namespace penstock::tool {
namespace {

void add_missing(CLI::App& app, Context& context, const std::string& name,
                 const std::string& what) {
  CLI::App* command = app.add_subcommand(name, what + " (not in this build)");
  command->footer("Example: penstock " + name + " --help");
  command->allow_extras();
  command->callback([&context, name] {
    context.action = [name] {
      return fail(name, {Code::unsupported,
                         "unsupported: this penstock was built without " PENSTOCK_SERVE_MISSING
                         "; install it and build again"});
    };
  });
}

}  // namespace

void add_extender(CLI::App& app, Context& context) {
  add_missing(app, context, "extender",
              "Serve filter, prioritize, bind and preempt to kube-scheduler");
}

void add_scheduler(CLI::App& app, Context& context) {
  add_missing(app, context, "scheduler", "Schedule the pods of a cluster that name this scheduler");
}

}  // namespace penstock::tool
