#include "last_error.h"

namespace penstock::sdk {
namespace {
thread_local std::string last_error;
}

penstock_status report(const Status& status) {
  if (!status.ok()) last_error = status.message();
  return static_cast<penstock_status>(status.code());
}

}  // namespace penstock::sdk

extern "C" {

const char* penstock_last_error(void) { return penstock::sdk::last_error.c_str(); }

const char* penstock_version_string(void) { return PENSTOCK_VERSION; }
}
