// The indices of all nodes, against the stand-in: a model of what the claims say.
#include "deviceplugin/services/node_index/index_directory.h"

#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "deviceplugin/services/node_index/kube_index_store.h"
#include "tests/support/eventually.h"
#include "tests/support/kubernetes/kube_servers.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;
using node_index::IndexDirectory;
using node_index::NeedsDirectory;

class IndexDirectoryTest : public ::testing::TestWithParam<KubeServer::Kind> {
 protected:
  IndexDirectoryTest() { server_.Clear(); }

  void Claim(const std::string& name, const Json& spec) {
    const Json object = {{"apiVersion", "railhead.io/v1alpha1"},
                         {"kind", "NodeIndex"},
                         {"metadata", {{"name", name}}},
                         {"spec", spec}};
    server_.Admin("POST", node_index::kClaimsPath, object.dump());
  }
  void Claim(int index, const std::string& node) {
    Claim("node-" + std::to_string(index), {{"node", node}, {"uid", "u"}});
  }
  void Free(int index) {
    server_.Admin("DELETE", std::string(node_index::kClaimsPath) + "/node-" + std::to_string(index));
  }
  std::unique_ptr<IndexDirectory> Make(std::uint64_t random = 0) {
    return std::make_unique<IndexDirectory>(
        server_.Access(), std::chrono::seconds(60), [random] { return random; }, &published_);
  }
  bool Becomes(IndexDirectory& directory, const NodeIndices& wanted) {
    return Eventually([&] {
      (void)directory.Step(now_ms_, 0);
      return *published_.Get() == wanted;
    });
  }

  KubeServer& server_ = SharedKubeServer(GetParam());
  Published<NodeIndices> published_;
  std::uint64_t now_ms_ = 1'000'000;
};

TEST_P(IndexDirectoryTest, KnowsTheClaimsOfAllNodes) {
  Claim(0, "a");
  Claim(17, "b");
  const auto directory = Make();
  EXPECT_TRUE(Becomes(*directory, {{"a", 0}, {"b", 17}}));
  Claim(5, "c");
  Free(0);
  EXPECT_TRUE(Becomes(*directory, {{"b", 17}, {"c", 5}}));
}

// A node changes its index: it makes the new claim first, and keeps the former one for a time.
TEST_P(IndexDirectoryTest, TheLatestClaimOfANodeCounts) {
  Claim(9, "a");
  const auto directory = Make();
  ASSERT_TRUE(Becomes(*directory, {{"a", 9}}));
  // The API tells times by the second.
  ASSERT_TRUE(Eventually([&] {
    Claim(3, "a");
    const auto created = [&](const char* name) {
      return Json::parse(server_.Admin("GET", std::string(node_index::kClaimsPath) + name).body)
          .at("metadata")
          .at("creationTimestamp")
          .get<std::string>();
    };
    if (created("/node-3") > created("/node-9")) return true;
    Free(3);
    return false;
  }));
  EXPECT_TRUE(Becomes(*directory, {{"a", 3}}));
  Free(9);
  EXPECT_TRUE(Becomes(*directory, {{"a", 3}}));
}

// 10,000 nodes that start at once ask at times that differ: later in a cluster that is larger.
TEST_P(IndexDirectoryTest, ListsAtATimeThatGrowsWithTheIndex) {
  Claim(1, "a");
  const auto directory = Make(12'345);
  EXPECT_TRUE(directory->Step(0, 200));  // up to 20 s: 12.345 s
  EXPECT_TRUE(directory->Step(12'344, 200));
  EXPECT_TRUE(published_.Get()->empty());
  EXPECT_TRUE(directory->Step(12'345, 200));
  EXPECT_EQ(*published_.Get(), (NodeIndices{{"a", 1}}));
}

TEST_P(IndexDirectoryTest, WhatWasKnownCountsUntilItEnds) {
  Claim(1, "a");
  auto directory = std::make_unique<IndexDirectory>(
      server_.Access(), std::chrono::seconds(60), [] { return std::uint64_t{0}; }, &published_);
  ASSERT_TRUE(Becomes(*directory, {{"a", 1}}));
  directory.reset();
  EXPECT_TRUE(published_.Get()->empty());
  const auto refused = std::make_unique<IndexDirectory>(
      server_.UnprivilegedAccess(), std::chrono::seconds(60), [] { return std::uint64_t{4'000}; },
      &published_);
  published_.Set({{"b", 2}});
  EXPECT_TRUE(refused->Step(0, 100));
  const auto step = refused->Step(4'000, 100);
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error().code, ErrorCode::kPermission);
  EXPECT_EQ(*published_.Get(), (NodeIndices{{"b", 2}}));
  EXPECT_TRUE(refused->Step(7'999, 100)) << "it waits";
  EXPECT_FALSE(refused->Step(8'000, 100));
}

INSTANTIATE_TEST_SUITE_P(Servers, IndexDirectoryTest, ::testing::ValuesIn(KubeServerKinds()),
                         [](const auto& info) { return NameOfKubeServer(info.param); });

TEST(IndexDirectory, IsNeededWhereARangeOfProbeAddressesGoesByClaimedIndices) {
  const auto needs = [](const std::string& probe, const std::string& more) {
    const auto fabric = ParseFabric(
        R"({"version": 1, "rails": [{"name": "rail0", "pf": "pf0", "subnet": "10.0.0.0/16", "nodeBlock": 26,
            "probeAddresses": )" +
            probe + "}]" + more + "}",
        "fabric.json");
    EXPECT_TRUE(fabric) << Describe(fabric.error());
    return fabric && NeedsDirectory(*fabric);
  };
  const std::string claims = R"(, "addresses": {"index": {"from": "kubernetes"}})";
  const std::string probes = R"(, "reachability": {})";
  const std::string nodes = R"(, "nodes": {"a": 0})";
  const std::string range = R"("10.0.250.0/24")";
  EXPECT_TRUE(needs(range, claims + probes));
  EXPECT_FALSE(needs(range, claims)) << "nothing probes";
  EXPECT_FALSE(needs(range, claims + probes + nodes));
  EXPECT_FALSE(needs(range, probes + nodes));
  EXPECT_FALSE(needs(R"({"a": "10.0.250.1"})", claims + probes));
}

}  // namespace
}  // namespace railhead::testing
