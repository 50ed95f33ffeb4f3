// Bytes as the names of a node table in a pool. What reads without an error is written and read
// again to the same text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "penstock/sched/catalogue.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  const auto names = Catalogue::parse({reinterpret_cast<const char*>(data), size});
  if (!names.ok()) return 0;
  const std::string text = names.value().serialise();
  const auto again = Catalogue::parse(text);
  if (!again.ok() || again.value().serialise() != text) std::abort();
  return 0;
}
