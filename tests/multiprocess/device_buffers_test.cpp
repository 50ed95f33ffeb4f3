// Buffers in the memory of a GPU, mixed with private ones, under the engine `cuda` and under host
// engines: every rank decides for itself. Runs against the driver that PENSTOCK_CUDA_DRIVER names,
// which is the stand-in in the tests of this build.
#include <gtest/gtest.h>

#include <cstdlib>
#include <ostream>
#include <random>

#include "buffers.h"
#include "penstock/comm/fused.h"
#include "penstock/drivers/cuda/device.h"
#include "ranks.h"

namespace penstock::test {
namespace {

// The engine of this binary, not a plugin's.
const bool kPrepared = [] {
  setenv("PENSTOCK_CUDA_DRIVER", PENSTOCK_TEST_CUDA_DRIVER, 0);
  setenv("PENSTOCK_PLUGINS", "none", 1);
  return register_engine(cuda::cuda_engine_factory()).ok();
}();

// Memory of the device with a copy of what stood in `host`. Allocation and copies as an application
// does them; what fails aborts the rank.
class OnDevice {
 public:
  OnDevice(std::byte* host, std::uint64_t bytes) : host_(host), bytes_(bytes) {
    auto driver = cuda::load_driver(cuda::driver_path(""));
    PENSTOCK_CHECK(driver.ok(), "{}", driver.status().message());
    driver_ = driver.value();
    auto context = cuda::Context::open(*driver_, 0);
    PENSTOCK_CHECK(context.ok(), "{}", context.status().message());
    context_ = std::move(context).value();
    const cuda::Current current(*driver_, context_->handle());
    check(driver_->cuMemAlloc(&address_, bytes_));
    check(driver_->cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    copy(address_, of(host_));
  }
  ~OnDevice() {
    const cuda::Current current(*driver_, context_->handle());
    driver_->cuStreamDestroy(stream_);
    driver_->cuMemFree(address_);
  }
  void read_back() {
    const cuda::Current current(*driver_, context_->handle());
    copy(of(host_), address_);
  }
  std::byte* data() const { return reinterpret_cast<std::byte*>(address_); }
  // Where something of the host's is on the device.
  std::byte* place(const void* of_host) const {
    return data() + (static_cast<const std::byte*>(of_host) - host_);
  }

 private:
  static CUdeviceptr of(const void* data) {
    return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(data));
  }
  void check(CUresult result) const {
    const Status status = driver_->check(result, "the test");
    PENSTOCK_CHECK(status.ok(), "{}", status.message());
  }
  void copy(CUdeviceptr to, CUdeviceptr from) {
    check(driver_->cuMemcpyAsync(to, from, bytes_, stream_));
    check(driver_->cuStreamSynchronize(stream_));
  }

  std::byte* const host_;
  const std::uint64_t bytes_;
  const cuda::Driver* driver_ = nullptr;
  std::shared_ptr<const cuda::Context> context_;
  CUdeviceptr address_ = 0;
  CUstream stream_ = nullptr;
};

// A call whose buffers, with their guards, are on the device where so wanted.
class DeviceCall {
 public:
  DeviceCall(const Call& call, std::uint32_t rank, std::uint32_t ranks, bool in_place, bool send,
             bool recv)
      : call_(call) {
    const BufferBytes bytes = buffer_bytes(call, rank, ranks);
    auto* from = const_cast<std::byte*>(static_cast<const std::byte*>(call.send));
    auto* to = static_cast<std::byte*>(call.recv);
    if (in_place) {
      if (!send) return;
      std::byte* first = from == nullptr ? to : to == nullptr ? from : std::min(from, to);
      std::byte* last = std::max(from + bytes.send, to + bytes.recv);
      if (first == nullptr) return;
      move(first, static_cast<std::uint64_t>(last - first));
      if (from != nullptr) call_.send = moved_.back()->place(from);
      if (to != nullptr) call_.recv = moved_.back()->place(to);
      return;
    }
    if (send && from != nullptr) {
      move(from, bytes.send);
      call_.send = moved_.back()->place(from);
    }
    if (recv && to != nullptr) {
      move(to, bytes.recv);
      call_.recv = moved_.back()->place(to);
    }
  }
  const Call& call() const { return call_; }
  void read_back() {
    for (const auto& moved : moved_) moved->read_back();
  }

 private:
  void move(std::byte* from, std::uint64_t bytes) {
    moved_.push_back(std::make_unique<OnDevice>(from - kGuardBytes, bytes + 2 * kGuardBytes));
  }
  Call call_;
  std::vector<std::unique_ptr<OnDevice>> moved_;
};

template <typename T>
std::string run_random_calls(Comm& comm, std::uint32_t rounds, std::uint64_t seed) {
  std::mt19937_64 common(seed + comm.size());
  std::mt19937_64 own(seed + comm.size() * 100 + comm.rank());
  for (std::uint32_t round = 0; round < rounds; ++round) {
    Call call;
    call.collective = kAll[common() % std::size(kAll)];
    const std::uint64_t counts[] = {1, 3, 16, 500, 600, 5003, 16384, 40001};
    call.count = counts[common() % std::size(counts)];
    call.type = T::type;
    const auto root = static_cast<std::uint32_t>(common() % comm.size());
    call.root = has_root(call.collective) ? root : 0;
    // A call in place leaves nothing to repeat it with.
    const std::uint32_t repeats = 1 + round % 2;
    const bool in_place = own() % 3 == 0 && repeats == 1, send = own() % 3 != 0,
               recv = own() % 3 != 0;
    Buffers<T> buffers(call, round, comm.rank(), comm.size(), in_place);
    DeviceCall device(call, comm.rank(), comm.size(), in_place, send, recv);
    for (std::uint32_t repeat = 0; repeat < repeats; ++repeat) {
      Status status;
      if (own() % 2 == 0) {
        status = comm.run(device.call());
      } else {
        auto request = comm.start(device.call());
        status = request.ok() ? comm.wait(**request) : request.status();
      }
      if (!status.ok()) return fmt::format("round {}: {}", round, status.to_string());
    }
    device.read_back();
    if (std::string wrong = buffers.verify(); !wrong.empty())
      return fmt::format("round {} ({}{}): {}", round, send ? "send " : "", recv ? "recv" : "",
                         wrong);
  }
  return "";
}

Result<Member> join_with(const std::string& engine, const std::string& spec, std::uint32_t rank,
                         std::uint32_t size, std::uint64_t rank_bytes) {
  PENSTOCK_CHECK(kPrepared, "the engine cuda was not registered");
  Member member;
  PENSTOCK_ASSIGN(member.pool, Pool::map(Platform::host(), spec));
  CommConfig config;
  config.rank = rank;
  config.size = size;
  config.engine = engine;
  config.rank_bytes = rank_bytes;
  PENSTOCK_ASSIGN(member.comm, Comm::join(*member.pool, config));
  return member;
}

struct Setting {
  std::vector<std::string> engines;  // of each rank
  std::uint64_t rank_bytes;
};
void PrintTo(const Setting& setting, std::ostream* out) {
  for (const std::string& engine : setting.engines) *out << engine << ", ";
  *out << "passes of " << setting.rank_bytes << " bytes";
}
class DeviceBuffers : public testing::TestWithParam<Setting> {};
INSTANTIATE_TEST_SUITE_P(, DeviceBuffers,
                         testing::Values(Setting{{"cuda", "cuda"}, 1u << 20},
                                         Setting{{"cuda", "cuda", "cuda"}, 8192},
                                         Setting{{"simd", "scalar"}, 1u << 20},
                                         Setting{{"simd", "simd", "scalar"}, 8192},
                                         Setting{{"cuda", "simd", "cuda:0;staged=1"}, 8192}));

TEST_P(DeviceBuffers, AnyMixtureGivesTheRightResult) {
  const Setting& setting = GetParam();
  const ScopedPool pool(1);
  const auto size = static_cast<std::uint32_t>(setting.engines.size());
  EXPECT_EQ("", run_ranks(size, [&](std::uint32_t rank) -> std::string {
              auto member =
                  join_with(setting.engines[rank], pool.spec(), rank, size, setting.rank_bytes);
              if (!member.ok()) return member.status().to_string();
              if (std::string wrong = run_random_calls<F32>(*member->comm, 30, 1); !wrong.empty())
                return wrong;
              return run_random_calls<Uint8>(*member->comm, 15, 2);
            }));
}

TEST(DeviceBuffer, BetweenTwoRanks) {
  const ScopedPool pool(1);
  EXPECT_EQ("", run_ranks(2, [&](std::uint32_t rank) -> std::string {
              auto member = join_with(rank == 0 ? "simd" : "cuda", pool.spec(), rank, 2, 1u << 20);
              if (!member.ok()) return member.status().to_string();
              for (const std::uint64_t count : {5u, 3000u, 700000u}) {
                Call call;
                call.collective = Collective::send_recv;
                call.count = count;
                call.type = F32::type;
                call.root = 1 - rank;
                call.sender = rank == 0;
                Buffers<F32> buffers(call, count, rank, 2, false);
                DeviceCall device(call, rank, 2, false, true, true);
                if (Status status = member->comm->run(device.call()); !status.ok())
                  return status.to_string();
                device.read_back();
                if (std::string wrong = buffers.verify(); !wrong.empty()) return wrong;
              }
              return "";
            }));
}

// The same fused call on private memory gives the bits.
TEST(DeviceBuffer, FusedCollectives) {
  const ScopedPool pool(1);
  EXPECT_EQ(
      "", run_ranks(3, [&](std::uint32_t rank) -> std::string {
        auto member = join_with(rank == 1 ? "cuda" : "simd", pool.spec(), rank, 3, 1u << 20);
        if (!member.ok()) return member.status().to_string();
        auto fused = Fused::create(*member->comm, rank == 2 ? "cuda" : "simd");
        if (!fused.ok()) return fused.status().to_string();
        constexpr std::uint64_t kCount = 5001;
        std::vector<float> send(kCount), recv(kCount), on_device(kCount);
        for (std::uint64_t i = 0; i < kCount; ++i) send[i] = F32::make(input(3, rank, i));
        const auto bytes = [](std::vector<float>& v) {
          return reinterpret_cast<std::byte*>(v.data());
        };
        OnDevice device_send(bytes(send), kCount * 4), device_recv(bytes(on_device), kCount * 4);
        for (const auto& [out_type, block] :
             {std::pair{PENSTOCK_BF16, 0u}, {PENSTOCK_F32, 32u}, {PENSTOCK_F32, 0u}}) {
          FusedCall call;
          call.send = send.data();
          call.recv = recv.data();
          call.count = kCount;
          call.out_type = out_type;
          call.block = block;
          if (Status s = (*fused)->all_reduce(call); !s.ok()) return s.to_string();
          call.send = device_send.data();
          call.recv = device_recv.data();
          if (Status s = (*fused)->all_reduce(call); !s.ok()) return s.to_string();
          device_recv.read_back();
          const std::uint64_t n = kCount * penstock_type_size(out_type);
          if (std::memcmp(recv.data(), on_device.data(), n) != 0) return "all_reduce differs";
        }
        FusedCall average;
        average.redop = PENSTOCK_AVG;
        average.count = kCount;
        average.send = send.data();
        average.recv = recv.data();
        if (Status s = (*fused)->average(average, 1.0 + rank); !s.ok()) return s.to_string();
        average.send = device_send.data();
        average.recv = device_recv.data();
        if (Status s = (*fused)->average(average, 1.0 + rank); !s.ok()) return s.to_string();
        device_recv.read_back();
        if (recv != on_device) return "average differs";

        const std::uint64_t shard = (*fused)->shard(kCount);
        std::vector<float> momentum(shard), device_momentum(shard);
        std::vector<float> parameters(kCount, 1.0f), device_parameters(kCount, 1.0f);
        OnDevice m(bytes(device_momentum), shard * 4), p(bytes(device_parameters), kCount * 4);
        OuterStepCall step;
        step.deltas = send.data();
        step.parameters = parameters.data();
        step.momentum = momentum.data();
        step.count = kCount;
        step.learning_rate = 0.7f;
        step.momentum_factor = 0.9f;
        if (Status s = (*fused)->outer_step(step); !s.ok()) return s.to_string();
        step.deltas = device_send.data();
        step.parameters = reinterpret_cast<float*>(p.data());
        step.momentum = reinterpret_cast<float*>(m.data());
        if (Status s = (*fused)->outer_step(step); !s.ok()) return s.to_string();
        m.read_back();
        p.read_back();
        if (momentum != device_momentum || parameters != device_parameters)
          return "outer_step differs";
        return "";
      }));
}

}  // namespace
}  // namespace penstock::test
