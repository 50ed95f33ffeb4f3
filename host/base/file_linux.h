// The file half of the Linux platform: files, /dev/shm, and device DAX nodes.
#ifndef PENSTOCK_BASE_FILE_LINUX_H_
#define PENSTOCK_BASE_FILE_LINUX_H_

#include <memory>
#include <string>

#include "penstock/base/platform.h"

namespace penstock {

Result<std::unique_ptr<File>> open_file(Platform& platform, const std::string& path, OpenMode mode,
                                        unsigned permissions);
Status remove_file(const std::string& path);
// (device << 32) ^ inode of what the path names, 0 if nothing.
std::uint64_t identity_of_path(const std::string& path);
Status unmap_memory(void* address, std::uint64_t bytes);

// The code that an errno value stands for.
Code code_of_errno(int number);

}  // namespace penstock
#endif
