// Bytes as a file of test vectors: malformed ones say so, others run.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "penstock/sched/vectors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  VectorsOptions options;
  options.engines = {"scalar"};
  options.compat = true;
  const auto results = run_vectors(text, "input", options);
  if (!results.ok()) {
    if (results.status().message().empty()) std::abort();
    return 0;
  }
  const VectorCounts counts = count_vectors(results.value());
  if (counts.passed + counts.failed + counts.skipped != counts.cases) std::abort();
  if (counts.cases != results.value().size()) std::abort();
  return 0;
}
