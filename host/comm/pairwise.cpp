#include "penstock/comm/pairwise.h"

#include <algorithm>
#include <utility>

#include "penstock/engine/float_environment.h"

namespace penstock {
namespace {

constexpr std::uint64_t kChunkBytes = 1u << 20;  // what is received stays in the cache

// A sequence of random numbers by its number (splitmix64: Steele, Lea, Flood, 2014).
class Random {
 public:
  explicit Random(std::uint64_t state) : state_(state) {}
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Below `bound`, each number as likely as any other.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
    std::uint64_t drawn = next();
    while (drawn >= limit) drawn = next();
    return drawn % bound;
  }

 private:
  std::uint64_t state_;
};

}  // namespace

// A random order of those who are there; neighbours in it meet.
std::vector<std::uint32_t> pairwise_partners(std::uint64_t seed, std::uint64_t round,
                                             std::uint32_t ranks, std::uint64_t absent) {
  std::vector<std::uint32_t> partners(ranks);
  std::vector<std::uint32_t> order;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    partners[rank] = rank;
    if ((absent >> rank & 1) == 0) order.push_back(rank);
  }
  // Seed and round each go through the generator once, so that neighbours have nothing in common.
  Random random(Random(seed).next() ^ Random(~round).next());
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  for (std::size_t i = 0; i + 1 < order.size(); i += 2) {
    partners[order[i]] = order[i + 1];
    partners[order[i + 1]] = order[i];
  }
  return partners;
}

PairwiseAverage::PairwiseAverage(Comm& comm, std::uint64_t seed)
    : comm_(comm), seed_(seed), kernels_(simd_kernels()) {}

Result<std::unique_ptr<PairwiseAverage>> PairwiseAverage::make(Comm& comm, std::uint64_t seed) {
  return std::unique_ptr<PairwiseAverage>(new PairwiseAverage(comm, seed));
}

// Both send and receive; what was received is folded into `data` once the own send has left it.
Status PairwiseAverage::average_chunk(std::uint32_t partner, std::byte* data, std::uint64_t count,
                                      std::uint32_t type) {
  Call call;
  call.collective = Collective::send_recv;
  call.count = count;
  call.type = type;
  call.root = partner;
  call.send = data;
  call.sender = true;
  PENSTOCK_ASSIGN(const std::shared_ptr<Request> sent, comm_.start(call));
  call.send = nullptr;
  call.recv = theirs_.data();
  call.sender = false;
  PENSTOCK_TRY(comm_.run(call));
  PENSTOCK_TRY(comm_.wait(*sent));
  const void* sources[2] = {data, theirs_.data()};
  if (partner < comm_.rank()) std::swap(sources[0], sources[1]);
  void* const destination[1] = {data};
  ReduceArguments arguments{};
  arguments.type = type;
  arguments.redop = PENSTOCK_AVG;
  arguments.n_src = 2;
  arguments.n_dst = 1;
  arguments.src = sources;
  arguments.dst = destination;
  arguments.count = count;
  const FloatEnvironment environment;
  kernels_->reduce(arguments);
  return {};
}

Status PairwiseAverage::run(std::uint64_t round, void* data, std::uint64_t count,
                            std::uint32_t type, std::uint64_t absent) {
  const std::uint64_t size = penstock_type_size(type);
  if (size == 0) {
    return error(Code::invalid_argument, "pairwise average: type {} does not exist; 0 to {} do",
                 type, PENSTOCK_TYPE_COUNT - 1);
  }
  if (count > 0 && data == nullptr) {
    return error(Code::invalid_argument, "pairwise average: {} elements at a null pointer", count);
  }
  if (count > PENSTOCK_MAX_COUNT) {
    return error(Code::invalid_argument, "pairwise average: {} elements; at most {} are supported",
                 count, PENSTOCK_MAX_COUNT);
  }
  PENSTOCK_TRY(comm_.health());
  const std::uint32_t with = partner(round, absent);
  if (with == comm_.rank()) return {};
  const std::uint64_t chunk = kChunkBytes / size;
  theirs_.resize(std::max<std::uint64_t>(theirs_.size(), std::min(count, chunk) * size));
  auto* bytes = static_cast<std::byte*>(data);
  for (std::uint64_t done = 0; done < count; done += chunk) {
    PENSTOCK_TRY(average_chunk(with, bytes + done * size, std::min(chunk, count - done), type));
  }
  return {};
}

}  // namespace penstock
