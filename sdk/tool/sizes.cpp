#include "sizes.h"

#include <map>

#include "options.h"
#include "penstock/descriptor/descriptor.h"

namespace penstock::tool {
namespace {

Result<std::uint32_t> find_name(const char* what, const std::string& name,
                                const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<std::uint32_t>(i);
  }
  return error(Code::not_found, "there is no {} '{}'; use {}", what, name, join_names(names));
}

}  // namespace

std::vector<std::string> type_names() {
  std::vector<std::string> names;
  for (std::uint32_t type = 0; type < PENSTOCK_TYPE_COUNT; ++type) {
    names.emplace_back(penstock_type_name(type));
  }
  return names;
}

std::vector<std::string> redop_names() {
  std::vector<std::string> names;
  for (std::uint32_t redop = 0; redop < PENSTOCK_REDOP_COUNT; ++redop) {
    names.emplace_back(penstock_redop_name(redop));
  }
  return names;
}

Result<std::uint32_t> parse_type(const std::string& name) {
  // The names that nccl-tests and numeric libraries have for the same types.
  static const std::map<std::string, std::uint32_t> aliases = {
      {"half", PENSTOCK_F16},         {"float16", PENSTOCK_F16},
      {"float", PENSTOCK_F32},        {"float32", PENSTOCK_F32},
      {"double", PENSTOCK_F64},       {"float64", PENSTOCK_F64},
      {"bfloat16", PENSTOCK_BF16},    {"float8e4m3", PENSTOCK_F8E4M3},
      {"float8e5m2", PENSTOCK_F8E5M2}};
  if (const auto alias = aliases.find(name); alias != aliases.end()) return alias->second;
  return find_name("type", name, type_names());
}

Result<std::uint32_t> parse_redop(const std::string& name) {
  if (name == "premulsum" || name == "premul_sum" || name == "mulsum") {
    return std::uint32_t{PENSTOCK_PREMUL_SUM};
  }
  return find_name("operation", name, redop_names());
}

bool has_parts(Collective collective) {
  switch (collective) {
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
    case Collective::gather:
    case Collective::scatter:
      return true;
    default:
      return false;
  }
}

std::uint64_t count_of_size(Collective collective, std::uint64_t size, std::uint32_t ranks,
                            std::uint32_t type) {
  if (collective == Collective::barrier) return 0;
  return size / penstock_type_size(type) / (has_parts(collective) ? ranks : 1);
}

std::uint64_t size_of_count(Collective collective, std::uint64_t count, std::uint32_t ranks,
                            std::uint32_t type) {
  return count * penstock_type_size(type) * (has_parts(collective) ? ranks : 1);
}

double bus_factor(Collective collective, std::uint32_t ranks) {
  const double n = ranks;
  if (collective == Collective::all_reduce) return 2 * (n - 1) / n;
  return has_parts(collective) ? (n - 1) / n : 1;
}

}  // namespace penstock::tool
