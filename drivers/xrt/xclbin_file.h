// An xclbin, the file that programs a device: read and checked before XRT sees it, which takes a
// file at its word. The layout is that of XRT's xclbin.h.
#ifndef PENSTOCK_DRIVERS_XRT_XCLBIN_FILE_H_
#define PENSTOCK_DRIVERS_XRT_XCLBIN_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/base/status.h"

namespace penstock::card {

struct XclbinFile {
  struct Bank {
    std::string tag;          // "HBM[0]", "HOST[0]"
    std::uint32_t group = 0;  // by which XRT names it
    std::uint64_t base = 0, bytes = 0;
    bool used = false;

    // The host's memory, which the device reaches over its bridge.
    bool host() const { return tag.rfind("HOST[", 0) == 0; }
  };
  struct Connection {
    std::uint32_t argument = 0;  // by its id in the kernel's description
    std::uint32_t bank = 0;      // in `banks`
  };
  struct Ip {
    std::string kernel, instance;
    std::uint64_t base = 0;
    bool interrupts = false;
    std::vector<Connection> connections;

    std::string name() const { return kernel + ":" + instance; }
  };

  // io_error, not_found, permission_denied if the file cannot be read; corrupt for what is no
  // xclbin or contradicts itself; unsupported for one without what a card needs. `path` is for
  // people in parse().
  static Result<XclbinFile> read(const std::string& path);
  static Result<XclbinFile> parse(const std::string& path, std::vector<char> data);

  // The instance of a kernel, or the first one where `instance` is empty. not_found lists those
  // that there are.
  Result<const Ip*> find(const std::string& kernel, const std::string& instance) const;

  std::string path;
  std::vector<char> data;  // the file
  std::string platform;    // the name of the platform that it was made for
  std::string uuid;
  std::vector<Ip> ips;  // kernels' instances
  std::vector<Bank> banks;
  std::uint32_t kernel_clock_khz = 0;  // 0: the file does not say
};

}  // namespace penstock::card
#endif
