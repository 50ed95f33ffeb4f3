// What a penstock_comm is, for the files of the C interface that take one.
#ifndef PENSTOCK_SDK_COMM_HANDLE_H_
#define PENSTOCK_SDK_COMM_HANDLE_H_

#include <memory>

#include "last_error.h"
#include "penstock/comm/comm.h"
#include "penstock/comm/world.h"

// The order of the members is the order of dependence: the comm goes before its world.
struct penstock_comm {
  std::shared_ptr<penstock::World> world;
  std::shared_ptr<penstock::Pool> pool;  // only when the configuration names one
  std::unique_ptr<penstock::Comm> comm;

  // The pool that the comm lives in.
  penstock::Pool& its_pool() const { return pool ? *pool : world->pool(); }
};

namespace penstock::sdk {

// penstock_collective numbers to the comm's; invalid_argument names the range.
Result<Collective> to_collective(std::int64_t number);

inline Status check_size(const char* what, std::size_t size, std::size_t known) {
  if (size == known) return {};
  return error(Code::invalid_argument,
               "{}.size is {}, this library knows {}; set it with the _INIT macro", what, size,
               known);
}

inline Status null_comm() { return Status(Code::invalid_argument, "the comm is null"); }

}  // namespace penstock::sdk
#endif
