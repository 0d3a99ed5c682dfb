// What Debian's UCX and Open MPI make of what we write: their own tools say which value they end at.
#include <gtest/gtest.h>

#include <map>

#include "cni/nccl/stack_files.h"
#include "tests/support/process.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

using Environment = std::map<std::string, std::string>;

nccl::Handoff TwoNics() {
  nccl::Handoff handoff;
  handoff.nics = {{"mlx5_4", *IpAddress::Parse("10.100.0.7"), 3, 106, 5},
                  {"mlx5_9", *IpAddress::Parse("10.101.0.7"), 3, 106, 5}};
  handoff.gids = 3;
  handoff.socket_ifname = "eth0";
  return handoff;
}

class UcxReadsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto conf = UcxConf(TwoNics(), [](const nccl::HandoffNic&) { return std::vector<GidEntry>(); });
    ASSERT_TRUE(conf);
    temp_.Write("/ucx.conf", *conf);
  }
  // Its configuration, a line "NAME=VALUE" each.
  [[nodiscard]] std::string Ends(Environment more = {}) const {
    more["UCX_CONFIG_DIR"] = temp_.directory();
    more["PATH"] = "/usr/bin:/bin";
    const auto run = RunProcess({"/usr/bin/ucx_info", "-c"}, more, "");
    EXPECT_EQ(run.status, 0) << run.err;
    return "\n" + run.out;
  }

  TempRoot temp_;
};

TEST_F(UcxReadsTest, EveryLineOfTheFile) {
  const std::string ends = Ends();
  for (const char* line : {"\nUCX_NET_DEVICES=mlx5_4:1,mlx5_9:1,eth0\n", "\nUCX_IB_GID_INDEX=3\n",
                           "\nUCX_RC_VERBS_TRAFFIC_CLASS=106\n", "\nUCX_RC_MLX5_SL=5\n"})
    EXPECT_NE(ends.find(line), std::string::npos) << line << ends;
}

TEST_F(UcxReadsTest, TheUsersEnvironmentWins) {
  EXPECT_NE(Ends({{"UCX_IB_GID_INDEX", "7"}}).find("\nUCX_IB_GID_INDEX=7\n"), std::string::npos);
}

TEST(OpenMpiReadsTest, TheInterfacesOfItsOwnTraffic) {
  Environment environment{{"PATH", "/usr/bin:/bin"}, {"HOME", "/nonexistent"}};
  for (const auto& [name, value] : OpenMpiVariables(TwoNics())) environment[name] = value;
  const auto run = RunProcess({"/usr/bin/ompi_info", "--all", "--parsable"}, environment, "");
  ASSERT_EQ(run.status, 0) << run.err;
  for (const char* parameter : {"btl:tcp:param:btl_tcp_if_include", "oob:tcp:param:oob_tcp_if_include"}) {
    EXPECT_NE(run.out.find(std::string("mca:") + parameter + ":value:eth0\n"), std::string::npos)
        << parameter;
    EXPECT_NE(run.out.find(std::string("mca:") + parameter + ":source:environment\n"), std::string::npos);
  }
}

}  // namespace
}  // namespace railhead::testing
