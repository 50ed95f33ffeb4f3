// Engines that come as shared libraries.
#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <string_view>

#include "penstock/base/env.h"
#include "penstock/base/log.h"
#include "penstock/engine/engine.h"
#include "penstock/engine/plugins.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

// Splits at ':'; empty parts are left out.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find(':', start), text.size());
    if (end > start) parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

// The folder of the executable or shared library that this code is linked into; empty if unknown.
fs::path own_folder() {
  static const int here = 0;
  Dl_info info;
  if (dladdr(&here, &info) == 0 || info.dli_fname == nullptr) return {};
  // An executable that was found on PATH has no folder in its name.
  const bool has_folder = std::string_view(info.dli_fname).find('/') != std::string_view::npos;
  std::error_code failure;
  const fs::path file = fs::canonical(has_folder ? info.dli_fname : "/proc/self/exe", failure);
  return failure ? fs::path() : file.parent_path();
}

std::vector<fs::path> libraries_in(const fs::path& folder) {
  std::vector<fs::path> libraries;
  std::error_code failure;
  for (auto it = fs::directory_iterator(folder, failure);
       !failure && it != fs::directory_iterator(); it.increment(failure))
    if (it->path().extension() == ".so") libraries.push_back(it->path());
  std::sort(libraries.begin(), libraries.end());
  return libraries;
}

std::vector<fs::path> find_libraries() {
  std::vector<fs::path> libraries;
  if (env::is_set(env::Id::plugins)) {
    const std::string named = env::text(env::Id::plugins);
    for (const std::string& part : parts_of(named == "none" ? std::string() : named)) {
      std::error_code failure;
      if (!fs::is_directory(part, failure)) {
        libraries.emplace_back(part);
        continue;
      }
      const std::vector<fs::path> inside = libraries_in(part);
      libraries.insert(libraries.end(), inside.begin(), inside.end());
    }
  } else if (const fs::path own = own_folder(); !own.empty()) {
    for (const std::string& folder : parts_of(PENSTOCK_PLUGIN_FOLDERS)) {
      libraries = libraries_in(own / folder);
      if (!libraries.empty()) break;
    }
  }
  return libraries;
}

void load_all() {
  for (const fs::path& library : find_libraries())
    if (const Status loaded = load_engine_plugin(library.string()); !loaded.ok())
      log::warn("{}", loaded.message());
}

}  // namespace

std::vector<std::string> plugin_libraries() {
  std::vector<std::string> names;
  for (const fs::path& library : find_libraries()) names.push_back(library.string());
  return names;
}

void load_engine_plugins() {
  static std::once_flag once;
  std::call_once(once, load_all);
}

Status load_engine_plugin(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return error(Code::not_found, "plugin {}: {}", path, reason != nullptr ? reason : "not loaded");
  }
  const auto* version = static_cast<const char*>(dlsym(library, "penstock_plugin_version"));
  void* entry = dlsym(library, "penstock_register_engines");
  if (version == nullptr || entry == nullptr ||
      std::string_view(version) != PENSTOCK_PLUGIN_VERSION) {
    const std::string found = version != nullptr ? version : "none";
    dlclose(library);
    return error(Code::unsupported,
                 "plugin {}: it has to export penstock_register_engines and the version {}, but "
                 "its version is {}",
                 path, PENSTOCK_PLUGIN_VERSION, found);
  }
  reinterpret_cast<void (*)(Status(*)(EngineFactory))>(entry)(register_engine);
  return {};
}

}  // namespace penstock
