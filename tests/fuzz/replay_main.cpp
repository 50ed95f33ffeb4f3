// Stands in for libFuzzer where it is not linked: runs a fuzz target over the seeds in the folders
// that are named, then over mutations of them. The generator is seeded with a constant, so that a
// failure comes back.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Input = std::vector<uint8_t>;

constexpr size_t kMaxSeeds = 10000;
constexpr size_t kMutations = 2000;
constexpr size_t kMaxBytes = 4096;

// A copy on the heap of exactly the input's size: a sanitizer then sees a read beyond its end.
void run_one(const Input& input) {
  const Input exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

Input mutate(Input input, std::mt19937_64& random) {
  const auto below = [&random](size_t limit) { return static_cast<size_t>(random() % limit); };
  for (size_t edits = 1 + below(8); edits > 0; --edits) {
    const size_t at = input.empty() ? 0 : below(input.size());
    switch (below(input.empty() ? 1 : 5)) {
      case 0:  // insert a random run
        input.insert(input.begin() + static_cast<std::ptrdiff_t>(at), 1 + below(16),
                     static_cast<uint8_t>(random()));
        break;
      case 1:
        input[at] = static_cast<uint8_t>(random());
        break;
      case 2:
        input[at] ^= static_cast<uint8_t>(1u << below(8));
        break;
      case 3:  // an edge value
        input[at] = below(2) == 0 ? uint8_t{0} : uint8_t{255};
        break;
      default:
        input.resize(at);
        break;
    }
  }
  if (input.size() > kMaxBytes) input.resize(kMaxBytes);
  return input;
}

std::vector<Input> read_seeds(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  if (std::filesystem::is_directory(folder)) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.is_regular_file() && paths.size() < kMaxSeeds) paths.push_back(entry.path());
    }
  }
  // Folders have no order of their own, and the mutations follow the order of the seeds.
  std::sort(paths.begin(), paths.end());
  std::vector<Input> seeds;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return seeds;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Input> seeds = {Input{}};
  for (int i = 1; i < argc; ++i) {
    for (Input& seed : read_seeds(argv[i])) seeds.push_back(std::move(seed));
  }
  for (const Input& seed : seeds) run_one(seed);

  std::mt19937_64 random(20260101);
  for (size_t i = 0; i < kMutations; ++i) {
    run_one(mutate(seeds[static_cast<size_t>(random() % seeds.size())], random));
  }
  std::printf("%zu seeds, %zu mutations\n", seeds.size(), kMutations);
  return EXIT_SUCCESS;
}
