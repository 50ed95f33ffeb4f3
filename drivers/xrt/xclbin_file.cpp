#include "penstock/drivers/xrt/xclbin_file.h"

#include <xclbin.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <span>

namespace penstock::card {
namespace {

constexpr char kMagic[8] = "xclbin2";
constexpr std::size_t kMostBytes = std::size_t{4} << 30;
constexpr std::uint32_t kMostSections = 1024;
// Of a kernel's properties in IP_LAYOUT.
constexpr std::uint32_t kInterrupts = 1;

template <class T>
T copy_of(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// A fixed field that may or may not end in a zero.
std::string text_of(const void* at, std::size_t most) {
  const char* text = static_cast<const char*>(at);
  return std::string(text, strnlen(text, most));
}

std::string uuid_text(const unsigned char* uuid) {
  std::string text;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned>(uuid[i]));
  }
  return text;
}

Status corrupt(const XclbinFile& file, const std::string& what) {
  return error(Code::corrupt, "xclbin {}: {}", file.path, what);
}

using Section = std::span<const char>;

// A table: a count, and as many records from `offset` on.
template <class Record>
Result<std::vector<Record>> table(const XclbinFile& file, const char* name, Section section,
                                  std::size_t offset) {
  if (section.size() < sizeof(std::int32_t))
    return corrupt(file, fmt::format("its section {} is cut off", name));
  const auto count = copy_of<std::int32_t>(section.data());
  if (count < 0 || section.size() < offset ||
      static_cast<std::uint64_t>(count) > (section.size() - offset) / sizeof(Record))
    return corrupt(file, fmt::format("its section {} of {} bytes has no place for {} records", name,
                                     section.size(), count));
  std::vector<Record> records(static_cast<std::size_t>(count));
  if (count > 0)
    std::memcpy(records.data(), section.data() + offset, records.size() * sizeof(Record));
  return records;
}

// The first section of a kind, empty if there is none.
Result<Section> find_section(const XclbinFile& file, std::uint32_t kind, const char* name) {
  const char* data = file.data.data();
  const auto header = copy_of<axlf_header>(data + offsetof(axlf, m_header));
  for (std::uint32_t i = 0; i < header.m_numSections; ++i) {
    const auto section = copy_of<axlf_section_header>(data + offsetof(axlf, m_sections) +
                                                      i * sizeof(axlf_section_header));
    if (section.m_sectionKind != kind) continue;
    if (section.m_sectionOffset > file.data.size() ||
        section.m_sectionSize > file.data.size() - section.m_sectionOffset)
      return corrupt(file, fmt::format("its section {} ends behind the file", name));
    return Section(data + section.m_sectionOffset, section.m_sectionSize);
  }
  return Section();
}

Status check_header(XclbinFile& file) {
  const std::size_t first = offsetof(axlf, m_sections);
  if (file.data.size() < first || std::memcmp(file.data.data(), kMagic, sizeof(kMagic)) != 0)
    return corrupt(file, "it is no xclbin: those begin with \"xclbin2\"");
  const auto header = copy_of<axlf_header>(file.data.data() + offsetof(axlf, m_header));
  if (header.m_length != file.data.size())
    return corrupt(file, fmt::format("it says that it is {} bytes long, and there are {}",
                                     header.m_length, file.data.size()));
  if (header.m_numSections > kMostSections ||
      header.m_numSections * sizeof(axlf_section_header) > file.data.size() - first)
    return corrupt(file, fmt::format("it has no place for its {} sections", header.m_numSections));
  for (std::uint32_t i = 0; i < header.m_numSections; ++i) {
    const auto section =
        copy_of<axlf_section_header>(file.data.data() + first + i * sizeof(axlf_section_header));
    if (section.m_sectionOffset > file.data.size() ||
        section.m_sectionSize > file.data.size() - section.m_sectionOffset)
      return corrupt(file, fmt::format("its section {} of kind {} ends behind the file", i,
                                       section.m_sectionKind));
  }
  file.platform = text_of(header.m_platformVBNV, sizeof(header.m_platformVBNV));
  file.uuid = uuid_text(header.uuid);
  return {};
}

Status read_banks(XclbinFile& file, bool groups) {
  const char* name = groups ? "GROUP_TOPOLOGY" : "MEM_TOPOLOGY";
  PENSTOCK_ASSIGN(const Section section,
                  find_section(file, groups ? ASK_GROUP_TOPOLOGY : MEM_TOPOLOGY, name));
  if (section.empty())
    return error(Code::unsupported, "xclbin {}: it has no section {}: it was linked without memory",
                 file.path, name);
  PENSTOCK_ASSIGN(const std::vector<mem_data> banks,
                  table<mem_data>(file, name, section, offsetof(mem_topology, m_mem_data)));
  for (const mem_data& bank : banks) {
    XclbinFile::Bank made;
    made.tag = text_of(bank.m_tag, sizeof(bank.m_tag));
    made.group = static_cast<std::uint32_t>(file.banks.size());
    made.base = bank.m_base_address;
    made.bytes = bank.m_size << 10;
    made.used = bank.m_used != 0;
    file.banks.push_back(std::move(made));
  }
  return {};
}

Status read_ips(XclbinFile& file, bool groups) {
  PENSTOCK_ASSIGN(const Section layout, find_section(file, IP_LAYOUT, "IP_LAYOUT"));
  if (layout.empty())
    return error(Code::unsupported, "xclbin {}: it has no section IP_LAYOUT: it holds no kernel",
                 file.path);
  PENSTOCK_ASSIGN(const std::vector<ip_data> ips,
                  table<ip_data>(file, "IP_LAYOUT", layout, offsetof(ip_layout, m_ip_data)));
  const char* name = groups ? "GROUP_CONNECTIVITY" : "CONNECTIVITY";
  PENSTOCK_ASSIGN(const Section lines,
                  find_section(file, groups ? ASK_GROUP_CONNECTIVITY : CONNECTIVITY, name));
  std::vector<connection> connections;
  if (!lines.empty()) {
    PENSTOCK_ASSIGN(connections,
                    table<connection>(file, name, lines, offsetof(::connectivity, m_connection)));
  }
  for (std::size_t i = 0; i < ips.size(); ++i) {
    if (ips[i].m_type != IP_KERNEL) continue;
    XclbinFile::Ip made;
    const std::string full = text_of(ips[i].m_name, sizeof(ips[i].m_name));
    const std::size_t colon = full.find(':');
    made.kernel = full.substr(0, colon);
    made.instance = colon == std::string::npos ? "" : full.substr(colon + 1);
    made.base = ips[i].m_base_address;
    made.interrupts = (ips[i].properties & kInterrupts) != 0;
    for (const connection& line : connections) {
      if (line.m_ip_layout_index != static_cast<std::int32_t>(i)) continue;
      if (line.arg_index < 0 || line.mem_data_index < 0 ||
          static_cast<std::size_t>(line.mem_data_index) >= file.banks.size())
        return corrupt(
            file, fmt::format("argument {} of {} is connected to bank {}, of {}", line.arg_index,
                              full, line.mem_data_index, file.banks.size()));
      made.connections.push_back({static_cast<std::uint32_t>(line.arg_index),
                                  static_cast<std::uint32_t>(line.mem_data_index)});
    }
    file.ips.push_back(std::move(made));
  }
  return {};
}

// Kernels run with the first of the clocks that are theirs.
Status read_clock(XclbinFile& file) {
  PENSTOCK_ASSIGN(const Section section,
                  find_section(file, CLOCK_FREQ_TOPOLOGY, "CLOCK_FREQ_TOPOLOGY"));
  if (section.empty()) return {};
  if (section.size() < offsetof(clock_freq_topology, m_clock_freq))
    return corrupt(file, "its section CLOCK_FREQ_TOPOLOGY is cut off");
  const auto count = copy_of<std::int16_t>(section.data());
  const std::size_t first = offsetof(clock_freq_topology, m_clock_freq);
  if (count < 0 || static_cast<std::size_t>(count) > (section.size() - first) / sizeof(clock_freq))
    return corrupt(file, "its section CLOCK_FREQ_TOPOLOGY has no place for its clocks");
  for (std::int16_t i = 0; i < count; ++i) {
    const auto clock = copy_of<clock_freq>(section.data() + first +
                                           static_cast<std::size_t>(i) * sizeof(clock_freq));
    // The first data clock is ap_clk.
    if (clock.m_type != CT_DATA) continue;
    file.kernel_clock_khz = static_cast<std::uint32_t>(clock.m_freq_Mhz) * 1000;
    break;
  }
  return {};
}

Code code_of_errno(int number) {
  if (number == ENOENT || number == ENOTDIR) return Code::not_found;
  if (number == EACCES || number == EPERM) return Code::permission_denied;
  return Code::io_error;
}

}  // namespace

Result<XclbinFile> XclbinFile::read(const std::string& path) {
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    return error(code_of_errno(errno), "xclbin {}: it cannot be opened: {}", path,
                 std::strerror(errno));
  stream.seekg(0, std::ios::end);
  const std::streamoff bytes = stream.tellg();
  stream.seekg(0);
  // A directory can be opened, and has a length that nothing has.
  if (!stream || bytes < 0 || static_cast<std::uint64_t>(bytes) > kMostBytes)
    return error(Code::io_error, "xclbin {}: it is no file of up to 4 GiB", path);
  std::vector<char> data(static_cast<std::size_t>(bytes));
  if (!data.empty() && !stream.read(data.data(), bytes))
    return error(Code::io_error, "xclbin {}: it cannot be read to its end", path);
  return parse(path, std::move(data));
}

Result<XclbinFile> XclbinFile::parse(const std::string& path, std::vector<char> data) {
  XclbinFile file;
  file.path = path;
  file.data = std::move(data);
  PENSTOCK_TRY(check_header(file));
  // A file with groups of banks says with them what its kernels are connected to.
  PENSTOCK_ASSIGN(const Section groups, find_section(file, ASK_GROUP_TOPOLOGY, "GROUP_TOPOLOGY"));
  PENSTOCK_TRY(read_banks(file, !groups.empty()));
  PENSTOCK_TRY(read_ips(file, !groups.empty()));
  PENSTOCK_TRY(read_clock(file));
  return file;
}

Result<const XclbinFile::Ip*> XclbinFile::find(const std::string& kernel,
                                               const std::string& instance) const {
  std::string names;
  for (const Ip& ip : ips) {
    if (ip.kernel == kernel && (instance.empty() || ip.instance == instance)) return &ip;
    names += (names.empty() ? "" : ", ") + ip.name();
  }
  return error(Code::not_found, "xclbin {}: it holds no {}{}{}; there are {}", path, kernel,
               instance.empty() ? "" : ":", instance, names.empty() ? "no kernels" : names);
}

}  // namespace penstock::card
