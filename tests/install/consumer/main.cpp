#include <cstdio>
#include <penstock/penstock.hpp>
#include <string>

int main() {
  const std::string version = penstock_version_string();
  const std::string ok = penstock_status_name(PENSTOCK_OK);
  if (version.empty() || ok.empty()) return 1;
  std::printf("%s %s\n", version.c_str(), ok.c_str());
}
