// Which device is taken, and what it is said to do.
#include "penstock/drivers/opencl/device_choice.h"

#include <gmock/gmock.h>

#include "penstock/drivers/opencl/opencl_rig_test.h"
#include "penstock/engine/accept.h"

namespace penstock::opencl {
namespace {

using ::testing::HasSubstr;

TEST(OpenclOptions, ADeviceThenOptions) {
  Options o = Options::parse("").value();
  EXPECT_EQ(o.device, "");
  EXPECT_FALSE(o.staged);
  o = Options::parse("Arc A770;staged=1;cache=/x/y;chunk=65536").value();
  EXPECT_EQ(o.device, "Arc A770");
  EXPECT_TRUE(o.staged);
  EXPECT_EQ(o.cache, "/x/y");
  EXPECT_EQ(o.chunk_bytes, 65536u);
  o = Options::parse(";staged").value();
  EXPECT_EQ(o.device, "");
  EXPECT_TRUE(o.staged);
  o = Options::parse("staged=1").value();
  EXPECT_EQ(o.device, "");
  EXPECT_TRUE(o.staged);
  o = Options::parse("2;cache=none").value();
  EXPECT_EQ(o.device, "2");
  EXPECT_EQ(o.cache, "none");
}

TEST(OpenclOptions, WhatMakesNoSenseIsNamed) {
  const auto wrong = [](const std::string& text) {
    const auto parsed = Options::parse(text);
    EXPECT_EQ(parsed.status().code(), Code::invalid_argument) << text;
    return parsed.status().message();
  };
  EXPECT_THAT(wrong("gpu;stagd=1"), HasSubstr("no option \"stagd\"; there are staged, cache"));
  EXPECT_THAT(wrong("gpu;staged=yes"), HasSubstr("staged=yes: it is 0 or 1"));
  EXPECT_THAT(wrong(";chunk=9"), HasSubstr("chunk=9: it is 65536 to"));
  EXPECT_THAT(wrong(";chunk=65536x"), HasSubstr("chunk=65536x"));
  EXPECT_THAT(wrong(";cache="), HasSubstr("cache"));
}

class DeviceChoiceTest : public OpenclTest {};

TEST_F(DeviceChoiceTest, ByNumberAndByAPartOfItsNameInAnyCase) {
  auto devices = list_devices();
  ASSERT_TRUE(devices.ok());
  const std::string& first = devices->front().traits.name;
  EXPECT_EQ(choose_device("0").value().traits.name, first);
  std::string part = first.substr(1, 5);
  for (char& c : part) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  EXPECT_TRUE(choose_device(part).ok());
  EXPECT_TRUE(choose_device("").ok());
}

TEST_F(DeviceChoiceTest, AWrongNameListsTheDevicesThereAre) {
  const std::string first = list_devices()->front().traits.name;
  for (const char* wrong : {"no such device", "4711"}) {
    const auto chosen = choose_device(wrong);
    EXPECT_EQ(chosen.status().code(), Code::not_found);
    EXPECT_THAT(chosen.status().message(), HasSubstr(wrong));
    EXPECT_THAT(chosen.status().message(), HasSubstr("there are 0: " + first));
  }
  const auto made = opencl_engine_factory().make("no such device");
  EXPECT_EQ(made.status().code(), Code::not_found);
  EXPECT_THAT(made.status().message(), HasSubstr("engine opencl: no OpenCL device is called"));
}

TEST_F(DeviceChoiceTest, SeveralDevicesAreVariantsByNumber) {
  EXPECT_TRUE(opencl_engine_factory().probe().variants.size() != 1);
  const std::size_t n = list_devices()->size();
  faults_->tell.twins = true;
  const EngineInfo info = opencl_engine_factory().probe();
  ASSERT_EQ(info.variants.size(), 2 * n);
  for (const EngineVariant& variant : info.variants) {
    EXPECT_THAT(variant.name, testing::StartsWith("opencl:"));
    EXPECT_FALSE(variant.simulated);
    EXPECT_EQ(choose_device(variant.name.substr(7)).ok(), variant.available) << variant.reason;
  }
}

TEST_F(DeviceChoiceTest, NoPlatformAndNoDevice) {
  // CL_PLATFORM_NOT_FOUND_KHR
  faults_->fail("clGetPlatformIDs", -1001);
  EXPECT_EQ(list_devices().status().code(), Code::not_found);
  EXPECT_THAT(list_devices().status().message(), HasSubstr("no OpenCL platform is installed"));
  const EngineInfo info = opencl_engine_factory().probe();
  EXPECT_FALSE(info.available);
  EXPECT_THAT(info.reason, HasSubstr("no OpenCL platform is installed"));
  faults_->fail("clGetDeviceIDs", CL_DEVICE_NOT_FOUND);
  EXPECT_EQ(list_devices().status().code(), Code::not_found);
  EXPECT_THAT(list_devices().status().message(), HasSubstr("no OpenCL platform has a device"));
  faults_->fail("clGetDeviceIDs", CL_OUT_OF_HOST_MEMORY);
  EXPECT_EQ(list_devices().status().to_string(),
            "no_space: clGetDeviceIDs on the OpenCL runtime: CL_OUT_OF_HOST_MEMORY");
}

TEST_F(DeviceChoiceTest, WhatCannotBeUsedSaysWhy) {
  const std::string first = list_devices()->front().traits.name;
  faults_->tell.info[0] = {CL_DEVICE_COMPILER_AVAILABLE, 0};
  auto chosen = choose_device("0");
  EXPECT_EQ(chosen.status().code(), Code::unsupported);
  EXPECT_EQ(chosen.status().message(),
            "OpenCL device " + first + " cannot be used: it has no compiler");
  chosen = choose_device("");
  EXPECT_EQ(chosen.status().code(), Code::unsupported);
  EXPECT_THAT(chosen.status().message(), HasSubstr("it has no compiler"));
  faults_->tell.info[0] = {CL_DEVICE_ADDRESS_BITS, 32};
  EXPECT_THAT(choose_device("").status().message(), HasSubstr("64 bits"));
}

// What a device cannot do exactly it does not do.
TEST_F(DeviceChoiceTest, InexactFloatsAreNoCapability) {
  constexpr std::uint32_t kAll = (1u << PENSTOCK_REDOP_COUNT) - 1;
  faults_->tell.info[0] = {CL_DEVICE_DOUBLE_FP_CONFIG, 0};
  Capabilities c = capabilities_of(choose_device("0")->traits);
  EXPECT_EQ(c.redops[PENSTOCK_F64], 0u);
  EXPECT_EQ(c.redops[PENSTOCK_F32], kAll);
  EXPECT_THAT(c.description, HasSubstr("no f64"));
  faults_->tell.info[1] = {CL_DEVICE_SINGLE_FP_CONFIG, CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST};
  c = capabilities_of(choose_device("0")->traits);
  EXPECT_THAT(c.description, HasSubstr("no floats"));
  for (std::uint32_t type = 0; type < PENSTOCK_TYPE_COUNT; ++type) {
    const bool integer = type <= PENSTOCK_UINT64;
    EXPECT_EQ(c.redops[type], integer ? kAll : 0u) << penstock_type_name(type);
    EXPECT_EQ(c.out_types[type], 0u);
  }
  EXPECT_EQ(c.opcodes >> PENSTOCK_OP_OUTER_STEP & 1, 0u);
  // They are refused by their type.
  penstock_descriptor d = sum_of({this, this}, this, 1);
  EXPECT_TRUE(accept_descriptor(c, d).ok());
  d.type = d.out_type = PENSTOCK_BF16;
  EXPECT_EQ(accept_descriptor(c, d).to_string(), "unsupported: opencl: REDUCE: sum of bf16");
}

}  // namespace
}  // namespace penstock::opencl
