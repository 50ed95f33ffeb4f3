#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/engine/engine.h"
#include "penstock/engine/host_engine.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

std::string name_of(const std::string& request) {
  auto engine = make_engine(request);
  return engine.ok() ? (*engine)->capabilities().name : engine.status().to_string();
}

TEST(Registry, HostEnginesAreThereBestFirst) {
  const std::vector<EngineInfo> engines = list_engines();
  ASSERT_GE(engines.size(), 3u);
  EXPECT_EQ(engines[0].name, "simd");
  EXPECT_EQ(engines[1].name, "scalar");
  EXPECT_EQ(engines.back().name, "fault");
  for (const EngineInfo& info : engines) EXPECT_TRUE(info.available) << info.name;
  EXPECT_EQ(engines[1].capabilities.opcodes, 0x1ffu);
  EXPECT_EQ(engines[1].capabilities.redops[PENSTOCK_F8E5M2], 0x3fu);
  EXPECT_EQ(engines[1].capabilities.max_sources, 64u);
}

TEST(Registry, ByName) {
  EXPECT_EQ(name_of("scalar"), "scalar");
  EXPECT_EQ(name_of("auto"), "simd");
  EXPECT_EQ(name_of("nothing,scalar,simd"), "scalar");
  EXPECT_EQ(name_of("fault:scalar;fail=1:busy"), "fault:scalar");
}

TEST(Registry, Refusals) {
  EXPECT_EQ(make_engine("gpu").status().code(), Code::not_found);
  EXPECT_THAT(name_of("gpu"), HasSubstr("simd, scalar, "));
  EXPECT_EQ(make_engine("").status().code(), Code::not_found);
  EXPECT_EQ(make_engine("a,b").status().code(), Code::not_found);
  EXPECT_THAT(name_of("a,b"), HasSubstr("\"a\""));  // the first is what was wanted
  EXPECT_EQ(make_engine("scalar:fast").status().code(), Code::invalid_argument);
  EXPECT_EQ(make_engine("fault").status().code(), Code::invalid_argument);
  EXPECT_EQ(make_engine("fault:fault:").status().code(), Code::invalid_argument);
}

TEST(Registry, DriversRegister) {
  EngineFactory absent;
  absent.name = "absent-card";
  absent.preference = 500;
  absent.probe = [] { return EngineInfo{"absent-card", false, "no such device", {}}; };
  absent.make = [](const std::string&) -> Result<std::shared_ptr<Engine>> {
    return error(Code::internal, "must not be asked");
  };
  EXPECT_TRUE(register_engine(absent).ok());
  EXPECT_EQ(register_engine(absent).code(), Code::already_exists);
  EXPECT_EQ(list_engines().front().name, "absent-card");
  EXPECT_EQ(name_of("auto"), "simd");
  EXPECT_EQ(make_engine("absent-card").status().code(), Code::unsupported);
  EXPECT_THAT(name_of("absent-card"), HasSubstr("no such device"));
  EXPECT_EQ(name_of("absent-card,scalar"), "scalar");

  EngineFactory argued;
  argued.name = "argued";
  argued.preference = -1;
  argued.probe = [] { return EngineInfo{"argued", true, "", {}}; };
  argued.make = [](const std::string& argument) -> Result<std::shared_ptr<Engine>> {
    Capabilities c;
    c.name = "argued with " + argument;
    return std::shared_ptr<Engine>(make_host_engine(c, scalar_kernels()));
  };
  EXPECT_TRUE(register_engine(argued).ok());
  EXPECT_EQ(name_of("argued:a:b"), "argued with a:b");

  argued.name = "no spaces";
  EXPECT_EQ(register_engine(argued).code(), Code::invalid_argument);
  argued.name = "auto";
  EXPECT_EQ(register_engine(argued).code(), Code::invalid_argument);
  argued.name = "incomplete";
  argued.make = nullptr;
  EXPECT_EQ(register_engine(argued).code(), Code::invalid_argument);
}

TEST(Registry, APluginsEngineWorks) {
  const Status loaded = load_engine_plugin(PENSTOCK_TEST_PLUGIN);
  ASSERT_TRUE(loaded.ok()) << loaded.to_string();
  auto engine = make_engine("from-plugin");
  ASSERT_TRUE(engine.ok()) << engine.status().to_string();
  auto queue = Queue::create(nullptr, QueueConfig{}).value();
  penstock_descriptor nop{};
  nop.version = 1;
  nop.cookie = 5;
  ASSERT_TRUE(queue->submit(nop));
  EXPECT_EQ((*engine)->advance(*queue), 1u);
  penstock_completion completion;
  ASSERT_TRUE(queue->poll(&completion));
  EXPECT_EQ(completion.cookie, 5u);
}

TEST(Registry, PluginsThatAreNone) {
  const Status missing = load_engine_plugin("/nowhere/plugin.so");
  EXPECT_EQ(missing.code(), Code::not_found);
  EXPECT_THAT(missing.message(), HasSubstr("/nowhere/plugin.so"));
  EXPECT_EQ(load_engine_plugin("libm.so.6").code(), Code::unsupported);
}

}  // namespace
}  // namespace penstock
