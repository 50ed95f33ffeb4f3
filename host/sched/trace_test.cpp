#include "penstock/sched/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

using testing::HasSubstr;

TEST(Trace, ReadsNodes) {
  const auto nodes = read_trace_nodes(PENSTOCK_TESTDATA "/nodes.csv");
  ASSERT_TRUE(nodes.ok()) << nodes.status().to_string();
  const auto& list = nodes.value();
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list[0].name, "big-0");
  EXPECT_EQ(list[0].cpu_milli, 96000);
  EXPECT_EQ(list[0].memory_mib, 393216);
  EXPECT_EQ(list[0].gpus, 8u);
  EXPECT_EQ(list[0].model, "G2");
  EXPECT_EQ(list[3].name, "plain-0");
  EXPECT_EQ(list[3].gpus, 0u);
  EXPECT_EQ(list[3].model, "");
}

TEST(Trace, ReadsPods) {
  const auto pods = read_trace_pods(PENSTOCK_TESTDATA "/pods.csv");
  ASSERT_TRUE(pods.ok()) << pods.status().to_string();
  const auto& list = pods.value();
  ASSERT_EQ(list.size(), 10u);
  EXPECT_EQ(list[1].name, "shared-460");
  EXPECT_EQ(list[1].cpu_milli, 6000);
  EXPECT_EQ(list[1].memory_mib, 12288);
  EXPECT_EQ(list[1].num_gpu, 1u);
  EXPECT_EQ(list[1].gpu_milli, 460u);
  EXPECT_EQ(list[1].gpu_spec, "");
  EXPECT_EQ(list[4].gpu_spec, "T4|P100");
  EXPECT_EQ(list[5].num_gpu, 4u);
  EXPECT_EQ(list[5].gpu_milli, 1000u);
}

TEST(Trace, NodesThatAreWrongAreNamed) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"", "n.csv: the file is empty"},
      {"sn,cpu_milli,memory_mib,gpu,model\n", "n.csv: no row after the header, expected a node"},
      {"sn,cpu_milli,gpu,model\na,1,1,x\n", "n.csv:1: the header lacks the column 'memory_mib'"},
      {"sn,cpu_milli,memory_mib,gpu,model\na,-1,1,1,x\n",
       "n.csv:2: column 'cpu_milli': found '-1', expected a whole number from 0 to "
       "9007199254740992"},
      {"sn,cpu_milli,memory_mib,gpu,model\na,9223372036854775808,1,1,x\n",
       "n.csv:2: column 'cpu_milli': found '9223372036854775808'"},
      {"sn,cpu_milli,memory_mib,gpu,model\na,1,9007199254740993,1,x\n",
       "n.csv:2: column 'memory_mib': found '9007199254740993'"},
      {"sn,cpu_milli,memory_mib,gpu,model\na,1,1,17,x\n",
       "n.csv:2: column 'gpu': found '17', expected a whole number from 0 to 16"},
      {"sn,cpu_milli,memory_mib,gpu,model\na,one,1,1,x\n",
       "n.csv:2: column 'cpu_milli': found 'one'"},
      {"sn,cpu_milli,memory_mib,gpu,model\na,1,1,1,x\nb,1,1,1,x\na,1,1,1,x\n",
       "n.csv:4: column 'sn': found 'a', expected a name of its own; line 2 has it already"},
      {"sn,cpu_milli,memory_mib,gpu,model\n,1,1,1,x\n", "n.csv:2: column 'sn': found ''"},
      {"sn,cpu_milli,memory_mib,gpu,model\na,1,1,1,x|y\n", "n.csv:2: column 'model': found 'x|y'"},
      {"sn,cpu_milli,memory_mib,gpu,model\na,1,1,1\n", "n.csv:2: found 4 fields, expected 5"},
  };
  for (const auto& c : cases) {
    const auto nodes = parse_trace_nodes(c.text, "n.csv");
    ASSERT_FALSE(nodes.ok()) << c.message;
    EXPECT_EQ(nodes.status().code(), Code::invalid_argument);
    EXPECT_THAT(nodes.status().message(), HasSubstr(c.message));
  }
}

TEST(Trace, PodsThatAreWrongAreNamed) {
  const std::string header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n";
  const struct {
    std::string text;
    const char* message;
  } cases[] = {
      {header, "p.csv: no row after the header, expected a pod"},
      {"name,cpu_milli,memory_mib,num_gpu,gpu_spec\n", "the header lacks the column 'gpu_milli'"},
      {header + "a,1,1,1,1001,\n",
       "p.csv:2: column 'gpu_milli': found '1001', expected a whole number from 0 to 1000"},
      {header + "a,1,1,1,-5,\n", "p.csv:2: column 'gpu_milli': found '-5'"},
      {header + "a,1,1,2,500,\n",
       "p.csv:2: column 'gpu_milli': found '500', expected 1000, since num_gpu is 2"},
      {header + "a,1,1,1,0,\n", "p.csv:2: column 'gpu_milli': found '0', expected 1 to 1000"},
      {header + "a,1,1,0,10,\n", "p.csv:2: column 'gpu_milli': found '10', expected 0"},
      {header + "a,1,1,17,1000,\n", "p.csv:2: column 'num_gpu': found '17'"},
      {header + "a,1,1,1,1000,\nb,1e3,1,1,1000,\n", "p.csv:3: column 'cpu_milli': found '1e3'"},
      {header + "a,1\n", "p.csv:2: found 2 fields, expected 6"},
  };
  for (const auto& c : cases) {
    const auto pods = parse_trace_pods(c.text, "p.csv");
    ASSERT_FALSE(pods.ok()) << c.message;
    EXPECT_EQ(pods.status().code(), Code::invalid_argument);
    EXPECT_THAT(pods.status().message(), HasSubstr(c.message));
  }
}

TEST(Trace, AMissingFileIsNamed) {
  EXPECT_EQ(read_trace_nodes("/nonexistent/nodes.csv").status().code(), Code::not_found);
  EXPECT_EQ(read_trace_pods("/nonexistent/pods.csv").status().code(), Code::not_found);
}

}  // namespace
}  // namespace penstock
