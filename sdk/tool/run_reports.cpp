#include "run_reports.h"

#include <cstdio>
#include <filesystem>

#include "command.h"
#include "penstock/base/platform.h"
#include "statistics_report.h"
#include "trace_merge.h"

namespace penstock::tool {

RunReports::~RunReports() {
  std::error_code failure;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, failure);
}

Status RunReports::prepare(LaunchConfig* launch) {
  std::error_code failure;
  if (stats) {
    const auto base = std::filesystem::temp_directory_path(failure);
    if (failure) return error(Code::io_error, "no folder for temporary files; TMPDIR names one");
    Platform& platform = Platform::host();
    const std::string name =
        fmt::format("penstock-report-{}-{:016x}", platform.self().pid, platform.random());
    if (!std::filesystem::create_directory(base / name, failure)) {
      return error(Code::io_error, "cannot make the folder {}: {}", (base / name).string(),
                   failure.message());
    }
    folder_ = (base / name).string();
    launch->environment.emplace_back("PENSTOCK_STATS", statistics_file());
  }
  if (!trace.empty()) {
    // The ranks may go elsewhere.
    const auto absolute = std::filesystem::absolute(trace, failure);
    if (!failure) trace = absolute.string();
    // Parts of an earlier run with more ranks would be taken for this one's.
    remove_parts(trace);
    launch->environment.emplace_back("PENSTOCK_TRACE", trace);
  }
  return {};
}

void RunReports::finish(std::uint32_t ranks) const {
  if (!trace.empty()) finish_trace();
  if (!stats) return;
  const auto table = render_statistics(statistics_file(), ranks);
  if (table.ok()) {
    std::fputs(table.value().c_str(), stdout);
  } else {
    (void)fail("run", table.status().with_context("--stats"));
  }
}

void RunReports::finish_trace() const {
  const auto merged = merge_trace(trace, trace);
  if (!merged.ok()) {
    (void)fail("run", merged.status().with_context("--trace"));
    return;
  }
  remove_parts(trace);
  for (const std::string& finding : merged.value().findings) {
    std::fprintf(stderr, "penstock: run: --trace: %s\n", finding.c_str());
  }
  if (merged.value().dropped == 0) return;
  std::fprintf(stderr,
               "penstock: run: --trace: %llu slices were dropped; PENSTOCK_TRACE_EVENTS makes room "
               "for more\n",
               static_cast<unsigned long long>(merged.value().dropped));
}

}  // namespace penstock::tool
