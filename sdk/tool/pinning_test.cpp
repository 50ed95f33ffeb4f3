#include "pinning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

namespace penstock::tool {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two packages of two cores with two CPUs each, numbered as Linux does.
const std::vector<Cpu> kMachine = {{0, 0, 0, 0}, {1, 0, 1, 0}, {2, 1, 0, 1}, {3, 1, 1, 1},
                                   {4, 0, 0, 0}, {5, 0, 1, 0}, {6, 1, 0, 1}, {7, 1, 1, 1}};
// The two CPUs of a core stand side by side.
const std::vector<Cpu> kNeighbours = {{0, 0, 0, 0}, {1, 0, 0, 0}, {2, 0, 1, 0}, {3, 0, 1, 0}};

std::vector<int> numbers(const std::vector<Cpu>& cpus) {
  std::vector<int> found;
  for (const Cpu& cpu : cpus) found.push_back(cpu.number);
  return found;
}

TEST(Pinning, CoresComeBeforeTheirSecondCpus) {
  EXPECT_THAT(numbers(cores_first(kMachine)), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(numbers(cores_first(kNeighbours)), ElementsAre(0, 2, 1, 3));
}

TEST(Pinning, ListsAreTakenInTheirOrder) {
  const auto chosen = [](const std::string& text) {
    auto found = choose_cpus(text, kMachine);
    return found.ok() ? numbers(*found) : std::vector<int>{-1};
  };
  EXPECT_THAT(chosen("3,1"), ElementsAre(3, 1));
  EXPECT_THAT(chosen("4-6,0"), ElementsAre(4, 5, 6, 0));
  EXPECT_THAT(chosen("2,2"), ElementsAre(2, 2));
  EXPECT_THAT(chosen("cpus"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(Pinning, WhatIsNoListIsNamed) {
  for (const std::string text :
       {"", "x", "1,", "3-1", "-1", "1-", "1.5", "99999999999", "0-99999"}) {
    auto found = choose_cpus(text, kMachine);
    ASSERT_FALSE(found.ok()) << text;
    EXPECT_THAT(found.status().message(), HasSubstr("'" + text + "' is no list of CPUs"));
  }
  EXPECT_THAT(choose_cpus("1,8", kMachine).status().message(),
              HasSubstr("CPU 8 is not among those that this process may run on: 0-7"));
  EXPECT_EQ(choose_cpus("cores", {}).status().code(), Code::unsupported);
}

TEST(Pinning, RanksShareACpuWhenThereAreMoreOrItIsListedTwice) {
  const auto own = [](const std::string& list, std::size_t ranks) {
    auto cpus = choose_cpus(list, kMachine);
    return cpus.ok() && has_own_cpus(*cpus, ranks);
  };
  EXPECT_TRUE(own("0-3", 4));
  EXPECT_FALSE(own("0-3", 5));
  EXPECT_TRUE(own("2,1,2", 2));
  EXPECT_FALSE(own("2,1,2", 3));
}

TEST(Pinning, ListsAreWrittenWithRanges) {
  EXPECT_EQ(list_text({0, 1, 2, 8}), "0-2,8");
  EXPECT_EQ(list_text({5}), "5");
  EXPECT_EQ(list_text({}), "");
}

TEST(Pinning, AllowedCpusAreThoseOfTheSystem) {
  cpu_set_t set;
  ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  const std::vector<Cpu> found = allowed_cpus();
  EXPECT_EQ(found.size(), static_cast<std::size_t>(CPU_COUNT(&set)));
  for (const Cpu& cpu : found) EXPECT_TRUE(CPU_ISSET(cpu.number, &set));
  // Without a description every CPU is a core of its own.
  const std::vector<Cpu> bare = allowed_cpus("/nowhere");
  ASSERT_EQ(bare.size(), found.size());
  for (const Cpu& cpu : bare) EXPECT_EQ(cpu.core, cpu.number);
}

}  // namespace
}  // namespace penstock::tool
