#include "penstock/sched/vectors.h"

#include <algorithm>
#include <map>
#include <set>

#include "penstock/sched/csv.h"
#include "penstock/sched/scheduler_config_parts.h"
#include "penstock/sched/vectors_parts.h"

namespace penstock {
namespace {

using nlohmann::ordered_json;

constexpr int kMaxDepth = 64;

const char* outcome_name(VectorOutcome outcome) {
  switch (outcome) {
    case VectorOutcome::passed:
      return "passed";
    case VectorOutcome::failed:
      return "failed";
    case VectorOutcome::skipped:
      break;
  }
  return "skipped";
}

Result<VectorPlugin> read_plugin(const JsonField& field) {
  PENSTOCK_ASSIGN(const std::string name, field.text());
  VectorPlugin plugin = split_plugin(name);
  if (is_vector_function(plugin) || is_vector_plugin(plugin)) return plugin;
  return field.wrong("a filter or score of kube-scheduler, or a function that vectors.h names");
}

Result<std::string> read_id(const JsonField& test, std::set<std::string>* seen) {
  PENSTOCK_TRY(expect_members(test, {"id", "desc", "feature", "config", "pod", "nodes", "input",
                                     "existingPods", "namespaces", "expect"}));
  const JsonField id = test.member("id"), desc = test.member("desc"),
                  expect = test.member("expect"), config = test.member("config");
  PENSTOCK_ASSIGN(std::string text, id.text());
  PENSTOCK_TRY(desc.text().status());
  if (text.empty()) return id.wrong("a name of the case");
  if (!seen->insert(text).second) return id.wrong("each name once");
  if (!expect.present()) return expect.wrong("what comes of the case");
  PENSTOCK_TRY(expect.expect_object());
  PENSTOCK_TRY(config.expect_object());
  return text;
}

Result<Verdict> run_case(const VectorPlugin& plugin, const JsonField& test,
                         const std::shared_ptr<Engine>& engine, const VectorsOptions& options) {
  if (is_vector_function(plugin)) return run_function_case(plugin, test, engine, options);
  return run_plugin_case(plugin, test, engine, options);
}

}  // namespace

Verdict passed() { return {VectorOutcome::passed, ""}; }
Verdict failed(std::string detail) { return {VectorOutcome::failed, std::move(detail)}; }
Verdict skipped(std::string why) { return {VectorOutcome::skipped, std::move(why)}; }

VectorPlugin split_plugin(const std::string& name) {
  VectorPlugin plugin{name, name, ""};
  if (const std::size_t slash = name.find('/'); slash != std::string::npos) {
    plugin.base = name.substr(0, slash);
    plugin.part = name.substr(slash + 1);
  } else if (const std::size_t open = name.find(" (");
             open != std::string::npos && name.ends_with(')')) {
    plugin.base = name.substr(0, open);
    plugin.part = name.substr(open + 2, name.size() - open - 3);
  }
  return plugin;
}

Result<std::vector<std::int64_t>> read_integers(const JsonField& list) {
  if (!list.present()) return list.wrong("an array of whole numbers");
  return read_list<std::int64_t>(
      list, [](const JsonField& item) { return item.integer(INT64_MIN, INT64_MAX); });
}

Result<std::vector<VectorResult>> run_vectors(const std::string& path,
                                              const VectorsOptions& options) {
  PENSTOCK_ASSIGN(const std::string bytes, read_file(path, kMaxVectorBytes));
  return run_vectors(bytes, path, options);
}

Result<std::vector<VectorResult>> run_vectors(std::string_view bytes, const std::string& name,
                                              const VectorsOptions& options) {
  std::vector<std::shared_ptr<Engine>> engines;
  for (const std::string& engine : options.engines) {
    PENSTOCK_ASSIGN(engines.emplace_back(), make_engine(engine));
  }
  PENSTOCK_ASSIGN(const nlohmann::json document, parse_json(bytes, name, kMaxDepth));
  const JsonField root(document, name);
  PENSTOCK_TRY(root.expect_object());
  PENSTOCK_TRY(expect_members(root, {"plugin", "upstream", "count", "notes", "cases"}));
  const JsonField plugin_field = root.member("plugin"), count = root.member("count"),
                  cases = root.member("cases");
  PENSTOCK_ASSIGN(const VectorPlugin plugin, read_plugin(plugin_field));
  if (!cases.present()) return cases.wrong("an array of cases");
  std::vector<VectorResult> results;
  std::set<std::string> seen;
  PENSTOCK_TRY(cases.each([&](const JsonField& test) -> Status {
    PENSTOCK_ASSIGN(const std::string id, read_id(test, &seen));
    for (std::size_t i = 0; i < engines.size(); ++i) {
      PENSTOCK_ASSIGN(Verdict verdict, run_case(plugin, test, engines[i], options));
      results.push_back({name, id, options.engines[i], verdict.outcome, std::move(verdict.detail)});
    }
    return {};
  }));
  PENSTOCK_ASSIGN(const std::int64_t expected, count.integer(0, INT64_MAX));
  if (count.present() && static_cast<std::uint64_t>(expected) != seen.size()) {
    return count.wrong(fmt::format("{}, the number of cases", seen.size()));
  }
  return results;
}

VectorCounts count_vectors(const std::vector<VectorResult>& results) {
  struct Seen {
    bool failed = false;
    bool ran = false;
  };
  std::map<std::pair<std::string, std::string>, Seen> cases;
  for (const VectorResult& result : results) {
    Seen& seen = cases[{result.file, result.id}];
    seen.failed = seen.failed || result.outcome == VectorOutcome::failed;
    seen.ran = seen.ran || result.outcome != VectorOutcome::skipped;
  }
  VectorCounts counts;
  for (const auto& [name, seen] : cases) {
    ++counts.cases;
    ++(seen.failed ? counts.failed : seen.ran ? counts.passed : counts.skipped);
  }
  return counts;
}

std::string vectors_text(const std::vector<VectorResult>& results, const VectorsOptions& options) {
  std::string text;
  std::map<std::string, std::set<std::string>> why;  // by reason: the cases
  for (const VectorResult& result : results) {
    if (result.outcome == VectorOutcome::skipped) why[result.detail].insert(result.id);
    if (result.outcome != VectorOutcome::failed) continue;
    text += fmt::format("FAILED {} {} on {}: {}\n", result.file, result.id, result.engine,
                        result.detail);
  }
  for (const auto& [reason, cases] : why) {
    text += fmt::format("skipped {} ({} to {}): {}\n", cases.size(), *cases.begin(),
                        *cases.rbegin(), reason);
  }
  const VectorCounts counts = count_vectors(results);
  text +=
      fmt::format("{} cases, {} passed, {} failed, {} skipped ({})\n", counts.cases, counts.passed,
                  counts.failed, counts.skipped, fmt::join(options.engines, ", "));
  return text;
}

std::string vectors_json(const std::vector<VectorResult>& results, const VectorsOptions& options) {
  const VectorCounts counts = count_vectors(results);
  ordered_json out;
  out["engines"] = options.engines;
  out["compat"] = options.compat;
  out["cases"] = counts.cases;
  out["passed"] = counts.passed;
  out["failed"] = counts.failed;
  out["skipped"] = counts.skipped;
  out["results"] = ordered_json::array();
  for (const VectorResult& result : results) {
    ordered_json one = {{"file", result.file},
                        {"id", result.id},
                        {"engine", result.engine},
                        {"outcome", outcome_name(result.outcome)}};
    if (!result.detail.empty()) one["detail"] = result.detail;
    out["results"].push_back(std::move(one));
  }
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace penstock
