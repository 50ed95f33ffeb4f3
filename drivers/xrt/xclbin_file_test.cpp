// Files that are well formed, contradict themselves, or are noise.
#include "penstock/drivers/xrt/xclbin_file.h"

#include <gmock/gmock.h>
#include <xclbin.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace penstock::card {
namespace {

using ::testing::HasSubstr;

template <class T>
void append(std::string* data, const T& value) {
  data->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Puts sections together as xclbin.h lays them out.
class Builder {
 public:
  Builder& bank(const std::string& tag, std::uint64_t base, std::uint64_t kib, bool used = true) {
    mem_data bank{};
    bank.m_type = MEM_DRAM;
    bank.m_used = used ? 1 : 0;
    bank.m_size = kib;
    bank.m_base_address = base;
    std::memcpy(bank.m_tag, tag.data(), tag.size());
    append(&banks_, bank);
    ++n_banks_;
    return *this;
  }
  Builder& ip(std::uint32_t type, const std::string& name, std::uint32_t properties = 0) {
    ip_data ip{};
    ip.m_type = type;
    ip.properties = properties;
    ip.m_base_address = 0x10000u * static_cast<std::uint64_t>(n_ips_ + 1);
    std::memcpy(ip.m_name, name.data(), name.size());
    append(&ips_, ip);
    ++n_ips_;
    return *this;
  }
  Builder& line(std::int32_t argument, std::int32_t ip, std::int32_t bank) {
    append(&lines_, connection{argument, ip, bank});
    ++n_lines_;
    return *this;
  }
  Builder& clock(std::uint8_t type, std::uint16_t mhz) {
    clock_freq clock{};
    clock.m_freq_Mhz = mhz;
    clock.m_type = type;
    append(&clocks_, clock);
    ++n_clocks_;
    return *this;
  }
  Builder& section(axlf_section_kind kind, const std::string& data) {
    sections_.emplace_back(kind, data);
    return *this;
  }
  Builder& groups() {
    group_ = true;
    return *this;
  }

  std::vector<char> build() {
    if (n_banks_ != 0)
      section(group_ ? ASK_GROUP_TOPOLOGY : MEM_TOPOLOGY, table(n_banks_, 8) + banks_);
    if (n_lines_ != 0)
      section(group_ ? ASK_GROUP_CONNECTIVITY : CONNECTIVITY, table(n_lines_, 4) + lines_);
    if (n_ips_ != 0) section(IP_LAYOUT, table(n_ips_, 8) + ips_);
    if (n_clocks_ != 0) section(CLOCK_FREQ_TOPOLOGY, table(n_clocks_, 2) + clocks_);
    const std::size_t first = offsetof(axlf, m_sections);
    std::size_t at = first + sections_.size() * sizeof(axlf_section_header);
    std::string headers, body;
    for (const auto& [kind, data] : sections_) {
      axlf_section_header header{};
      header.m_sectionKind = kind;
      header.m_sectionOffset = at;
      header.m_sectionSize = data.size();
      append(&headers, header);
      body += data;
      at += data.size();
    }
    std::string file(first, '\0');
    std::memcpy(file.data(), "xclbin2", 8);
    axlf_header header{};
    header.m_length = at;
    header.m_numSections = static_cast<std::uint32_t>(sections_.size());
    std::memcpy(header.m_platformVBNV, "vendor_board_1", 14);
    for (unsigned char i = 0; i < 16; ++i) header.uuid[i] = static_cast<unsigned char>(i * 0x11);
    std::memcpy(file.data() + offsetof(axlf, m_header), &header, sizeof(header));
    file += headers + body;
    return {file.begin(), file.end()};
  }

 private:
  static std::string table(int count, std::size_t bytes) {
    std::string head(bytes, '\0');
    std::memcpy(head.data(), &count, std::min(bytes, sizeof(count)));
    return head;
  }

  std::string banks_, ips_, lines_, clocks_;
  int n_banks_ = 0, n_ips_ = 0, n_lines_ = 0, n_clocks_ = 0;
  bool group_ = false;
  std::vector<std::pair<axlf_section_kind, std::string>> sections_;
};

Builder usual() {
  Builder builder;
  builder.bank("HBM[0]", 0, 1024).bank("HOST[0]", 0x2000000000, 4096);
  builder.ip(IP_MEM_HBM, "hbm").ip(IP_KERNEL, "card:one", 0x201).ip(IP_KERNEL, "card:two");
  builder.line(0, 1, 1).line(2, 1, 0).line(0, 2, 1);
  return builder.clock(CT_SYSTEM, 100).clock(CT_DATA, 300).clock(CT_KERNEL, 500);
}

std::string refusal(std::vector<char> data, Code code) {
  const auto parsed = XclbinFile::parse("some.xclbin", std::move(data));
  EXPECT_EQ(parsed.status().code(), code) << parsed.status().to_string();
  return parsed.status().message();
}

TEST(XclbinFile, SaysWhatIsInIt) {
  auto parsed = XclbinFile::parse("some.xclbin", usual().build());
  ASSERT_TRUE(parsed.ok()) << parsed.status().to_string();
  XclbinFile& file = *parsed;
  EXPECT_EQ(file.platform, "vendor_board_1");
  EXPECT_EQ(file.uuid, "00112233-4455-6677-8899-aabbccddeeff");
  EXPECT_EQ(file.kernel_clock_khz, 300'000u) << "of ap_clk";
  ASSERT_EQ(file.banks.size(), 2u);
  EXPECT_FALSE(file.banks[0].host());
  EXPECT_TRUE(file.banks[1].host());
  EXPECT_EQ(file.banks[1].base, 0x2000000000u);
  EXPECT_EQ(file.banks[1].bytes, 4096u << 10);
  ASSERT_EQ(file.ips.size(), 2u) << "kernels alone";
  EXPECT_EQ(file.ips[0].name(), "card:one");
  EXPECT_EQ(file.ips[0].base, 0x20000u);
  EXPECT_TRUE(file.ips[0].interrupts);
  EXPECT_FALSE(file.ips[1].interrupts);
  ASSERT_EQ(file.ips[0].connections.size(), 2u);
  EXPECT_EQ(file.ips[0].connections[1].argument, 2u);
  EXPECT_EQ(file.ips[0].connections[1].bank, 0u);
  EXPECT_EQ(file.find("card", "").value(), file.find("card", "one").value());
  EXPECT_EQ(file.find("card", "two").value()->instance, "two");
  const Status none = file.find("card", "three").status();
  EXPECT_EQ(none.code(), Code::not_found);
  EXPECT_THAT(none.message(), HasSubstr("card:three; there are card:one, card:two"));
}

TEST(XclbinFile, GroupsOfBanksComeBeforeBanks) {
  Builder builder;
  builder.section(MEM_TOPOLOGY, std::string(8, '\0')).groups();
  builder.bank("HBM[0:31]", 0, 1024).bank("HOST[0]", 1 << 30, 1024);
  builder.ip(IP_KERNEL, "card:one").line(3, 0, 1);
  auto parsed = XclbinFile::parse("", builder.build());
  ASSERT_TRUE(parsed.ok()) << parsed.status().to_string();
  ASSERT_EQ(parsed->banks.size(), 2u);
  EXPECT_EQ(parsed->banks[1].group, 1u);
  ASSERT_EQ(parsed->ips[0].connections.size(), 1u);
  EXPECT_EQ(parsed->kernel_clock_khz, 0u);
}

TEST(XclbinFile, WhatContradictsItselfIsNamed) {
  EXPECT_THAT(refusal({}, Code::corrupt), HasSubstr("some.xclbin: it is no xclbin"));
  std::vector<char> data = usual().build();
  data.push_back('\0');
  EXPECT_THAT(refusal(data, Code::corrupt), HasSubstr("bytes long, and there are"));
  data = usual().build();
  const std::uint32_t many = 500;
  std::memcpy(data.data() + offsetof(axlf, m_header) + offsetof(axlf_header, m_numSections), &many,
              4);
  EXPECT_THAT(refusal(data, Code::corrupt), HasSubstr("no place for its 500 sections"));
  data = usual().build();
  const std::uint64_t far = std::uint64_t{1} << 60;
  std::memcpy(data.data() + offsetof(axlf, m_sections) + 40 +
                  offsetof(axlf_section_header, m_sectionOffset),
              &far, 8);
  EXPECT_THAT(refusal(data, Code::corrupt), HasSubstr("its section 1 of kind"));
  EXPECT_THAT(refusal(usual().line(1, 1, 2).build(), Code::corrupt),
              HasSubstr("argument 1 of card:one is connected to bank 2, of 2"));
  EXPECT_THAT(refusal(usual().line(-1, 1, 0).build(), Code::corrupt), HasSubstr("argument -1"));
  Builder cut;
  cut.bank("HBM[0]", 0, 1).section(IP_LAYOUT, std::string("\xff\0\0\0\0\0\0\0", 8));
  EXPECT_THAT(refusal(cut.build(), Code::corrupt),
              HasSubstr("IP_LAYOUT of 8 bytes has no place for 255 records"));
  EXPECT_THAT(refusal(Builder().bank("B", 0, 1).build(), Code::unsupported),
              HasSubstr("no section IP_LAYOUT"));
  EXPECT_THAT(refusal(Builder().ip(IP_KERNEL, "k:i").build(), Code::unsupported),
              HasSubstr("no section MEM_TOPOLOGY"));
}

TEST(XclbinFile, NoiseIsRefusedOrRead) {
  std::mt19937_64 random(7);
  const std::vector<char> good = usual().build();
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<char> data = good;
    if (random() % 4 == 0) data.resize(random() % data.size());
    for (std::uint64_t n = random() % 8; n > 0 && !data.empty(); --n)
      // Mostly where numbers are.
      data[random() % std::min<std::size_t>(data.size(), random() % 2 == 0 ? 700 : 4000)] =
          static_cast<char>(random());
    if (data.size() >= 312 && random() % 2 == 0) {
      const std::uint64_t length = data.size();
      std::memcpy(data.data() + offsetof(axlf, m_header), &length, 8);
    }
    const auto parsed = XclbinFile::parse("", std::move(data));
    refused += parsed.ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 5'000);
  EXPECT_LT(refused, 20'000);
}

}  // namespace
}  // namespace penstock::card
