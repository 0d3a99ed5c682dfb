// Labels of nodes: what they say, and that Kubernetes takes them.
#include "deviceplugin/services/lldp/node_labels.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <regex>

#include "deviceplugin/services/lldp/cabling.h"
#include "deviceplugin/services/lldp/node_features.h"
#include "netns/base/files.h"
#include "tests/support/sysfs/machines.h"
#include "tests/support/temp_root.h"
#include "tests/unit/deviceplugin/services/lldp/support.h"

namespace railhead::testing {
namespace {

// apimachinery's validation: qualified names and label values.
bool IsValue(const std::string& text) {
  static const std::regex rule("(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?");
  return text.size() <= 63 && std::regex_match(text, rule);
}

bool IsName(const std::string& text) {
  const std::string domain = "railhead.io/";
  return text.starts_with(domain) && text.size() > domain.size() && IsValue(text.substr(domain.size()));
}

TEST(LabelTextTest, WhatFitsIsLeftAlone) {
  for (const char* text : {"leaf3", "su1-leaf3.dc_1", "A", "", "0"})
    EXPECT_EQ(lldp::KubernetesLabel(text), text);
  EXPECT_EQ(lldp::KubernetesLabel(std::string(63, 'x')), std::string(63, 'x'));
}

TEST(LabelTextTest, WhatDoesNotFitIsMadeFitAndStaysDifferent) {
  EXPECT_EQ(lldp::KubernetesLabel("leaf 3"), "leaf-3-4bafe914") << "as in every release: schedulers match it";
  std::set<std::string> made;
  const std::vector<std::string> texts = {"leaf 3",
                                          "leaf/3",
                                          "leaf?3",
                                          "-leaf3",
                                          "leaf3-",
                                          "\xc3\xa9",
                                          "02:00:00:00:00:aa",
                                          "___",
                                          " ",
                                          "leaf\n3=x",
                                          std::string(64, 'x'),
                                          std::string(300, 'x'),
                                          std::string(64, '-')};
  for (const std::string& text : texts) {
    const std::string label = lldp::KubernetesLabel(text);
    EXPECT_TRUE(IsValue(label)) << text << " -> " << label;
    EXPECT_FALSE(label.empty());
    EXPECT_TRUE(made.insert(label).second) << text << " -> " << label;
    EXPECT_EQ(lldp::KubernetesLabel(label), label) << "once is enough";
    EXPECT_LE(lldp::KubernetesLabel(text, 20).size(), 20U);
  }
}

class NodeLabelsTest : public ::testing::Test {
 protected:
  lldp::NodeLabels Labels(const std::string& fabric) {
    sysfs_.Write("/etc/railhead/fabric.json", fabric);
    auto labels = lldp::ReadNodeLabels(sysfs_.root());
    EXPECT_TRUE(labels) << Describe(labels.error());
    return labels.value_or(lldp::NodeLabels{});
  }
  static std::string Fabric(int rails, const std::string& more = "") {
    std::string text = R"({"version":1,"rails":[)";
    for (int rail = 0; rail < rails; ++rail) {
      const std::string n = std::to_string(rail);
      text += (rail == 0 ? "" : ",") + (R"({"name":"rail)" + n + R"(","pf":"rail)" + n + "\"") + more + "}";
    }
    return text + "]}";
  }
  FakeSysfs sysfs_;
};

TEST_F(NodeLabelsTest, AWholeNode) {
  const FakeMachine machine = MakePcieA100(sysfs_);
  sysfs_.AddVfs(machine.nics[0], 4);
  lldp::LldpReport report{"n", Wall(0), {RailOn("rail0", "leaf 0", {"leaf*"}), RailOn("rail1", "")}};
  report.rails[0].cabling = lldp::Cabling::kRight;
  ASSERT_TRUE(lldp::kLldpFile.Write(sysfs_.root(), report));
  const lldp::NodeLabels labels = Labels(Fabric(4, R"(,"vlan":100)"));
  const lldp::NodeLabels expected = {{"railhead.io/network", "roce"},
                                     {"railhead.io/rails", "4"},
                                     {"railhead.io/rails-complete", "true"},
                                     {"railhead.io/cabling", "unknown"},
                                     {"railhead.io/gpus", "8"},
                                     {"railhead.io/gpu-nic-path", "PIX"},
                                     {"railhead.io/rail0.vfs", "4"},
                                     {"railhead.io/rail0.switch", lldp::KubernetesLabel("leaf 0")},
                                     {"railhead.io/rail1.vfs", "0"},
                                     {"railhead.io/rail2.vfs", "0"},
                                     {"railhead.io/rail3.vfs", "0"}};
  EXPECT_EQ(labels, expected);
}

TEST_F(NodeLabelsTest, ASwitchThatAVfMayHaveForgedIsNoLabel) {
  const FakeMachine machine = MakePcieA100(sysfs_);
  ASSERT_TRUE(lldp::kLldpFile.Write(sysfs_.root(),
                                    {"n", Wall(0), {RailOn("rail0", "leaf0"), RailOn("rail1", "leaf1")}}));
  for (const int vfs : {0, 1, 4}) {
    if (vfs > 0) sysfs_.AddVfs(machine.nics[0], vfs);
    const lldp::NodeLabels untagged = Labels(Fabric(2));
    EXPECT_EQ(untagged.contains("railhead.io/rail0.switch"), vfs == 0) << vfs;
    EXPECT_EQ(untagged.at("railhead.io/rail1.switch"), "leaf1");
    EXPECT_EQ(Labels(Fabric(2, R"(,"vlan":100)")).at("railhead.io/rail0.switch"), "leaf0") << vfs;
  }
}

TEST_F(NodeLabelsTest, TheFarthestGpuCounts) {
  MakePcieA100(sysfs_);
  EXPECT_EQ(Labels(Fabric(1)).at("railhead.io/gpu-nic-path"), "SYS")
      << "one rail, and GPUs of the other socket";
}

TEST_F(NodeLabelsTest, WhatIsMissing) {
  sysfs_.AddPf({.address = "0000:43:00.0", .netdev = "rail0", .rdma = ""});
  const lldp::NodeLabels labels = Labels(Fabric(2));
  EXPECT_EQ(labels.at("railhead.io/rails"), "1");
  EXPECT_EQ(labels.at("railhead.io/rails-complete"), "false");
  EXPECT_EQ(labels.at("railhead.io/network"), "ethernet");
  EXPECT_EQ(labels.at("railhead.io/gpus"), "0");
  EXPECT_EQ(labels.at("railhead.io/cabling"), "unknown");
  EXPECT_FALSE(labels.contains("railhead.io/gpu-nic-path"));
  EXPECT_EQ(Labels(Fabric(2, R"(,"softRoce":true)")).at("railhead.io/network"), "roce");
  EXPECT_EQ(Labels(R"({"version":1,"rails":[{"name":"a","pf":"none"}]})").at("railhead.io/network"), "none");
}

TEST_F(NodeLabelsTest, KubernetesTakesWhateverRailsAndSwitchesAreCalled) {
  sysfs_.AddPf({.address = "0000:43:00.0", .netdev = "pf0", .rdma = "mlx5_0"});
  const std::string odd = "r:" + std::string(80, 'x');
  lldp::LldpReport report{"n", Wall(0), {RailOn(odd, "\x01\xff=,\n")}};
  report.rails[0].rail = odd;
  ASSERT_TRUE(lldp::kLldpFile.Write(sysfs_.root(), report));
  const lldp::NodeLabels labels = Labels(R"({"version":1,"rails":[{"name":")" + odd + R"(","pf":"pf0"}]})");
  EXPECT_EQ(labels.size(), 7U);
  for (const auto& [name, value] : labels) {
    EXPECT_TRUE(IsName(name)) << name;
    EXPECT_TRUE(IsValue(value)) << name << "=" << value;
  }
}

TEST_F(NodeLabelsTest, WithoutAFabricThereAreNone) {
  const auto labels = lldp::ReadNodeLabels(sysfs_.root());
  ASSERT_FALSE(labels);
  EXPECT_EQ(labels.error().code, ErrorCode::kNotFound);
}

TEST(FeatureFileTest, IsInNfdsFormat) {
  EXPECT_EQ(lldp::FeatureFile({{"railhead.io/rails", "8"}, {"railhead.io/network", "roce"}}, Wall(5)),
            "# by railheadd, which writes it again before this is over:\n"
            "# +expiry-time=2027-01-15T08:00:05Z\n"
            "railhead.io/network=roce\n"
            "railhead.io/rails=8\n");
}

TEST(FeatureFileTest, LeavesNothingBesideIt) {
  const TempRoot temp;
  temp.Write("/features.d/other", "x");
  const std::string directory = temp.directory() + "/features.d";
  for (const char* text : {"one\n", "two\n"}) {
    ASSERT_TRUE(lldp::WriteFeatureFile(directory + "/railhead", text));
    EXPECT_EQ(temp.Read("/features.d/railhead"), text);
  }
  EXPECT_EQ(ListDirectory(directory)->value(), (std::vector<std::string>{"other", "railhead"}));
  struct stat info {};
  ASSERT_EQ(::stat((directory + "/railhead").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0644U);
  const auto refused = lldp::WriteFeatureFile(directory + "/none/railhead", "x");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find(directory + "/none/railhead"), std::string::npos);
}

// Cables that are where they belong, that are not, and that changed places.

std::vector<lldp::RailNeighbor> Judged(std::vector<lldp::RailNeighbor> rails) {
  JudgeCabling(rails);
  return rails;
}

TEST(CablingTest, Patterns) {
  EXPECT_TRUE(lldp::MatchesSwitch({"leaf-1"}, "leaf-1"));
  EXPECT_TRUE(lldp::MatchesSwitch({"x", "su?-leaf-1*"}, "su7-leaf-1.dc.example"));
  EXPECT_TRUE(lldp::MatchesSwitch({"leaf[0-3]"}, "leaf3"));
  EXPECT_FALSE(lldp::MatchesSwitch({"leaf[0-3]"}, "leaf4"));
  EXPECT_FALSE(lldp::MatchesSwitch({"leaf-1"}, "LEAF-1"));
  EXPECT_FALSE(lldp::MatchesSwitch({"leaf-1"}, "leaf-12"));
  EXPECT_FALSE(lldp::MatchesSwitch({}, "leaf-1"));
}

TEST(CablingTest, RightWrongUncheckedUnknown) {
  const auto rails =
      Judged({RailOn("rail0", "leaf0", {"leaf0"}), RailOn("rail1", "leaf9", {"leaf1", "other*"}),
              RailOn("rail2", "leaf2"), RailOn("rail3", "", {"leaf3"})});
  EXPECT_EQ(rails[0].cabling, lldp::Cabling::kRight);
  EXPECT_EQ(rails[0].because, "");
  EXPECT_EQ(rails[1].cabling, lldp::Cabling::kWrong);
  EXPECT_EQ(rails[1].because, "expected: leaf1, other*");
  EXPECT_EQ(rails[2].cabling, lldp::Cabling::kUnchecked);
  EXPECT_EQ(rails[3].cabling, lldp::Cabling::kUnknown);
}

TEST(CablingTest, TwoThatChangedPlaces) {
  const auto rails = Judged({RailOn("rail0", "leaf1", {"leaf0"}), RailOn("rail1", "leaf0", {"leaf1"}),
                             RailOn("rail2", "leaf2", {"leaf2"})});
  EXPECT_EQ(rails[0].because, "swapped with rail1");
  EXPECT_EQ(rails[1].because, "swapped with rail0");
  EXPECT_EQ(rails[2].cabling, lldp::Cabling::kRight);
}

TEST(CablingTest, OneInThePlaceOfAnother) {
  const auto rails = Judged({RailOn("rail0", "leaf1", {"leaf0"}), RailOn("rail1", "leaf2", {"leaf1"}),
                             RailOn("rail2", "leaf2", {"leaf2"})});
  EXPECT_EQ(rails[0].because, "this is the switch of rail1");
  EXPECT_EQ(rails[1].because, "this is the switch of rail2");
  EXPECT_EQ(rails[2].cabling, lldp::Cabling::kRight);
}

// In a ring of three no two are swapped.
TEST(CablingTest, ThreeInARing) {
  const auto rails = Judged({RailOn("rail0", "leaf1", {"leaf0"}), RailOn("rail1", "leaf2", {"leaf1"}),
                             RailOn("rail2", "leaf0", {"leaf2"})});
  EXPECT_EQ(rails[0].because, "this is the switch of rail1");
  EXPECT_EQ(rails[2].because, "this is the switch of rail0");
}

TEST(CablingTest, WhyNothingIsHeardStays) {
  std::vector<lldp::RailNeighbor> rails = {RailOn("rail0", ""), RailOn("rail1", "leaf1")};
  rails[0].because = rails[1].because = "no carrier";
  JudgeCabling(rails);
  EXPECT_EQ(rails[0].because, "no carrier");
  EXPECT_EQ(rails[1].because, "");
}

TEST(CablingTest, ASwitchWithoutANameIsItsChassis) {
  lldp::RailNeighbor rail = RailOn("rail0", "", {"02:00:*"});
  LldpNeighbor nameless = Neighbor("");
  nameless.chassis = "02:00:00:00:00:aa";
  rail.neighbor = lldp::HeardNeighbor{nameless, Wall(0)};
  EXPECT_EQ(Judged({rail})[0].cabling, lldp::Cabling::kRight);
}

}  // namespace
}  // namespace railhead::testing
