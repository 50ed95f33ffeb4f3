#include "penstock/drivers/opencl/opencl_rig_test.h"

#include <dlfcn.h>
#include <stdlib.h>

namespace penstock::opencl {
namespace {

// Before the first call of OpenCL. PoCL keeps what it compiles, too.
const bool told = ::setenv("OPENCL_LAYERS", PENSTOCK_TEST_LAYER, 1) == 0 &&
                  ::setenv("POCL_CACHE_DIR", PENSTOCK_TEST_CACHE "/pocl", 1) == 0;

FaultLayer* find_layer() {
  void* const library = ::dlopen(PENSTOCK_TEST_LAYER, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  const auto layer =
      reinterpret_cast<FaultLayerFunction>(::dlsym(library, "penstock_opencl_fault_layer"));
  ::dlclose(library);
  return layer == nullptr ? nullptr : layer();
}

}  // namespace

void OpenclTest::SetUp() {
  ASSERT_TRUE(told);
  const auto devices = list_devices();
  if (!devices.ok()) GTEST_SKIP() << devices.status().message();
  faults_ = find_layer();
  if (faults_ == nullptr || !faults_->loaded)
    GTEST_SKIP() << "this OpenCL loader does not load the layer of faults";
  faults_->heal();
  faults_->count_anew();
}

void OpenclTest::TearDown() {
  if (faults_ != nullptr) faults_->heal();
  queue_.reset();
  engine_.reset();
  core_.reset();
  if (faults_ != nullptr) {
    EXPECT_EQ(faults_->contexts, 0);
    EXPECT_EQ(faults_->queues, 0);
    EXPECT_EQ(faults_->buffers, 0);
    EXPECT_EQ(faults_->programs, 0);
    EXPECT_EQ(faults_->kernels, 0);
    EXPECT_EQ(faults_->events, 0);
  }
  PoolTest::TearDown();
}

Options OpenclTest::options(const std::string& text) {
  Options options = Options::parse(text).value();
  if (options.cache.empty()) options.cache = PENSTOCK_TEST_CACHE;
  return options;
}

penstock_descriptor OpenclTest::copy_of(const void* src, void* dst, std::uint64_t bytes) {
  penstock_descriptor d{};
  d.opcode = PENSTOCK_OP_COPY;
  d.version = PENSTOCK_DESCRIPTOR_VERSION;
  d.n_src = d.n_dst = 1;
  d.count = bytes;
  d.src[0] = penstock_address_host(src);
  d.dst[0] = penstock_address_host(dst);
  return d;
}

// The list of more than 8 sources is the vector's caller's: it is made here and kept.
penstock_descriptor OpenclTest::sum_of(const std::vector<const void*>& src, void* dst,
                                       std::uint64_t count) {
  static std::vector<std::unique_ptr<std::vector<penstock_address>>> lists;
  penstock_descriptor d = copy_of(src[0], dst, count);
  d.opcode = PENSTOCK_OP_REDUCE;
  d.type = d.out_type = PENSTOCK_UINT64;
  d.n_src = static_cast<std::uint8_t>(src.size());
  std::vector<penstock_address> addresses;
  for (const void* one : src) addresses.push_back(penstock_address_host(one));
  if (src.size() <= PENSTOCK_INLINE_SOURCES) {
    std::copy(addresses.begin(), addresses.end(), d.src);
    return d;
  }
  lists.push_back(std::make_unique<std::vector<penstock_address>>(std::move(addresses)));
  d.flags = PENSTOCK_FLAG_SRC_LIST;
  d.src[0] = penstock_address_host(lists.back()->data());
  return d;
}

std::vector<std::uint32_t> OpenclTest::complete(std::size_t n) {
  std::vector<std::uint32_t> statuses;
  const std::uint64_t deadline = platform_.now_ns() + 120'000'000'000;
  while (statuses.size() < n) {
    engine_->advance(*queue_);
    penstock_completion completion;
    while (queue_->poll(&completion)) statuses.push_back(completion.status);
    if (platform_.now_ns() > deadline) {
      ADD_FAILURE() << "only " << statuses.size() << " of " << n << " descriptors completed";
      break;
    }
    platform_.yield();
  }
  return statuses;
}

}  // namespace penstock::opencl
