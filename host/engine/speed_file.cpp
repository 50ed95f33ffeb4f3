// Where measured speeds are kept. The file, a line each:
//
//   penstock-speed 1 <machine, 16 hex digits>
//   <name> <opcodes> <types> <host_memory> <copy> <reduce> <select> [failure]
//   crc32c <8 hex digits over everything before this line>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "penstock/base/checksum.h"
#include "penstock/base/env.h"
#include "penstock/base/log.h"
#include "penstock/base/platform.h"
#include "penstock/engine/plugins.h"
#include "penstock/engine/speed.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kLockTimeoutMs = 20000;
constexpr std::size_t kMaxFileBytes = 64 * 1024;

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxFileBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return text;
}

std::string checksum_line(const std::string& text) {
  return fmt::format("crc32c {:08x}\n", crc32c(text.data(), text.size()));
}

// FNV-1a 64 over parts, each with its end.
class Fingerprint {
 public:
  void add(const std::string& part) {
    for (const char c : part) step(static_cast<unsigned char>(c));
    step(0x100);
  }
  std::uint64_t value() const { return hash_; }

 private:
  void step(std::uint64_t c) { hash_ = (hash_ ^ c) * 0x100000001b3ull; }
  std::uint64_t hash_ = 0xcbf29ce484222325ull;
};

// Names in a folder that begin with one of the prefixes, sorted.
std::vector<std::string> names_in(const fs::path& folder,
                                  std::initializer_list<const char*> begin) {
  std::vector<std::string> names;
  std::error_code failure;
  for (auto it = fs::directory_iterator(folder, failure);
       !failure && it != fs::directory_iterator(); it.increment(failure)) {
    const std::string name = it->path().filename().string();
    for (const char* prefix : begin)
      if (name.rfind(prefix, 0) == 0) names.push_back((folder / name).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string model_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("model name", 0) == 0) return line;
  return "unknown";
}

// In one step, so that nobody reads half of it. What cannot be written is measured again next time.
void keep(const fs::path& path, const std::string& text) {
  const fs::path next = fmt::format("{}.{}", path.string(), ::getpid());
  std::error_code failure;
  {
    std::ofstream file(next, std::ios::binary | std::ios::trunc);
    file << text;
    if (!file.flush()) failure = std::make_error_code(std::errc::io_error);
  }
  if (!failure) fs::rename(next, path, failure);
  if (!failure) return;
  log::info("the speed of engines cannot be kept in {}", path.string());
  fs::remove(next, failure);
}

}  // namespace

std::string kept_speeds_text(std::uint64_t machine, const std::vector<KeptSpeed>& speeds) {
  std::string text = fmt::format("penstock-speed 1 {:016x}\n", machine);
  for (const KeptSpeed& one : speeds) {
    std::string failure = one.failure;
    std::replace(failure.begin(), failure.end(), '\n', ' ');
    text += fmt::format("{} {} {} {} {:.9g} {:.9g} {:.9g}{}{}\n", one.name, one.opcodes, one.types,
                        one.host_memory ? 1 : 0, one.speed.copy, one.speed.reduce, one.speed.select,
                        failure.empty() ? "" : " ", failure);
  }
  return text + checksum_line(text);
}

std::vector<KeptSpeed> parse_kept_speeds(const std::string& text, std::uint64_t machine) {
  const std::size_t last = text.rfind("crc32c ");
  if (last == std::string::npos || text.substr(last) != checksum_line(text.substr(0, last)))
    return {};
  std::istringstream lines(text.substr(0, last));
  std::string line;
  if (!std::getline(lines, line) || line != fmt::format("penstock-speed 1 {:016x}", machine))
    return {};
  std::vector<KeptSpeed> speeds;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    KeptSpeed one;
    if (!(words >> one.name >> one.opcodes >> one.types >> one.host_memory >> one.speed.copy >>
          one.speed.reduce >> one.speed.select))
      return {};
    std::getline(words >> std::ws, one.failure);
    speeds.push_back(std::move(one));
  }
  return speeds;
}

std::vector<std::string> accelerator_nodes() {
  std::vector<std::string> nodes =
      names_in("/dev", {"nvidia0", "nvidia1", "nvidia2", "nvidia3", "nvidia4", "nvidia5", "nvidia6",
                        "nvidia7", "nvidia8", "nvidia9", "kfd", "dxg", "xdma", "xclmgmt", "acl"});
  for (const char* folder : {"/dev/dri", "/dev/accel"}) {
    const std::vector<std::string> more = names_in(folder, {"renderD", "accel"});
    nodes.insert(nodes.end(), more.begin(), more.end());
  }
  return nodes;
}

std::uint64_t speed_machine() {
  Fingerprint print;
  print.add(model_name());
  print.add(std::to_string(std::thread::hardware_concurrency()));
  print.add(PENSTOCK_PLUGIN_VERSION);
  for (const std::string& node : accelerator_nodes()) print.add(node);
  for (const std::string& icd : names_in("/etc/OpenCL/vendors", {""})) print.add(icd);
  for (const std::string& library : plugin_libraries()) {
    std::error_code failure;
    const auto written = fs::last_write_time(library, failure).time_since_epoch().count();
    print.add(
        fmt::format("{} {} {}", library, failure ? 0 : written, fs::file_size(library, failure)));
  }
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "OCL_ICD_VENDORS", "OCL_ICD_FILENAMES",
                           "POCL_DEVICES", "XCL_EMULATION_MODE", "XILINX_XRT"})
    print.add(env::foreign(name).value_or("\x01"));
  return print.value();
}

std::string speed_path() {
  if (env::is_set(env::Id::speed)) {
    const std::string path = env::text(env::Id::speed);
    return path == "none" ? "" : path;
  }
  const auto cache = env::foreign("XDG_CACHE_HOME");
  if (cache && !cache->empty()) return *cache + "/penstock/speed.txt";
  const auto home = env::foreign("HOME");
  return home && !home->empty() ? *home + "/.cache/penstock/speed.txt" : "";
}

std::vector<KeptSpeed> speeds_of_this_machine(
    const std::function<std::vector<KeptSpeed>()>& measure) {
  const std::string path = speed_path();
  if (path.empty()) return measure();
  const std::uint64_t machine = speed_machine();
  std::vector<KeptSpeed> kept = parse_kept_speeds(read_text(path), machine);
  if (!kept.empty()) return kept;
  std::error_code ignored;
  fs::create_directories(fs::path(path).parent_path(), ignored);
  Platform& platform = Platform::host();
  const std::string lock_path = path + ".lock";
  Result<std::unique_ptr<File>> lock = platform.open(lock_path, OpenMode::create_new);
  if (!lock.ok()) lock = platform.open(lock_path, OpenMode::read_write);
  if (lock.ok() && lock.value()->lock(0, 1, kLockTimeoutMs).ok())
    kept = parse_kept_speeds(read_text(path), machine);  // who had it may have measured
  if (!kept.empty()) return kept;
  kept = measure();
  keep(path, kept_speeds_text(machine, kept));
  return kept;
}

}  // namespace penstock
