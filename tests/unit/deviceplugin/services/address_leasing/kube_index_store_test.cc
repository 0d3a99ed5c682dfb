// Claims of indices on the Kubernetes API: the stand-in, and a real kube-apiserver if there is one.
#include <gtest/gtest.h>

#include <csignal>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "deviceplugin/services/address_leasing/index_store.h"
#include "deviceplugin/services/address_leasing/kube_store.h"
#include "tests/support/cluster_store/kube_server.h"
#include "tests/support/cluster_store/scripted_server.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;
using address_leasing::IndexRecord;

constexpr const char* kClaims = "/apis/railhead.io/v1alpha1/nodeindices";
constexpr std::chrono::seconds kTimeout{60};

KubeServer& Shared(KubeServer::Kind kind) {
  (void)std::signal(SIGPIPE, SIG_IGN);
  static KubeServer standin(KubeServer::Kind::kStandIn);
  if (kind == KubeServer::Kind::kStandIn) return standin;
  static KubeServer real(KubeServer::Kind::kReal);
  return real;
}

class KubeIndexTest : public ::testing::TestWithParam<KubeServer::Kind> {
 protected:
  KubeIndexTest() { server_.Clear(); }
  Result<ipam::LeaseEntry> Create(std::uint64_t index, const IndexRecord& record) {
    return store_->records().Create(ipam::LeaseKey::Index(index), Encode(record));
  }

  KubeServer& server_ = Shared(GetParam());
  std::unique_ptr<address_leasing::IndexStore> store_ =
      address_leasing::MakeKubeIndexStore(server_.Access(), kTimeout);
};

TEST_P(KubeIndexTest, AnIndexHasOneNode) {
  const auto made = Create(17, {"a", "u", ""});
  ASSERT_TRUE(made) << Describe(made.error());
  EXPECT_EQ(Create(17, {"b", "v", ""}).error().code, ErrorCode::kConflict);
  const Json item = Json::parse(server_.Admin("GET", std::string(kClaims) + "/node-17").body);
  EXPECT_EQ(item.at("kind"), "NodeIndex");
  EXPECT_EQ(item.at("spec"), (Json{{"node", "a"}, {"uid", "u"}}));
  EXPECT_FALSE(item.at("metadata").contains("ownerReferences")) << "garbage collection must leave it alone";
  const auto marked = store_->records().Update(*made, Encode(IndexRecord{"a", "u", "b"}));
  ASSERT_TRUE(marked) << Describe(marked.error());
  EXPECT_EQ(address_leasing::ParseIndexRecord(**store_->records().Get(made->key)),
            (IndexRecord{"a", "u", "b"}));
  EXPECT_EQ(store_->records().Remove(*made).error().code, ErrorCode::kConflict);
  EXPECT_TRUE(store_->records().Remove(*marked));
}

TEST_P(KubeIndexTest, ClaimsAreListedByTheirNames) {
  for (const std::uint64_t index : {2, 10, 1, 0}) ASSERT_TRUE(Create(index, {"a", "u", ""}));
  const auto listed = [&](std::optional<std::uint64_t> after, std::size_t limit) {
    std::vector<std::uint64_t> found;
    const auto claims = store_->Claims(after, limit);
    EXPECT_TRUE(claims) << Describe(claims.error());
    for (const ipam::LeaseEntry& entry : claims.value_or(std::vector<ipam::LeaseEntry>{}))
      found.push_back(entry.key.index);
    return found;
  };
  EXPECT_EQ(listed(std::nullopt, 3), (std::vector<std::uint64_t>{0, 1, 10}));
  EXPECT_EQ(listed(10, 3), (std::vector<std::uint64_t>{2}));
  EXPECT_EQ(listed(2, 3), (std::vector<std::uint64_t>{}));
}

TEST_P(KubeIndexTest, TheSchemaRefusesWhatNobodyCanRead) {
  for (const char* name : {"node-", "node-01", "node-x", "17", "node-12345678901"}) {
    const Json claim = {{"apiVersion", "railhead.io/v1alpha1"},
                        {"kind", "NodeIndex"},
                        {"metadata", {{"name", name}}},
                        {"spec", {{"node", "a"}, {"uid", "u"}}}};
    EXPECT_THROW(server_.Admin("POST", kClaims, claim.dump()), std::runtime_error) << name;
  }
  const auto refused = store_->records().Create(ipam::LeaseKey::Index(1), R"({"node": "a"})");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
}

TEST_P(KubeIndexTest, ANodeIsKnownByItsUid) {
  const std::string name = "index-of-" + std::to_string(static_cast<int>(GetParam()));
  const auto none = store_->Node(name);
  ASSERT_TRUE(none) << Describe(none.error());
  EXPECT_FALSE(*none);
  const Json node = {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", name}}}};
  const Json made = Json::parse(server_.Admin("POST", "/api/v1/nodes", node.dump()).body);
  const auto found = store_->Node(name);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->uid, made.at("metadata").at("uid"));
  EXPECT_EQ((*found)->machine, "");
}

std::vector<KubeServer::Kind> Kinds() {
  std::vector<KubeServer::Kind> kinds = {KubeServer::Kind::kStandIn};
  if (!KubeServer::RealServer().empty()) kinds.push_back(KubeServer::Kind::kReal);
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(Servers, KubeIndexTest, ::testing::ValuesIn(Kinds()), [](const auto& named) {
  return named.param == KubeServer::Kind::kReal ? "KubeApiServer" : "StandIn";
});

TEST(KubeIndexAnswerTest, KubeletsMachineIsReadFromTheNode) {
  ScriptedServer server({{ScriptedServer::Answer(
      200, R"({"metadata":{"name":"a","uid":"u"},"status":{"nodeInfo":{"systemUUID":"4C4C-1"}}})")}});
  KubeAccess access;
  access.endpoint = *http::ParseHttpEndpoint(server.url());
  const auto node = address_leasing::MakeKubeIndexStore(access, kTimeout)->Node("a");
  ASSERT_TRUE(node && *node);
  EXPECT_EQ((*node)->machine, "4C4C-1");
  EXPECT_NE(server.last().find("GET /api/v1/nodes/a "), std::string::npos) << server.last();
}

// A server with another custom resource definition: the object's name is a claim all the same.
TEST(KubeIndexAnswerTest, AClaimWithoutASpecIsListed) {
  ScriptedServer server({{ScriptedServer::Answer(200, R"({"metadata":{"resourceVersion":"9"},"items":[
          {"metadata":{"name":"node-3","uid":"u","resourceVersion":"1"}},
          {"metadata":{"name":"node-4","uid":"u","resourceVersion":"1"},"spec":[7]},
          {"metadata":{"name":"node-5","uid":"u","resourceVersion":"1"},"spec":{"node":"a","uid":"u"}}]})")}});
  KubeAccess access;
  access.endpoint = *http::ParseHttpEndpoint(server.url());
  const auto claims = address_leasing::MakeKubeIndexStore(access, kTimeout)->Claims(std::nullopt, 10);
  ASSERT_TRUE(claims) << Describe(claims.error());
  ASSERT_EQ(claims->size(), 3U);
  for (const std::size_t i : {0U, 1U}) {
    const auto record = address_leasing::ParseIndexRecord(claims->at(i));
    ASSERT_FALSE(record);
    EXPECT_NE(record.error().message.find("NodeIndex node-" + std::to_string(i + 3)), std::string::npos)
        << record.error().message;
    EXPECT_NE(record.error().hint.find("kubectl get nodeindex node-"), std::string::npos);
  }
  EXPECT_EQ(address_leasing::ParseIndexRecord(claims->at(2)), (IndexRecord{"a", "u", ""}));
}

// Likewise: an object whose name is no index claims none, and hides no claim.
TEST(KubeIndexAnswerTest, AnObjectOfAnotherNameIsPassedOver) {
  const std::string rest = R"("uid":"u","resourceVersion":"1"},"spec":{"node":"a","uid":"u"}})";
  ScriptedServer server(
      {{ScriptedServer::Answer(200, R"({"metadata":{"resourceVersion":"9","continue":"t"},
          "items":[{"metadata":{"name":"mine",)" +
                                        rest + R"(,{"metadata":{"name":"node-01",)" + rest + "]}")},
       {ScriptedServer::Answer(200, R"({"metadata":{"resourceVersion":"9"},
          "items":[{"metadata":{"name":"node-5",)" +
                                        rest + R"(,{"metadata":{"name":"node-x",)" + rest + "]}")}});
  KubeAccess access;
  access.endpoint = *http::ParseHttpEndpoint(server.url());
  const auto claims = address_leasing::MakeKubeIndexStore(access, kTimeout)->Claims(std::nullopt, 2);
  ASSERT_TRUE(claims) << Describe(claims.error());
  ASSERT_EQ(claims->size(), 1U);
  EXPECT_EQ(claims->at(0).key, ipam::LeaseKey::Index(5));
}

TEST(KubeIndexNamesTest, ThereAndBack) {
  EXPECT_EQ(*address_leasing::KubeNameOf(ipam::LeaseKey::Index(17)), "node-17");
  const auto parse = [](const char* name) {
    return address_leasing::ParseKubeName(ipam::LeaseKey::Kind::kIndex, name);
  };
  EXPECT_EQ(parse("node-0"), ipam::LeaseKey::Index(0));
  for (const char* name : {"node-", "node-01", "node--1", "node-1 ", "Node-1", "1"})
    EXPECT_EQ(parse(name), std::nullopt) << name;
}

}  // namespace
}  // namespace railhead::testing
