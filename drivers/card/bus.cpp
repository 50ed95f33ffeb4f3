#include "penstock/drivers/card/bus.h"

#include <algorithm>
#include <charconv>
#include <mutex>

namespace penstock::card {
namespace {

struct Registry {
  static Registry& instance() {
    static Registry registry;
    return registry;
  }
  std::vector<BusFactory> copy() {
    const std::lock_guard lock(mutex);
    return factories;
  }

  std::mutex mutex;
  std::vector<BusFactory> factories;  // by preference, highest first
};

Status never_stages(const Bus& bus) {
  return error(Code::unsupported, "{}: it does not work on copies", bus.description());
}

}  // namespace

Result<BusMemory> Bus::allocate_staging() { return never_stages(*this); }
Status Bus::to_card(const BusMemory&, std::uint64_t, std::uint64_t) { return never_stages(*this); }
Status Bus::from_card(const BusMemory&, std::uint64_t, std::uint64_t) {
  return never_stages(*this);
}

Status register_bus(BusFactory factory) {
  const auto legal = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  if (factory.name.empty() || !std::all_of(factory.name.begin(), factory.name.end(), legal) ||
      !factory.probe || !factory.make)
    return error(Code::invalid_argument,
                 "register bus \"{}\": a factory has a name of letters, digits, '_' and '-', a "
                 "probe and a make function",
                 factory.name);
  Registry& registry = Registry::instance();
  const std::lock_guard lock(registry.mutex);
  auto& all = registry.factories;
  if (std::any_of(all.begin(), all.end(), [&](const auto& f) { return f.name == factory.name; }))
    return error(Code::already_exists, "register bus \"{}\": the name is taken", factory.name);
  const auto place = std::find_if(all.begin(), all.end(), [&](const BusFactory& other) {
    return other.preference < factory.preference;
  });
  all.insert(place, std::move(factory));
  return {};
}

std::vector<BusInfo> list_buses() {
  std::vector<BusInfo> infos;
  for (const BusFactory& factory : Registry::instance().copy())
    infos.push_back({factory.name, factory.probe(), factory.simulated});
  return infos;
}

Result<std::unique_ptr<Bus>> make_bus(const std::string& text) {
  const std::size_t end = std::min(text.find(';'), text.size());
  const std::string name = text.substr(0, end);
  const std::string options = end < text.size() ? text.substr(end + 1) : std::string();
  std::string names, reasons;
  for (const BusFactory& factory : Registry::instance().copy()) {
    names += (names.empty() ? "" : ", ") + factory.name;
    if (!name.empty() && factory.name != name) continue;
    if (const Status available = factory.probe(); !available.ok()) {
      reasons +=
          fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", factory.name, available.message());
      continue;
    }
    return factory.make(options);
  }
  if (!reasons.empty()) return error(Code::unsupported, "no bus to a card: {}", reasons);
  return error(Code::not_found, "bus \"{}\": there is none of that name; there are {}", name,
               names.empty() ? "none" : names);
}

Result<BusOptions> BusOptions::parse(const std::string& bus, const std::string& text) {
  BusOptions options;
  options.bus_ = bus;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find(';', start), text.size());
    const std::string part = text.substr(start, end - start);
    start = end + 1;
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    const std::string key = part.substr(0, equals);
    const std::string value = equals == std::string::npos ? "1" : part.substr(equals + 1);
    if (key.empty() || !options.values_.emplace(key, value).second)
      return error(Code::invalid_argument,
                   "bus {}: \"{}\" of its options is no key=value, or is there twice", bus, part);
  }
  return options;
}

std::string BusOptions::text(const std::string& key, const std::string& otherwise) {
  known_.push_back(key);
  const auto found = values_.find(key);
  return found == values_.end() ? otherwise : found->second;
}

std::uint64_t BusOptions::number(const std::string& key, std::uint64_t otherwise, std::uint64_t min,
                                 std::uint64_t max) {
  const std::string value = text(key, "");
  if (values_.find(key) == values_.end()) return otherwise;
  std::uint64_t number = 0;
  const auto [end, failure] =
      std::from_chars(value.data(), value.data() + value.size(), number, 10);
  if (failure == std::errc() && end == value.data() + value.size() && number >= min &&
      number <= max)
    return number;
  if (first_.ok())
    first_ = error(Code::invalid_argument, "bus {}: {}={}: it has to be a number from {} to {}",
                   bus_, key, value, min, max);
  return otherwise;
}

Status BusOptions::finish() const {
  if (!first_.ok()) return first_;
  std::string names;
  for (const std::string& key : known_) names += (names.empty() ? "" : ", ") + key;
  for (const auto& [key, value] : values_)
    if (std::find(known_.begin(), known_.end(), key) == known_.end())
      return error(Code::invalid_argument, "bus {}: it has no option \"{}\"; there are {}", bus_,
                   key, names);
  return {};
}

}  // namespace penstock::card
