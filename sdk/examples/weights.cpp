// One publisher, many fetchers: rank 0 publishes versions of a model's weights as it trains, and
// the others take the newest whenever they like. Nobody waits for a reader, and no reader gets half
// of one version and half of another.
#include <cstdio>
#include <vector>

#include "penstock/penstock.hpp"

namespace {

constexpr std::size_t kWeights = 200'000;
constexpr std::uint64_t kVersions = 50;
constexpr std::uint64_t kModel = 7;  // the block's key

// What training would come to: weights of which each tells its version.
void train(std::uint64_t version, std::vector<float>* weights) {
  weights->assign(kWeights, static_cast<float>(version));
}

}  // namespace

int main() {
  try {
    penstock::world world;
    penstock_window_config config = PENSTOCK_WINDOW_CONFIG_INIT;
    config.blocks = 1;
    config.block_bytes = kWeights * sizeof(float);
    config.block_copies = 2;  // the last version stays readable while the next is written
    penstock::window window(world, config);
    std::vector<float> weights(kWeights);
    if (world.rank() == 0) {
      for (std::uint64_t version = 1; version <= kVersions; ++version) {
        train(version, &weights);
        window.publish_block(0, kModel, weights.data(), config.block_bytes);
      }
      std::printf("rank 0 published %d versions\n", static_cast<int>(kVersions));
    } else {
      std::uint64_t version = 0;
      int fetched = 0;
      while (version < kVersions) {
        const penstock_block block =
            window.fetch_block(0, 0, version + 1, weights.data(), config.block_bytes);
        version = block.version;
        ++fetched;
        for (const float weight : weights) {
          if (weight == static_cast<float>(version)) continue;
          std::printf("rank %u: WRONG: a weight of version %g in version %u\n", world.rank(),
                      weight, static_cast<unsigned>(version));
          return 1;
        }
      }
      std::printf("rank %u fetched %d versions, each whole, right\n", world.rank(), fetched);
    }
    world.barrier();  // nobody leaves while others still fetch
    return 0;
  } catch (const penstock::failure& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 2;
  }
}
