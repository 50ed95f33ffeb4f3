#include "penstock/drivers/opencl/reach.h"

#include <algorithm>
#include <utility>

#include "penstock/base/log.h"
#include "penstock/drivers/opencl/error.h"

namespace penstock::opencl {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kSegmentAlignment = std::uint64_t{2} << 20;

std::byte* page_of(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  return reinterpret_cast<std::byte*>(address - address % kPage);
}

// The last segment that does not begin behind `data`.
const Segment* segment_before(const Segments& segments, const void* data) {
  const auto after =
      std::upper_bound(segments.begin(), segments.end(), data,
                       [](const void* at, const auto& segment) { return at < segment->data; });
  return after == segments.begin() ? nullptr : std::prev(after)->get();
}

bool holds(const Segment& segment, const Extent& extent) {
  const auto* data = static_cast<const std::byte*>(extent.data);
  const auto into = static_cast<std::uint64_t>(data - segment.data);
  return into <= segment.bytes && extent.bytes <= segment.bytes - into;
}

bool touches(const Segments& segments, const Extent& extent) {
  const auto* begin = static_cast<const std::byte*>(extent.data);
  for (const auto& segment : segments)
    if (begin < segment->data + segment->bytes && segment->data < begin + extent.bytes) return true;
  return false;
}

// Pages that hold extents of memory that is in no segment.
struct Pages {
  std::byte* begin;
  std::byte* end;
};

std::vector<Pages> merged(std::vector<Pages> pages) {
  std::sort(pages.begin(), pages.end(),
            [](const Pages& a, const Pages& b) { return a.begin < b.begin; });
  std::vector<Pages> result;
  for (const Pages& next : pages) {
    if (!result.empty() && next.begin <= result.back().end)
      result.back().end = std::max(result.back().end, next.end);
    else
      result.push_back(next);
  }
  return result;
}

}  // namespace

PoolObjects::PoolObjects(cl::Context context, const DeviceTraits& traits)
    : context_(std::move(context)),
      device_(traits.name),
      most_bytes_(std::max(traits.max_allocation - traits.max_allocation % kSegmentAlignment,
                           kSegmentAlignment)) {}

Segments PoolObjects::attach(Pool& pool) {
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
  Segments segments;
  for (std::uint32_t device = 0; device < pool.device_count(); ++device) {
    const DeviceData data = pool.device_data(device);
    std::byte* const memory = data.bytes == 0 ? nullptr : pool.resolve(data.address, data.bytes);
    for (std::uint64_t at = 0; memory != nullptr && at < data.bytes; at += most_bytes_) {
      const std::uint64_t bytes = std::min(most_bytes_, data.bytes - at);
      auto& known = known_[{memory + at, bytes}];
      std::shared_ptr<const Segment> segment = known.lock();
      if (segment == nullptr) {
        const Status made = guarded(device_, [&]() -> Status {
          segment = std::make_shared<const Segment>(Segment{
              memory + at, bytes,
              cl::Buffer(context_, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, memory + at)});
          return {};
        });
        if (!made.ok()) {
          log::warn("opencl: memory device {} of the pool is staged: {}", device, made.message());
          break;
        }
        known = segment;
      }
      segments.push_back(std::move(segment));
    }
  }
  std::sort(segments.begin(), segments.end(),
            [](const auto& a, const auto& b) { return a->data < b->data; });
  return segments;
}

std::uint32_t Binding::add(const cl::Buffer& buffer) {
  objects_.push_back(buffer);
  return static_cast<std::uint32_t>(objects_.size() - 1);
}

bool Binding::bind(Sharing sharing, const cl::Context& context, const Segments& segments,
                   const std::vector<Extent>& extents, std::vector<std::uint64_t>* addresses) {
  if (sharing == Sharing::none) return false;
  if (sharing == Sharing::objects) return bind_objects(context, segments, extents, addresses);
  if (objects_.size() == kObjects) return false;
  // One pointer reaches everything; the others' distance to it is their offset.
  const auto least = std::min_element(
      extents.begin(), extents.end(),
      [](const Extent& a, const Extent& b) { return std::less<>()(a.data, b.data); });
  base_ = page_of(least->data);
  addresses->clear();
  for (const Extent& extent : extents)
    addresses->push_back(address(
        kObjects - 1, static_cast<std::uint64_t>(static_cast<const std::byte*>(extent.data) -
                                                 static_cast<const std::byte*>(base_))));
  return true;
}

bool Binding::bind_objects(const cl::Context& context, const Segments& segments,
                           const std::vector<Extent>& extents,
                           std::vector<std::uint64_t>* addresses) {
  const std::size_t own = objects_.size();
  std::vector<const Segment*> used;
  std::vector<Pages> pages;
  for (const Extent& extent : extents) {
    const Segment* segment = segment_before(segments, extent.data);
    if (segment != nullptr && holds(*segment, extent)) {
      if (std::find(used.begin(), used.end(), segment) == used.end()) used.push_back(segment);
      continue;
    }
    if (touches(segments, extent)) return false;
    const auto* end = static_cast<const std::byte*>(extent.data) + extent.bytes;
    pages.push_back({page_of(extent.data), page_of(end + kPage - 1)});
  }
  pages = merged(std::move(pages));
  if (own + used.size() + pages.size() > kObjects) return false;
  for (const Segment* segment : used) objects_.push_back(segment->buffer);
  // The runtime keeps an object until what was started with it is over.
  for (const Pages& range : pages)
    objects_.emplace_back(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                          static_cast<std::size_t>(range.end - range.begin), range.begin);
  addresses->clear();
  for (const Extent& extent : extents) {
    const auto* data = static_cast<const std::byte*>(extent.data);
    const Segment* segment = segment_before(segments, data);
    std::size_t object = own;
    const std::byte* base = nullptr;
    if (segment != nullptr && holds(*segment, extent)) {
      object +=
          static_cast<std::size_t>(std::find(used.begin(), used.end(), segment) - used.begin());
      base = segment->data;
    } else {
      const auto range = std::find_if(pages.begin(), pages.end(), [&](const Pages& p) {
        return data >= p.begin && data < p.end;
      });
      object += used.size() + static_cast<std::size_t>(range - pages.begin());
      base = range->begin;
    }
    addresses->push_back(
        address(static_cast<std::uint32_t>(object), static_cast<std::uint64_t>(data - base)));
  }
  return true;
}

void Binding::set_arguments(cl::Kernel& kernel) const {
  for (std::uint32_t i = 0; i < kObjects; ++i) {
    if (i < objects_.size())
      kernel.setArg(i, objects_[i]);
    else
      kernel.setArg(i, sizeof(cl_mem), nullptr);
  }
  if (base_ == nullptr) return;
  const cl_bool reaches_all = CL_TRUE;
  kernel.setArg(kObjects - 1, base_);
  cl::detail::errHandler(clSetKernelExecInfo(kernel(), CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM,
                                             sizeof(reaches_all), &reaches_all),
                         "clSetKernelExecInfo");
}

}  // namespace penstock::opencl
