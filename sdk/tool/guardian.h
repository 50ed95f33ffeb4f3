// Ends what a launcher started when the launcher itself is killed.
#ifndef PENSTOCK_SDK_TOOL_GUARDIAN_H_
#define PENSTOCK_SDK_TOOL_GUARDIAN_H_

#include <sys/types.h>

namespace penstock::tool {

// A process beside the launcher that learns which process groups there are. When the launcher ends
// without having dismissed it, it kills them: a rank dies by itself then, but not what the rank
// started. Single-threaded; made before the first rank.
class Guardian {
 public:
  Guardian();
  ~Guardian();  // dismisses it
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  void watch(pid_t group);

 private:
  int to_ = -1;
  pid_t pid_ = -1;
};

}  // namespace penstock::tool
#endif
