#include <cstdio>

#include "penstock/base/status.h"
#include "penstock/descriptor/descriptor.h"
#include "penstock/engine/engine.h"

int main() {
  const auto engines = penstock::list_engines();
  for (const auto& engine : engines) std::printf("%s\n", engine.name.c_str());
  return engines.empty() ? 1 : 0;
}
