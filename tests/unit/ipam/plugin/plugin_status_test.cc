// railhead-ipam STATUS: whether ADD would succeed, found out without a trace.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/ipam/run_ipam.h"
#include "tests/support/ipam/support.h"

namespace railhead::testing {
namespace {

using nlohmann::json;

class StatusTest : public ::testing::Test {
 protected:
  static json Config(const json& ipam) {
    json config{{"cniVersion", "1.1.0"}, {"name", "net"}, {"type", "macvlan"}, {"ipam", ipam}};
    config["ipam"]["type"] = "railhead-ipam";
    return config;
  }
  // "" when all is well.
  std::string Status(const json& ipam) {
    const Answer answer = RunIpam(scratch_.path(), {"STATUS", "", Config(ipam).dump(), "", ""});
    return answer.status == 0 ? answer.out : answer.Error();
  }
  void Add(const std::string& container, const json& ipam) {
    const Answer added = RunIpam(scratch_.path(), {"ADD", container, Config(ipam).dump()});
    ASSERT_EQ(added.status, 0) << added.out;
  }
  std::string Bytes() {
    std::ifstream file(scratch_.StorePath(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  ScratchRoot scratch_;
  const json two_{{"subnet", "10.0.0.0/30"}, {"restSeconds", 100}};
};

TEST_F(StatusTest, SoundWithoutAStoreAndWithOne) {
  EXPECT_EQ(Status(two_), "");
  EXPECT_TRUE(std::filesystem::is_empty(scratch_.path())) << "STATUS made something";
  Add("a", two_);
  const std::string before = Bytes();
  EXPECT_EQ(Status(two_), "");
  EXPECT_EQ(Bytes(), before);
}

TEST_F(StatusTest, AFullPoolIsCode50) {
  Add("a", two_);
  Add("b", two_);
  EXPECT_EQ(Status(two_).rfind("50: no free address in 10.0.0.1-10.0.0.2", 0), 0U) << Status(two_);
  ASSERT_EQ(RunIpam(scratch_.path(), {"DEL", "a", Config(two_).dump()}).status, 0);
  EXPECT_NE(Status(two_).find("resting 1"), std::string::npos) << Status(two_);
  json no_rest = two_;
  no_rest["restSeconds"] = 0;
  EXPECT_EQ(Status(no_rest), "");
}

TEST_F(StatusTest, OfLinksEachHasToHaveOne) {
  const json links{{"links", json::array({{{"ifname", "rail0"}, {"subnet", "10.0.1.0/24"}},
                                          {{"ifname", "rail1"}, {"subnet", "10.0.0.1/32"}}})}};
  EXPECT_EQ(Status(links), "");
  Add("a", json{{"subnet", "10.0.0.1/32"}});
  EXPECT_NE(Status(links).find("50: rail1: no free address in 10.0.0.1 "), std::string::npos)
      << Status(links);
}

TEST_F(StatusTest, ABrokenStoreIsCode50) {
  scratch_.Write("/var/lib/railhead/ipam/store.mdb", std::string(9000, 'x'));
  for (const json& ipam : {two_, json::object()}) {
    EXPECT_EQ(Status(ipam).substr(0, 3), "50:") << Status(ipam);
    EXPECT_NE(Status(ipam).find(scratch_.StorePath()), std::string::npos) << Status(ipam);
    EXPECT_NE(Status(ipam).find("move it away"), std::string::npos) << Status(ipam);
  }
}

TEST_F(StatusTest, NoPlaceForAStoreIsCode50) {
  scratch_.Write("/var", "a file");
  EXPECT_EQ(Status(two_).substr(0, 3), "50:") << Status(two_);
  EXPECT_NE(Status(two_).find(scratch_.path() + "/var: "), std::string::npos) << Status(two_);
}

TEST_F(StatusTest, ABrokenConfigurationIsCode50) {
  EXPECT_EQ(Status({{"subnet", 7}}), "50: network configuration: /ipam/subnet: is not a string but number");
  const std::string error = Status({{"rail", "rail0"}});
  EXPECT_EQ(error.substr(0, 3), "50:") << error;
  EXPECT_NE(error.find("/etc/railhead/fabric.json, which does not exist"), std::string::npos) << error;
}

// Below railhead the rail is known only when there is a device.
TEST_F(StatusTest, WithoutARailTheStoreIsLookedAt) {
  EXPECT_EQ(Status(json::object()), "");
  Add("a", two_);
  EXPECT_EQ(Status(json::object()), "");
}

TEST_F(StatusTest, OlderVersionsHaveNoStatus) {
  json config = Config(two_);
  config["cniVersion"] = "1.0.0";
  EXPECT_EQ(RunIpam(scratch_.path(), {"STATUS", "", config.dump(), "", ""}).Error().substr(0, 2), "1:");
}

}  // namespace
}  // namespace railhead::testing
