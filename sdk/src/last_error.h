// The sentence behind penstock_last_error, and the way from a Status to a C status.
#ifndef PENSTOCK_SDK_LAST_ERROR_H_
#define PENSTOCK_SDK_LAST_ERROR_H_

#include "penstock/base/status.h"
#include "penstock/penstock.h"

namespace penstock::sdk {

// Remembers the sentence for this thread; PENSTOCK_OK leaves the last one alone.
penstock_status report(const Status& status);

// Runs a function that returns Status; whatever is thrown inside becomes a status, because no
// exception may cross the C interface.
template <typename Function>
penstock_status guarded(Function&& function) noexcept {
  try {
    return report(function());
  } catch (const std::bad_alloc&) {
    return report(Status(Code::no_space, "out of memory"));
  } catch (const std::exception& exception) {
    return report(Status(Code::internal, exception.what()));
  }
}

}  // namespace penstock::sdk
#endif
