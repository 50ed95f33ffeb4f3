// Bytes as what a client or an API server sends to a live front end. The first byte says which.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "penstock/serve/extender_protocol.h"
#include "penstock/serve/watch.h"

namespace {

void check(const penstock::Status& status) {
  if (status.ok()) return;
  // One sentence, and never an invariant of the reader's own.
  if (status.message().find('\n') != std::string::npos) std::abort();
  if (status.code() == penstock::Code::internal) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0: {
      const auto args = parse_extender_args(body);
      check(args.status());
      if (args.ok() && !args.value().by_name &&
          args.value().names.size() != args.value().nodes.size()) {
        std::abort();
      }
      break;
    }
    case 1:
      check(parse_binding_args(body).status());
      break;
    case 2:
      check(parse_preemption_args(body).status());
      break;
    default: {
      WatchParser parser(4096);
      const auto use = [](const std::string&, const nlohmann::json& object) {
        object_key(object);
        object_version(object);
        return Status();
      };
      for (std::size_t at = 0; at < body.size(); at += 100)
        check(parser.feed(body.substr(at, 100), use));
    }
  }
  return 0;
}
