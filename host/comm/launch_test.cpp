#include "penstock/comm/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class LaunchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"PENSTOCK_RANK",
                             "PENSTOCK_SIZE",
                             "PENSTOCK_COMM",
                             "RANK",
                             "WORLD_SIZE",
                             "LOCAL_RANK",
                             "LOCAL_WORLD_SIZE",
                             "TORCHELASTIC_RUN_ID",
                             "MASTER_PORT",
                             "OMPI_COMM_WORLD_RANK",
                             "OMPI_COMM_WORLD_SIZE",
                             "OMPI_COMM_WORLD_LOCAL_RANK",
                             "OMPI_COMM_WORLD_LOCAL_SIZE",
                             "OMPI_MCA_ess_base_jobid",
                             "PMIX_NAMESPACE",
                             "PMI_RANK",
                             "PMI_SIZE",
                             "PMI_JOBID",
                             "MPI_LOCALRANKID",
                             "MPI_LOCALNRANKS",
                             "SLURM_PROCID",
                             "SLURM_NTASKS",
                             "SLURM_LOCALID",
                             "SLURM_STEP_ID",
                             "SLURM_JOB_ID",
                             "SLURM_NODEID",
                             "SLURM_STEP_TASKS_PER_NODE"}) {
      ::unsetenv(name);
    }
  }

  static void set(const std::map<std::string, std::string>& variables) {
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  }

  static void expect(const std::string& launcher, std::uint32_t rank, std::uint32_t size,
                     std::uint32_t local_rank, std::uint32_t local_size, const std::string& job) {
    auto launch = detect_launch();
    ASSERT_TRUE(launch.ok()) << launch.status().to_string();
    EXPECT_EQ(launch->launcher, launcher);
    EXPECT_EQ(launch->rank, rank);
    EXPECT_EQ(launch->size, size);
    EXPECT_EQ(launch->local_rank, local_rank);
    EXPECT_EQ(launch->local_size, local_size);
    EXPECT_EQ(launch->job, job);
  }

  template <typename Matcher>
  static void expect_error(const Matcher& matcher) {
    auto launch = detect_launch();
    ASSERT_FALSE(launch.ok());
    EXPECT_EQ(launch.status().code(), Code::invalid_argument);
    EXPECT_THAT(launch.status().message(), matcher);
  }
};

TEST_F(LaunchTest, Alone) { expect("none", 0, 1, 0, 1, ""); }

TEST_F(LaunchTest, Penstock) {
  set({{"PENSTOCK_RANK", "2"}, {"PENSTOCK_SIZE", "4"}});
  expect("penstock", 2, 4, 2, 4, "world");
  set({{"PENSTOCK_COMM", "training"}});
  expect("penstock", 2, 4, 2, 4, "training");
}

TEST_F(LaunchTest, PenstockComesBeforeAllOthers) {
  set({{"PENSTOCK_RANK", "0"}, {"PENSTOCK_SIZE", "2"}, {"RANK", "7"}, {"WORLD_SIZE", "8"}});
  expect("penstock", 0, 2, 0, 2, "world");
}

TEST_F(LaunchTest, Torchrun) {
  set({{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}});
  expect("torchrun", 5, 8, 1, 4, "torchrun-" + std::to_string(::getppid()));
  set({{"MASTER_PORT", "29500"}});
  expect("torchrun", 5, 8, 1, 4, "torchrun-29500");
  set({{"TORCHELASTIC_RUN_ID", "none"}});
  expect("torchrun", 5, 8, 1, 4, "none-29500");
  ::unsetenv("LOCAL_WORLD_SIZE");
  expect("torchrun", 5, 8, 1, 8, "none-29500");
}

TEST_F(LaunchTest, OpenMpi) {
  set({{"OMPI_COMM_WORLD_RANK", "3"},
       {"OMPI_COMM_WORLD_SIZE", "6"},
       {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
       {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
       {"PMIX_NAMESPACE", "prterun-host-17@1"}});
  auto launch = detect_launch();
  ASSERT_TRUE(launch.ok());
  // '@' cannot stay, and what is changed says so by a hash.
  EXPECT_THAT(launch->job, ::testing::MatchesRegex("openmpi-prterun-host-17_1-[0-9a-f]+"));
  set({{"OMPI_MCA_ess_base_jobid", "1234567"}});
  expect("openmpi", 3, 6, 1, 2, "openmpi-1234567");
}

TEST_F(LaunchTest, Mpich) {
  set({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
  expect("mpich", 1, 2, 1, 2, "mpich-" + std::to_string(::getppid()));
  set({{"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}, {"PMI_JOBID", "77"}});
  expect("mpich", 1, 2, 0, 1, "mpich-77");
}

TEST_F(LaunchTest, SlurmOnlyInsideAStep) {
  set({{"SLURM_PROCID", "4"},
       {"SLURM_NTASKS", "7"},
       {"SLURM_LOCALID", "0"},
       {"SLURM_JOB_ID", "9"},
       {"SLURM_NODEID", "2"},
       {"SLURM_STEP_TASKS_PER_NODE", "2(x2),3"}});
  expect("none", 0, 1, 0, 1, "");
  set({{"SLURM_STEP_ID", "0"}});
  expect("slurm", 4, 7, 0, 3, "slurm-9.0");
  set({{"SLURM_NODEID", "1"}});
  expect("slurm", 4, 7, 0, 2, "slurm-9.0");
  for (const char* broken : {"2(x2", "x", "2;3", "(x2)", ",", "2(x9999999999)"}) {
    set({{"SLURM_STEP_TASKS_PER_NODE", broken}});
    expect("slurm", 4, 7, 0, 7, "slurm-9.0");
  }
}

TEST_F(LaunchTest, IncompleteSetsNameBothVariables) {
  set({{"PENSTOCK_RANK", "2"}});
  expect_error(AllOf(HasSubstr("PENSTOCK_RANK=2"), HasSubstr("PENSTOCK_SIZE is not")));
  ::unsetenv("PENSTOCK_RANK");
  set({{"WORLD_SIZE", "8"}});
  expect_error(AllOf(HasSubstr("WORLD_SIZE=8"), HasSubstr("RANK is not")));
}

TEST_F(LaunchTest, EmptyIsUnset) {
  set({{"PENSTOCK_RANK", ""}, {"PENSTOCK_SIZE", ""}});
  expect("none", 0, 1, 0, 1, "");
}

TEST_F(LaunchTest, ContradictionsNameTheVariable) {
  set({{"PENSTOCK_RANK", "4"}, {"PENSTOCK_SIZE", "4"}});
  expect_error(HasSubstr("PENSTOCK_RANK=4 must be below PENSTOCK_SIZE=4"));
  set({{"PENSTOCK_SIZE", "0"}});
  expect_error(HasSubstr("PENSTOCK_SIZE=0"));
  for (const char* text : {"-1", "+1", " 1", "1 ", "0x1", "one", "4294967296", "1.0"}) {
    set({{"PENSTOCK_RANK", text}});
    expect_error(HasSubstr(std::string("PENSTOCK_RANK=") + text));
  }
  SetUp();
  set({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}});
  expect_error(HasSubstr("rank 2 of 2 on this host"));
  set({{"LOCAL_WORLD_SIZE", "5"}});
  expect_error(HasSubstr("rank 2 of 5 on this host"));
}

TEST_F(LaunchTest, JobsAreBoundedNamesThatStayApart) {
  set({{"PENSTOCK_RANK", "0"}, {"PENSTOCK_SIZE", "1"}});
  std::map<std::string, std::string> seen;
  for (const std::string& name :
       {std::string("a/b"), std::string("a b"), std::string("a_b"), std::string("../../etc/passwd"),
        std::string(5000, 'x'), std::string(5000, 'x') + "y", std::string("\xc3\xa9")}) {
    set({{"PENSTOCK_COMM", name}});
    auto launch = detect_launch();
    ASSERT_TRUE(launch.ok());
    EXPECT_THAT(launch->job, ::testing::MatchesRegex("[A-Za-z0-9._-]+"));
    EXPECT_LE(launch->job.size(), 48u);
    EXPECT_TRUE(seen.emplace(launch->job, name).second)
        << launch->job << " is the job of " << name << " and of " << seen[launch->job];
  }
}

TEST_F(LaunchTest, PoolIsNamedAfterUserAndJob) {
  Launch launch;
  launch.job = "j1";
  EXPECT_EQ(default_pool_spec(launch), "/dev/shm/penstock-" + std::to_string(::getuid()) + "-j1");
}

}  // namespace
}  // namespace penstock
