// `addresses.index` of fabric.json.
#include "deviceplugin/services/node_index/index_config.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/support/kubernetes/kube_access.h"
#include "tests/support/temp_root.h"

namespace railhead::node_index {
namespace {

std::string ErrorIn(const std::string& json) {
  const auto parsed = ParseIndexConfig(json, "fabric.json", std::chrono::seconds(600));
  return parsed ? std::string("none") : parsed.error().message;
}

TEST(IndexConfigTest, NothingIsTheDefault) {
  for (const char* json : {"", "{}"}) {
    const auto config = ParseIndexConfig(json, "fabric.json", std::chrono::seconds(600));
    ASSERT_TRUE(config) << Describe(config.error());
    EXPECT_EQ(*config, IndexConfig{});
    EXPECT_EQ(config->from, IndexSource::kNodes);
    EXPECT_EQ(config->fence, std::chrono::hours(12));
    EXPECT_EQ(config->reclaim, std::chrono::hours(24));
  }
}

TEST(IndexConfigTest, EachKeyIsRead) {
  const auto config = ParseIndexConfig(R"({"from": "kubernetes", "fenceSeconds": 900, "reclaimSeconds": 1800,
          "kubernetes": {"kubeconfig": "/k", "context": "c", "timeoutSeconds": 9}})",
                                       "fabric.json", std::chrono::seconds(600));
  ASSERT_TRUE(config) << Describe(config.error());
  EXPECT_EQ(config->from, IndexSource::kKubernetes);
  EXPECT_EQ(config->fence, std::chrono::seconds(900));
  EXPECT_EQ(config->reclaim, std::chrono::seconds(1800));
  EXPECT_EQ(config->kubernetes, (KubeConfig{"/k", "c", std::chrono::seconds(9)}));
}

TEST(IndexConfigTest, MistakesAreReportedWithTheirPlace) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"from": "etcd"})", "/from"},
      {R"({"fenceSeconds": 0})", "/fenceSeconds"},
      {R"({"reclaimSeconds": 50000})", "/reclaimSeconds"},
      {R"({"fenceSeconds": 200, "reclaimSeconds": 600})", "/reclaimSeconds"},
      {R"({"renewSeconds": 60})", "/renewSeconds"},
      {R"({"kubernetes": {"kubeconfig": "x"}})", "/kubernetes/kubeconfig"},
      {R"({"kubernetes": {"context": "x"}})", "/kubernetes/context"},
      {R"({"kubernetes": {"timeoutSeconds": 61}})", "/kubernetes/timeoutSeconds"}};
  for (const auto& [json, place] : cases) {
    const std::string error = ErrorIn(json);
    EXPECT_EQ(error.find("fabric.json: /addresses/index" + place + ": "), 0U) << json << "\n" << error;
  }
  EXPECT_EQ(ErrorIn(R"({"reclaimSeconds": 0})"), "none") << "claims are never removed";
  EXPECT_EQ(ErrorIn(R"({"fenceSeconds": 301, "reclaimSeconds": 602})"), "none");
}

TEST(IndexConfigTest, IsCheckedInTheFile) {
  testing::TempRoot scratch;
  const auto check = [&]() -> Result<void> {
    const auto fabric = RH_TRY(ReadFabric(scratch.root(), "/fabric.json"));
    RH_TRY(IndexConfigOf(*fabric, "/fabric.json"));
    return {};
  };
  const auto write = [&](const std::string& index) {
    scratch.Write("/fabric.json", R"({"version": 1, "rails": [{"name": "r", "pf": 0}],
        "addresses": {"reuseDelaySeconds": 7200, "index": )" +
                                      index + "}}");
  };
  write(R"({"from": "kubernetes"})");
  EXPECT_TRUE(check());
  write(R"({"from": "kubernetes", "fenceSeconds": 3600, "reclaimSeconds": 7200})");
  const auto short_time = check();
  ASSERT_FALSE(short_time);
  EXPECT_NE(short_time.error().message.find("/addresses/index/reclaimSeconds"), std::string::npos)
      << short_time.error().message;
}

}  // namespace
}  // namespace railhead::node_index
