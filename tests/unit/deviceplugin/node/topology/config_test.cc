#include <gtest/gtest.h>

#include "deviceplugin/node/topology/topology.h"
#include "tests/support/sysfs/fake_sysfs.h"

namespace railhead::testing {
namespace {

TEST(TopologyConfigTest, Whole) {
  const auto config = topology::ParseTopologyConfig(R"({
    "paths": [{"nic": "0000:43:00.0", "accelerator": "0000:1B:00.0", "path": "pix"}],
    "accelerators": {"vendors": ["10de", "8086:0380"], "ids": {"a/b": "00000000:1b:00.0"}}})",
                                                    "topology.json");
  ASSERT_TRUE(config) << Describe(config.error());
  ASSERT_EQ(config->paths.size(), 1U);
  EXPECT_EQ(config->paths[0].nic, PciAddress::Parse("0000:43:00.0"));
  EXPECT_EQ(config->paths[0].accelerator, PciAddress::Parse("0000:1b:00.0"));
  EXPECT_EQ(config->paths[0].path, PciPath::kPix);
  EXPECT_EQ(config->accelerators.kinds,
            (std::vector<AcceleratorKind>{{0x10de, std::nullopt}, {0x8086, 0x0380}}));
  EXPECT_EQ(config->accelerators.ids.at("a/b"), PciAddress::Parse("0000:1b:00.0"));
}

TEST(TopologyConfigTest, EverythingIsOptional) {
  for (const char* text : {"{}", R"({"paths": [], "accelerators": {}})"}) {
    const auto config = topology::ParseTopologyConfig(text, "topology.json");
    ASSERT_TRUE(config) << Describe(config.error());
    EXPECT_TRUE(config->paths.empty());
    EXPECT_EQ(config->accelerators.kinds, DefaultAcceleratorKinds());
  }
  const auto none = topology::ParseTopologyConfig(R"({"accelerators": {"vendors": []}})", "topology.json");
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->accelerators.kinds.empty());
}

struct Bad {
  const char* text;
  const char* message;
};

class BadTopologyConfigTest : public ::testing::TestWithParam<Bad> {};

TEST_P(BadTopologyConfigTest, SaysWhere) {
  const auto config = topology::ParseTopologyConfig(GetParam().text, "topology.json");
  ASSERT_FALSE(config);
  EXPECT_NE(config.error().message.find(GetParam().message), std::string::npos) << config.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    All, BadTopologyConfigTest,
    ::testing::Values(
        Bad{"[]", "topology.json: /: is not an object"}, Bad{"{", "no valid JSON"},
        Bad{R"({"path": []})", "/path: unknown field"},
        Bad{R"({"paths": {}})", "/paths: is not a list of objects"},
        Bad{R"({"paths": [{"nic": "43:00.0", "accelerator": "0000:1b:00.0", "path": "PIX"}]})",
            "/paths/0/nic: '43:00.0' is no PCI address"},
        Bad{R"({"paths": [{"nic": "0000:43:00.0", "path": "PIX"}]})", "/paths/0/accelerator: is required"},
        Bad{R"({"paths": [{"nic": "0000:43:00.0", "accelerator": "0000:1b:00.0", "path": "NV18"}]})",
            "/paths/0/path: 'NV18' is no path class"},
        Bad{R"({"paths": [{"nic": "0000:43:00.0", "accelerator": "0000:1b:00.0", "path": "PIX", "gpu": 1}]})",
            "/paths/0/gpu: unknown field"},
        Bad{R"({"paths": [{"nic": "0000:43:00.0", "accelerator": "0000:1b:00.0", "path": "PIX"},
                          {"nic": "0000:43:00.0", "accelerator": "0000:1B:00.0", "path": "SYS"}]})",
            "/paths/1: 0000:43:00.0 and 0000:1b:00.0 are there twice"},
        Bad{R"({"accelerators": {"vendors": ["10de", "nvidia"]}})",
            "/accelerators/vendors: entry 1, 'nvidia', is no PCI vendor"},
        Bad{R"({"accelerators": {"ids": {"a/b": "x"}}})", "/accelerators/ids/a~1b: 'x' is no PCI address"},
        Bad{R"({"accelerators": {"ids": {"a": 3}}})", "/accelerators/ids/a: is not a string"},
        Bad{R"({"accelerators": {"id": {}}})", "/accelerators/id: unknown field"}));

TEST(TopologyConfigTest, TheFileMayBeAbsent) {
  FakeSysfs files;
  const auto absent = topology::ReadTopologyConfig(files.root());
  ASSERT_TRUE(absent);
  EXPECT_EQ(absent->accelerators.kinds, DefaultAcceleratorKinds());
  files.Write(topology::kTopologyPath, R"({"accelerators": {"vendors": ["1002"]}})");
  const auto there = topology::ReadTopologyConfig(files.root());
  ASSERT_TRUE(there);
  EXPECT_EQ(there->accelerators.kinds, (std::vector<AcceleratorKind>{{0x1002, std::nullopt}}));
  files.Write(topology::kTopologyPath, "{");
  const auto broken = topology::ReadTopologyConfig(files.root());
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().message.find(topology::kTopologyPath), std::string::npos)
      << broken.error().message;
}

}  // namespace
}  // namespace railhead::testing
