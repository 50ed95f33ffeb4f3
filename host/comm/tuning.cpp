#include "penstock/comm/tuning.h"

namespace penstock {

Status check_tuning(const Tuning& tuning) {
  if (tuning.chunks < 1 || tuning.chunks > 64) {
    return error(Code::invalid_argument, "tuning: chunks is {}, and must be 1..64", tuning.chunks);
  }
  if (tuning.inline_bytes > 64 * 1024) {
    return error(Code::invalid_argument, "tuning: inline_bytes is {}, and must be at most {}",
                 tuning.inline_bytes, 64 * 1024);
  }
  if (tuning.chunk_bytes < 64) {
    return error(Code::invalid_argument, "tuning: chunk_bytes is {}, and must be at least 64",
                 tuning.chunk_bytes);
  }
  if (tuning.push > 1) {
    return error(Code::invalid_argument, "tuning: push is {}, and must be 0 or 1", tuning.push);
  }
  return {};
}

}  // namespace penstock
