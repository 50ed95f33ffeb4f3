#include "penstock/sched/kubernetes_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/descriptor/node_table.h"

namespace penstock {
namespace {

using testing::HasSubstr;

struct RequestCase {
  const char* what;
  PodRequest pod;
  Amounts plain;   // what is subtracted
  Amounts scored;  // with the defaults of 100 m and 200 MiB
};

constexpr std::int64_t kDefault = 209715200;  // 200 MiB

TEST(KubernetesRequest, CountsAsUpstreamDoes) {
  const RequestCase cases[] = {
      {"no containers", {{}, {}, {}, {}}, {}, {}},
      {"one that names nothing",
       {{{{}, false}}, {}, {}, {}},
       {},
       {{"cpu", 100}, {"memory", kDefault}}},
      {"an explicit 0 stays",
       {{{{{"cpu", 0}}, false}}, {}, {}, {}},
       {{"cpu", 0}},
       {{"cpu", 0}, {"memory", kDefault}}},
      {"the larger of an init container and the sum",
       {{{{{"cpu", 1000}}, false}, {{{"cpu", 500}}, false}}, {{{{"cpu", 1700}}, false}}, {}, {}},
       {{"cpu", 1700}},
       {{"cpu", 1700}, {"memory", 2 * kDefault}}},
      // 1 runs before the sidecar, 2 beside it; the sidecar stays beside the container.
      {"sidecars count for what comes after them",
       {{{{{"cpu", 300}, {"memory", 1}}, false}},
        {{{{"cpu", 600}, {"memory", 1}}, false},
         {{{"cpu", 200}, {"memory", 1}}, true},
         {{{"cpu", 450}, {"memory", 1}}, false}},
        {},
        {}},
       {{"cpu", 650}, {"memory", 2}},
       {{"cpu", 650}, {"memory", 2}}},
      {"overhead comes on top",
       {{{{{"cpu", 1000}}, false}}, {{{{"cpu", 2000}}, false}}, {}, {{"cpu", 50}, {"memory", 7}}},
       {{"cpu", 2050}, {"memory", 7}},
       {{"cpu", 2050}, {"memory", kDefault + 7}}},
      {"the pod's own requests take the place of the containers'",
       {{{{{"cpu", 1000}, {"example.com/x", 2}}, false}},
        {},
        {{"cpu", 300}, {"hugepages-2Mi", 5}, {"example.com/x", 9}},
        {{"cpu", 10}}},
       {{"cpu", 310}, {"hugepages-2Mi", 5}, {"example.com/x", 2}},
       {{"cpu", 310}, {"hugepages-2Mi", 5}, {"example.com/x", 2}, {"memory", kDefault}}},
      // Upstream: the second container counts no default cpu, since the first names some.
      {"with requests of its own only what nobody names is defaulted",
       {{{{{"cpu", 1000}}, false}, {{}, false}}, {}, {{"memory", 64}}, {}},
       {{"cpu", 1000}, {"memory", 64}},
       {{"cpu", 1000}, {"memory", 64}}},
      {"requests of its own that do not count",
       {{{{{"cpu", 1000}}, false}, {{}, false}}, {}, {{"ephemeral-storage", 64}}, {}},
       {{"cpu", 1000}},
       {{"cpu", 1100}, {"memory", 2 * kDefault}}},
  };
  for (const RequestCase& c : cases) {
    EXPECT_EQ(total_request(c.pod, false).value(), c.plain) << c.what;
    EXPECT_EQ(total_request(c.pod, true).value(), c.scored) << c.what;
  }
}

TEST(KubernetesRequest, AbsurdSizesAreRefusedAndDoNotOverflow) {
  PodRequest pod;
  for (int i = 0; i < 2000; ++i)
    pod.containers.push_back({{{"memory", PENSTOCK_MAX_REQUEST}}, false});
  const auto total = total_request(pod, true);
  ASSERT_FALSE(total.ok());
  EXPECT_EQ(total.status().code(), Code::out_of_range);
  EXPECT_THAT(total.status().message(), HasSubstr("more than 2^53 of memory"));
  pod.containers.resize(1);
  EXPECT_EQ(total_request(pod, false).value().at("memory"), PENSTOCK_MAX_REQUEST);
  pod.overhead = {{"memory", 1}};
  EXPECT_FALSE(total_request(pod, false).ok());
}

}  // namespace
}  // namespace penstock
