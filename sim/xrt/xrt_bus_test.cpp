// The bus `xrt` over the stand-in: what it does, and what it says of what is wrong.
#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "penstock/descriptor/register_map.h"
#include "penstock/sim/xrt/xrt_test.h"

namespace penstock::sim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class XrtBusTest : public StandinTest {
 protected:
  void SetUp() override { standin("user_memory=1"); }

  static void expect(const Status& status, Code code, const std::vector<std::string>& parts) {
    EXPECT_EQ(status.code(), code) << status.to_string();
    for (const std::string& part : parts) EXPECT_THAT(status.message(), HasSubstr(part));
  }
  // A copy of card.xclbin that was changed.
  static std::string changed(const std::function<void(std::string&)>& change) {
    std::ifstream in(file("card.xclbin"), std::ios::binary);
    std::string data((std::istreambuf_iterator<char>(in)), {});
    change(data);
    const std::string path = testing::TempDir() + fmt::format("changed-{}.xclbin", getpid());
    std::ofstream(path, std::ios::binary) << data;
    return path;
  }
  static Status refused_change(const std::function<void(std::string&)>& change) {
    const std::string path = changed(change);
    const Status status = card::xrt_bus_factory().make("xclbin=" + path).status();
    std::filesystem::remove(path);
    return status;
  }
};

TEST_F(XrtBusTest, ReachesTheCardsRegisters) {
  const card::BusFactory factory = card::xrt_bus_factory();
  EXPECT_EQ(factory.name, "xrt");
  EXPECT_TRUE(factory.probe().ok()) << factory.probe().to_string();
  auto made = bus();
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  card::Bus& bus = **made;
  EXPECT_THAT(bus.description(), AllOf(HasSubstr("penstock_card:card"), HasSubstr("device 0"),
                                       HasSubstr("1 MHz"), HasSubstr("by polling")));
  EXPECT_EQ(bus.clock_khz(), 1000u);
  EXPECT_TRUE(bus.behind_caches());
  EXPECT_FALSE(bus.interrupts());
  EXPECT_EQ(bus.read(PENSTOCK_REGISTER_ID), PENSTOCK_REGISTER_ID_RESET);
  bus.write(PENSTOCK_REGISTER_CLOCK_KHZ, 4711);
  EXPECT_EQ(bus.read(PENSTOCK_REGISTER_CLOCK_KHZ), 4711u);
  EXPECT_EQ(bus.read(0x20000), card::kNoAnswer) << "outside of the kernel";
  bus.write(0x20000, 1);
  bus.idle();
}

TEST_F(XrtBusTest, MemoryIsOnPagesAndComesBack) {
  auto made = bus();
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  card::Bus& bus = **made;
  auto ring = bus.allocate(10000);
  ASSERT_TRUE(ring.ok()) << ring.status().to_string();
  EXPECT_EQ(ring->bytes, 12288u);
  EXPECT_EQ(ring->bus % 4096, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(ring->data) % 4096, 0u);
  for (std::uint64_t i = 0; i < ring->bytes; ++i) ASSERT_EQ(ring->data[i], std::byte{0});
  void* memory = std::aligned_alloc(4096, 8192);
  auto attached = bus.attach(static_cast<std::byte*>(memory), 8192);
  ASSERT_TRUE(attached.ok()) << attached.status().to_string();
  EXPECT_NE(*attached, ring->bus);
  bus.detach(*attached);
  bus.release(*ring);
  std::free(memory);
}

TEST_F(XrtBusTest, ACardHasOneOwner) {
  auto first = bus();
  ASSERT_TRUE(first.ok()) << first.status().to_string();
  expect(refused("card.xclbin"), Code::busy, {"penstock_card:card cannot be opened"});
  first->reset();
  EXPECT_TRUE(bus().ok());
}

TEST_F(XrtBusTest, OptionsAreChecked) {
  expect(card::xrt_bus_factory().make("").status(), Code::invalid_argument,
         {"no xclbin is named", "xclbin=FILE", "PENSTOCK_XCLBIN"});
  expect(refused("card.xclbin", ";devise=1"), Code::invalid_argument, {"no option \"devise\""});
  expect(refused("card.xclbin", ";interrupts=yes"), Code::invalid_argument,
         {"interrupts=yes", "auto, on or off"});
  expect(refused("card.xclbin", ";ip=other"), Code::not_found,
         {"it holds no penstock_card:other", "there are penstock_card:card"});
  expect(refused("card.xclbin", ";interrupts=on"), Code::unsupported,
         {"penstock_card:card has none"});
}

TEST_F(XrtBusTest, TheXclbinCanComeFromTheEnvironment) {
  setenv("PENSTOCK_XCLBIN", file("card.xclbin").c_str(), 1);
  const auto made = card::xrt_bus_factory().make("");
  unsetenv("PENSTOCK_XCLBIN");
  EXPECT_TRUE(made.ok()) << made.status().to_string();
}

TEST_F(XrtBusTest, DevicesThatAreNotThere) {
  // XRT does not count what is emulated, so it is asked.
  expect(refused("card.xclbin", ";device=3"), Code::not_found, {"device=3", "xbutil examine"});
  expect(refused("card.xclbin", ";device=99999999999999999999"), Code::not_found, {"device=9999"});
  expect(refused("card.xclbin", ";device=0000:17:00.1"), Code::not_found, {"device=0000:17:00.1"});
  standin("devices=0");
  expect(refused("card.xclbin"), Code::not_found, {"device=0"});
}

TEST_F(XrtBusTest, NoPermission) {
  standin("no_permission=1");
  expect(refused("card.xclbin"), Code::permission_denied,
         {"device=0", "may not open it", "/dev/dri/renderD"});
}

TEST_F(XrtBusTest, FilesThatAreNoXclbin) {
  expect(refused("no-such.xclbin"), Code::not_found, {"no-such.xclbin", "No such file"});
  expect(card::xrt_bus_factory().make("xclbin=/tmp").status(), Code::io_error, {"xclbin /tmp"});
  expect(refused_change([](std::string& data) { data.clear(); }), Code::corrupt,
         {"it is no xclbin"});
  expect(refused_change([](std::string& data) { data[3] = 'x'; }), Code::corrupt,
         {"those begin with \"xclbin2\""});
  expect(refused_change([](std::string& data) { data.resize(data.size() - 100); }), Code::corrupt,
         {"it says that it is", "bytes long"});
}

TEST_F(XrtBusTest, XclbinsForSomethingElse) {
  expect(refused("platform.xclbin"), Code::unsupported,
         {"made for the platform xilinx_u250_1", "cannot be loaded onto"});
  expect(refused("hls.xclbin"), Code::not_found, {"it holds no penstock_card", "there are "});
  expect(refused("banks.xclbin"), Code::unsupported,
         {"rings of penstock_card:card is connected to HBM[0]", "HOST[0]"});
}

TEST_F(XrtBusTest, AnotherRegisterMap) {
  standin("user_memory=1;version=131072");
  auto made = bus();
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  expect(card::Card::open(std::move(made).value()).status(), Code::unsupported,
         {"version 0x20000 of the register map", "this driver knows 1.x"});
}

TEST_F(XrtBusTest, MemoryThatIsNotThere) {
  standin("user_memory=1;no_host_bank=1");
  auto made = bus();
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  expect((*made)->allocate(4096).status(), Code::no_space, {"no 4096 bytes", "--host-mem"});
  made->reset();
  standin("user_memory=1;most_buffers=1");
  made = bus();
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  auto first = (*made)->allocate(4096);
  ASSERT_TRUE(first.ok()) << first.status().to_string();
  expect((*made)->allocate(4096).status(), Code::no_space, {"no 4096 bytes"});
  (*made)->release(*first);
  auto again = (*made)->allocate(4096);
  EXPECT_TRUE(again.ok());
  // What is not given back goes with the bus.
}

TEST_F(XrtBusTest, ADriverThatTakesNoMemoryOfTheProcess) {
  standin("");
  auto made = bus("card.xclbin", ";memory=direct");
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  void* memory = std::aligned_alloc(4096, 4096);
  expect((*made)->attach(static_cast<std::byte*>(memory), 4096).status(), Code::unsupported,
         {"4096 bytes of this process's memory"});
  std::free(memory);
}

}  // namespace
}  // namespace penstock::sim
