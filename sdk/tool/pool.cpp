// penstock pool: makes, shows, checks and removes pools.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "options.h"
#include "penstock/base/memory_linux.h"
#include "penstock/comm/world.h"
#include "penstock/memory/pool.h"
#include "text.h"

namespace penstock::tool {
namespace {

using nlohmann::ordered_json;

struct PoolOptions {
  std::string spec;
  PoolConfig config;
  std::int32_t node = -1;  // of memory; -1: wherever the system likes
  bool reclaim = false;
  bool force = false;
  bool json = false;
};

std::string owner_text(const RegionInfo& region) {
  return fmt::format("pid {} ({})", region.lease.process.pid, liveness_name(region.owner));
}

ordered_json pool_json(Pool& pool) {
  ordered_json out;
  out["spec"] = pool.spec();
  out["coherence"] = coherence_name(pool.coherence());
  out["devices"] = ordered_json::array();
  for (const DeviceInfo& device : pool.devices()) {
    out["devices"].push_back({{"path", device.path},
                              {"bytes", device.bytes},
                              {"used", device.used},
                              {"free", device.free},
                              {"huge_pages", huge_pages_of(device.path)}});
  }
  out["regions"] = ordered_json::array();
  for (const RegionInfo& region : pool.regions()) {
    const auto address = region.region.address;
    out["regions"].push_back({{"name", region.name},
                              {"kind", region_kind_name(region.kind)},
                              {"device", penstock_address_space(address)},
                              {"offset", penstock_address_offset(address)},
                              {"bytes", region.region.bytes},
                              {"persistent", region.persistent},
                              {"host", region.lease.host},
                              {"pid", region.lease.process.pid},
                              {"owner", liveness_name(region.owner)}});
  }
  return out;
}

void print_pool(Pool& pool) {
  std::printf("pool %s, coherence %s\n", pool.spec().c_str(), coherence_name(pool.coherence()));
  for (const DeviceInfo& device : pool.devices()) {
    std::printf("  device %s: %s, used %s, free %s, huge pages %s\n", device.path.c_str(),
                readable_bytes(device.bytes).c_str(), readable_bytes(device.used).c_str(),
                readable_bytes(device.free).c_str(), huge_pages_of(device.path).c_str());
  }
  const std::vector<RegionInfo> regions = pool.regions();
  if (regions.empty()) std::printf("  no regions\n");
  for (const RegionInfo& region : regions) {
    std::printf("  region %-28s %-6s device %u offset %#llx %10s  %s%s\n",
                region.name.empty() ? "-" : region.name.c_str(), region_kind_name(region.kind),
                penstock_address_space(region.region.address),
                static_cast<unsigned long long>(penstock_address_offset(region.region.address)),
                readable_bytes(region.region.bytes).c_str(), owner_text(region).c_str(),
                region.persistent ? ", persistent" : "");
  }
}

int create(PoolOptions& options) {
  options.config.spec = options.spec;
  if (options.node >= 0) {
    // Every page is reserved while the pool is made, and stays where it is.
    const Status bound = bind_memory(options.node);
    if (!bound.ok()) return fail("pool create", bound.with_context("--numa"));
  }
  const Status status = Pool::create(Platform::host(), options.config);
  if (!status.ok()) return fail("pool create", status);
  auto pool = Pool::map(Platform::host(), options.spec);
  if (!pool.ok()) return fail("pool create", pool.status());
  if (options.json) {
    std::puts(pool_json(**pool).dump(2).c_str());
  } else {
    print_pool(**pool);
  }
  return kExitOk;
}

int show(const PoolOptions& options) {
  auto pool = Pool::map(Platform::host(), options.spec);
  if (!pool.ok()) return fail("pool info", pool.status());
  if (options.json) {
    std::puts(pool_json(**pool).dump(2).c_str());
  } else {
    print_pool(**pool);
  }
  return kExitOk;
}

// Findings are about a pool; a file that is none is bad input.
int check(const PoolOptions& options) {
  auto pool = Pool::map(Platform::host(), options.spec);
  if (!pool.ok()) return fail("pool check", pool.status());
  std::uint32_t reclaimed = 0;
  if (options.reclaim) {
    const auto count = (*pool)->reclaim();
    if (!count.ok()) return fail("pool check", count.status());
    reclaimed = count.value();
  }
  const std::vector<std::string> findings = (*pool)->check();
  if (options.json) {
    const ordered_json out = {
        {"spec", options.spec}, {"findings", findings}, {"reclaimed", reclaimed}};
    std::puts(out.dump(2).c_str());
  } else {
    for (const std::string& finding : findings) std::puts(finding.c_str());
    if (options.reclaim) std::printf("%u regions of dead owners reclaimed\n", reclaimed);
    if (findings.empty()) std::printf("%s is sound\n", options.spec.c_str());
  }
  return findings.empty() ? kExitOk : kExitWrong;
}

int destroy(const PoolOptions& options) {
  const Status status = Pool::destroy(Platform::host(), options.spec, options.force);
  return status.ok() ? kExitOk : fail("pool destroy", status);
}

std::string state_of(Pool& pool) {
  switch (find_mark(pool)) {
    case Mark::none:
      return "kept";
    case Mark::alive:
      return "temporary, in use";
    case Mark::dead:
      break;
  }
  return "temporary, its maker has ended";
}

int list(const PoolOptions& options) {
  ordered_json out = ordered_json::array();
  const std::vector<std::string> ours = list_pool_specs();
  for (const std::string& spec : list_pool_specs(true)) {
    const bool named_ours = std::find(ours.begin(), ours.end(), spec) != ours.end();
    auto pool = Pool::map(Platform::host(), spec);
    if (!pool.ok() && !named_ours) continue;  // some other program's
    ordered_json entry = {
        {"spec", spec}, {"bytes", 0}, {"state", ""}, {"pids", ordered_json::array()}};
    if (pool.ok()) {
      std::uint64_t bytes = 0;
      for (const DeviceInfo& device : (*pool)->devices()) bytes += device.bytes;
      entry["bytes"] = bytes;
      entry["state"] = state_of(**pool);
      entry["pids"] = mapping_processes((*pool)->devices().front().path);
    } else {
      entry["state"] = "unreadable: " + pool.status().message();
    }
    out.push_back(std::move(entry));
  }
  if (options.json) {
    std::puts(out.dump(2).c_str());
    return kExitOk;
  }
  for (const ordered_json& entry : out) {
    std::string pids;
    for (const auto& pid : entry["pids"]) pids += fmt::format(" {}", pid.get<std::uint32_t>());
    std::printf("%-40s %10s  %s%s%s\n", entry["spec"].get<std::string>().c_str(),
                readable_bytes(entry["bytes"].get<std::uint64_t>()).c_str(),
                entry["state"].get<std::string>().c_str(), pids.empty() ? "" : ", mapped by",
                pids.c_str());
  }
  return kExitOk;
}

CLI::App* add_action(CLI::App& pool, Context& context, std::shared_ptr<PoolOptions> options,
                     const char* name, const char* help, const char* example,
                     int (*action)(PoolOptions&)) {
  CLI::App* command = pool.add_subcommand(name, help);
  command->footer(std::string("Example: penstock pool ") + example);
  command->callback([&context, options, action] {
    context.action = [options, action] { return action(*options); };
  });
  return command;
}

void add_spec(CLI::App* command, PoolOptions& options) {
  command
      ->add_option("SPEC", options.spec,
                   "Paths of the memory devices joined by ',', or one path (with several devices "
                   "PATH.0, PATH.1, ...)")
      ->required()
      ->type_name("");
}

}  // namespace

void add_pool(CLI::App& app, Context& context) {
  CLI::App* pool = app.add_subcommand("pool", "Make, show, check and remove pools");
  pool->require_subcommand(1);
  pool->footer("Example: penstock pool create /dev/shm/mine --devices 2 --size 64M");
  auto options = std::make_shared<PoolOptions>();
  options->config.bytes_per_device = std::uint64_t{256} << 20;

  CLI::App* make = add_action(*pool, context, options, "create", "Make a pool, every page reserved",
                              "create /dev/shm/mine --devices 2 --size 64M",
                              [](PoolOptions& o) { return create(o); });
  add_spec(make, *options);
  add_number(*make, "--devices", options->config.devices, 1, PENSTOCK_MAX_DEVICES,
             "Memory devices, when SPEC is one path");
  add_size(*make, "--size", options->config.bytes_per_device, kMinDeviceBytes,
           std::uint64_t{1} << 55, "Bytes of each device", "256M");
  add_number(*make, "--numa", options->node, 0, 1023, "Memory node that gives the pages")
      ->default_str("any");
  add_number(*make, "--hosts", options->config.hosts, 1, 16, "Hosts that share it (arenas)");
  make->add_option_function<std::string>(
          "--mode",
          [options](const std::string& text) {
            const bool octal = !text.empty() && text.size() <= 4 &&
                               text.find_first_not_of("01234567") == std::string::npos;
            const unsigned long mode = octal ? std::stoul(text, nullptr, 8) : 0;
            if (!octal || mode > 0777 || (mode & 0600) != 0600) {
              throw CLI::ValidationError(
                  "--mode", "'" + text + "' is not a mode; use three octal digits from 600 to 777");
            }
            options->config.permissions = static_cast<unsigned>(mode);
          },
          "Permissions of the device files")
      ->type_name("OCTAL")
      ->default_str("0600");
  make->add_flag("--json", options->json, "Print the pool as JSON");

  CLI::App* info = add_action(*pool, context, options, "info", "Show devices and regions",
                              "info /dev/shm/mine", [](PoolOptions& o) { return show(o); });
  add_spec(info, *options);
  info->add_flag("--json", options->json, "Print it as JSON");

  CLI::App* checking =
      add_action(*pool, context, options, "check",
                 "Check superblocks, region table and leases; exit status 1 with findings",
                 "check /dev/shm/mine --reclaim", [](PoolOptions& o) { return check(o); });
  add_spec(checking, *options);
  checking->add_flag("--reclaim", options->reclaim, "First free what dead owners left");
  checking->add_flag("--json", options->json, "Print the findings as JSON");

  CLI::App* remove = add_action(*pool, context, options, "destroy", "Remove a pool",
                                "destroy /dev/shm/mine", [](PoolOptions& o) { return destroy(o); });
  add_spec(remove, *options);
  remove->add_flag("--force", options->force, "Even when live processes map it");

  CLI::App* listing =
      add_action(*pool, context, options, "list", "List the pools in /dev/shm, and who maps them",
                 "list", [](PoolOptions& o) { return list(o); });
  listing->add_flag("--json", options->json, "Print it as JSON");
}

}  // namespace penstock::tool
