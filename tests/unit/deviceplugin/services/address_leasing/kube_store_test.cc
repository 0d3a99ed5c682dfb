// The Kubernetes API's own ways of refusing and failing; on the stand-in, and what a real
// kube-apiserver can be brought to on that, too.
#include "deviceplugin/services/address_leasing/kube_store.h"

#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <ostream>

#include "ipam/lease/cluster_store.h"
#include "tests/support/cluster_store/kube_server.h"
#include "tests/support/cluster_store/scripted_server.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

constexpr const char* kPool = "10.100.0.0/16";
constexpr const char* kBlockPath = "/apis/railhead.io/v1alpha1/addressblocks";
constexpr std::chrono::seconds kTimeout{60};

KubeServer& Shared(KubeServer::Kind kind) {
  (void)std::signal(SIGPIPE, SIG_IGN);
  static KubeServer standin(KubeServer::Kind::kStandIn);
  if (kind == KubeServer::Kind::kStandIn) return standin;
  static KubeServer real(KubeServer::Kind::kReal);
  return real;
}

void ExpectError(const Error& error, ErrorCode code, const std::string& word) {
  EXPECT_EQ(error.code, code) << Describe(error);
  EXPECT_NE(Describe(error).find(word), std::string::npos) << Describe(error);
}

class KubeServerTest : public ::testing::TestWithParam<KubeServer::Kind> {
 protected:
  KubeServerTest() { server_.Clear(); }
  static Error ErrorOf(const KubeAccess& access) {
    auto got = address_leasing::MakeKubeStore(access, kTimeout)->Get(ipam::LeaseKey::Node("node0"));
    return got ? Error{} : got.error();
  }

  KubeServer& server_ = Shared(GetParam());
  std::unique_ptr<ipam::ClusterStore> store_ = address_leasing::MakeKubeStore(server_.Access(), kTimeout);
};

TEST_P(KubeServerTest, WhoIsUnknownOrMayNotIsRefused) {
  ASSERT_EQ(ErrorOf(server_.Access()).message, "");
  ExpectError(ErrorOf(server_.UnprivilegedAccess()), ErrorCode::kPermission,
              "bind its role railhead-leasing");
  KubeAccess access = server_.UnprivilegedAccess();
  access.token = "made-up";
  ExpectError(ErrorOf(access), ErrorCode::kPermission, "not (or no more) known");
  access = server_.Access();
  access.tls.authorities.file = server_.certificates().Path("other-ca.pem");
  ExpectError(ErrorOf(access), ErrorCode::kPermission, "certificate is not trusted");
  access = server_.Access();
  access.tls.server_name = "elsewhere.test";
  ExpectError(ErrorOf(access), ErrorCode::kPermission, "hostname mismatch");
}

TEST_P(KubeServerTest, ATokenIsReadAgain) {
  const std::string path = server_.files().directory() + "/rotated";
  WriteFileAt(path, "made-up");
  KubeAccess access = server_.Access();
  access.token_file = path;
  auto store = address_leasing::MakeKubeStore(access, kTimeout);
  EXPECT_EQ(store->Nodes("", 1).error().code, ErrorCode::kPermission);
  WriteFileAt(path, ReadFileAt(server_.files().directory() + "/token"));
  auto listed = store->Nodes("", 1);
  EXPECT_TRUE(listed) << Describe(listed.error());
  WriteFileAt(path, "");
  ExpectError(store->Nodes("", 1).error(), ErrorCode::kPermission, "is empty");
}

TEST_P(KubeServerTest, ObjectsAreWhatPeopleExpect) {
  ASSERT_TRUE(store_->Create(ipam::LeaseKey::Block(kPool, 42), R"({"node":"n1","state":"leased"})"));
  const http::HttpAnswer answer =
      server_.Admin("GET", std::string(kBlockPath) + "?labelSelector=railhead.io%2Fpool%3Dv4-10-100-0-0-16");
  const Json list = Json::parse(answer.body);
  ASSERT_EQ(list.at("items").size(), 1U);
  const Json& item = list.at("items").at(0);
  EXPECT_EQ(item.at("metadata").at("name"), "v4-10-100-0-0-16-000000000000002a");
  EXPECT_EQ(item.at("spec").at("node"), "n1");
  EXPECT_EQ(item.at("kind"), "AddressBlock");
}

TEST_P(KubeServerTest, AListIsOneRequest) {
  for (std::uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(store_->Create(ipam::LeaseKey::Block(kPool, i), "{}"));
  ASSERT_TRUE(store_->Create(ipam::LeaseKey::Block("10.200.0.0/16", 1), "{}"));
  const std::uint64_t before = store_->calls();
  EXPECT_EQ(store_->Blocks(kPool, 5, 10)->size(), 10U);
  EXPECT_EQ(store_->Blocks(kPool, 19, 10)->size(), 1U);
  EXPECT_EQ(store_->calls(), before + 2);
}

TEST_P(KubeServerTest, ChangesAreWatched) {
  const http::HttpAnswer empty = server_.Admin("GET", kBlockPath);
  const std::string version = Json::parse(empty.body).at("metadata").at("resourceVersion");
  auto made = store_->Create(ipam::LeaseKey::Block(kPool, 1), R"({"n":1})");
  ASSERT_TRUE(made);
  auto changed = store_->Update(*made, R"({"n":2})");
  ASSERT_TRUE(changed);
  ASSERT_TRUE(store_->Remove(*changed));
  const http::HttpAnswer events =
      server_.Admin("GET", std::string(kBlockPath) + "?watch=1&timeoutSeconds=1&resourceVersion=" + version);
  std::vector<std::string> seen;
  std::istringstream lines(events.body);
  for (std::string line; std::getline(lines, line);) {
    const Json event = Json::parse(line);
    seen.push_back(event.at("type").get<std::string>() + event.at("object").at("spec").dump());
  }
  EXPECT_EQ(seen, (std::vector<std::string>{R"(ADDED{"n":1})", R"(MODIFIED{"n":2})", R"(DELETED{"n":2})"}));
}

TEST_P(KubeServerTest, AnUnknownResourceIsNoEmptyList) {
  // A path that the server does not know, as it does not before the manifest is applied.
  KubeAccess access = server_.AdminAccess();
  access.endpoint.path = "/apis/nobody.example/v1";
  auto store = address_leasing::MakeKubeStore(access, kTimeout);
  ExpectError(store->Get(ipam::LeaseKey::Node("node0")).error(), ErrorCode::kInvalid,
              "manifests/components/kubernetes-store");
  ExpectError(store->Nodes("", 1).error(), ErrorCode::kInvalid, "manifests/components/kubernetes-store");
}

TEST_P(KubeServerTest, TheSchemasTakeOurRecords) {
  const ipam::BlockRecord block{"node0", "instance", "nonce", true};
  const ipam::NodeRecord node{"i", "p", "s", "m", "b", 7, {{kPool, {0, ipam::kLayoutIndex - 1}}}, "node1"};
  const std::vector<std::pair<ipam::LeaseKey, std::string>> records = {
      {ipam::LeaseKey::Block(kPool, 0), Encode(block)},
      {ipam::LeaseKey::Block("fd00:1::/64", ipam::kLayoutIndex), Encode(ipam::LayoutRecord{64})},
      {ipam::LeaseKey::Node("node0.example"), Encode(node)}};
  for (const auto& [key, value] : records) {
    auto made = store_->Create(key, value);
    EXPECT_TRUE(made) << Describe(made.error());
  }
}

// A list ends at what it cannot read.
TEST_P(KubeServerTest, TheSchemasRefuseWhatNobodyCanRead) {
  auto made = store_->Create(ipam::LeaseKey::Block(kPool, 1), R"({"node":"n1","state":"leased"})");
  ASSERT_TRUE(made) << Describe(made.error());
  for (const char* value : {R"({"node":"n1","state":"lost"})", R"({"node":1})",
                            R"({"node":"n1","blockSize":64})", R"({"blockSize":0})"}) {
    auto changed = store_->Update(*made, value);
    ASSERT_FALSE(changed) << value;
    EXPECT_EQ(changed.error().code, ErrorCode::kInvalid) << Describe(changed.error());
  }
  EXPECT_FALSE(store_->Create(ipam::LeaseKey::Node("node0"), R"({"blocks":{"10.100.0.0/16":["1"]}})"));
  const Json foreign = {{"apiVersion", "railhead.io/v1alpha1"},
                        {"kind", "AddressBlock"},
                        {"metadata", {{"name", "mine"}}},
                        {"spec", {{"node", "n1"}}}};
  EXPECT_THROW(server_.Admin("POST", kBlockPath, foreign.dump()), std::runtime_error);
  EXPECT_EQ(store_->Blocks(kPool, 0, 10)->size(), 1U);
}

std::vector<KubeServer::Kind> Kinds() {
  std::vector<KubeServer::Kind> kinds = {KubeServer::Kind::kStandIn};
  if (!KubeServer::RealServer().empty()) kinds.push_back(KubeServer::Kind::kReal);
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(Servers, KubeServerTest, ::testing::ValuesIn(Kinds()), [](const auto& named) {
  return named.param == KubeServer::Kind::kReal ? "KubeApiServer" : "StandIn";
});

TEST(KubeStandInTest, WatchesAndListsExpire) {
  KubeServer& server = Shared(KubeServer::Kind::kStandIn);
  server.Clear();
  auto store = address_leasing::MakeKubeStore(server.Access(), kTimeout);
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(store->Create(ipam::LeaseKey::Block(kPool, i), "{}"));
  const Json page =
      Json::parse(server.Admin("GET", std::string(kBlockPath) + "?limit=1").body).at("metadata");
  const std::string token = page.at("continue");
  server.Admin("GET", std::string(kBlockPath) + "?limit=1&continue=" + token);
  server.Admin("POST", "/standin/expire");
  EXPECT_THROW(server.Admin("GET", std::string(kBlockPath) + "?limit=1&continue=" + token),
               std::runtime_error);
  const std::string version = page.at("resourceVersion");
  const http::HttpAnswer events =
      server.Admin("GET", std::string(kBlockPath) + "?watch=1&resourceVersion=" + version);
  EXPECT_EQ(Json::parse(events.body).at("object").at("code"), 410);
  // A list from a block on asks for the latest state, which does not expire.
  EXPECT_EQ(store->Blocks(kPool, 1, 10)->size(), 2U);
}

TEST(KubeStandInTest, AServerMayAnswerInPieces) {
  // Two pages of one object each where three were asked for.
  const auto page = [](const std::string& name, const std::string& token) {
    const Json item = {{"metadata", {{"name", name}, {"uid", "u"}, {"resourceVersion", "5"}}},
                       {"spec", Json::object()}};
    const Json list = {{"metadata", {{"resourceVersion", "7"}, {"continue", token}}}, {"items", {item}}};
    return ScriptedServer::Answer(200, list.dump());
  };
  ScriptedServer server({{page("a", "next token")}, {page("b", "")}});
  KubeAccess access;
  access.endpoint = *http::ParseHttpEndpoint(server.url());
  auto listed = address_leasing::MakeKubeStore(access, kTimeout)->Nodes("", 3);
  ASSERT_TRUE(listed) << Describe(listed.error());
  EXPECT_EQ(listed->size(), 2U);
  EXPECT_NE(server.last().find("?limit=2&continue=next%20token "), std::string::npos) << server.last();
}

struct BadAnswer {
  const char* name;
  int status;
  const char* body;
  ErrorCode code;
  const char* word;
};

void PrintTo(const BadAnswer& answer, std::ostream* out) {
  *out << answer.name;
}

class KubeAnswerTest : public ::testing::TestWithParam<BadAnswer> {};

TEST_P(KubeAnswerTest, IsAnErrorOfItsKind) {
  KubeServer& server = Shared(KubeServer::Kind::kStandIn);
  server.Clear();
  auto store = address_leasing::MakeKubeStore(server.Access(), kTimeout);
  auto seen = store->Create(ipam::LeaseKey::Node("node0"), "{}");
  ASSERT_TRUE(seen) << Describe(seen.error());
  const Json answer = {{"status", GetParam().status},
                       {"headers", {{"Retry-After", "7"}}},
                       {"body", GetParam().body},
                       {"times", 1}};
  const auto expect = [&](const auto& call) {
    server.Admin("POST", "/standin/answer", answer.dump());
    const std::uint64_t before = store->calls();
    const auto result = call();
    EXPECT_EQ(store->calls(), before + 1);  // asked once
    ASSERT_FALSE(result);
    ExpectError(result.error(), GetParam().code, GetParam().word);
  };
  expect([&] { return store->Get(seen->key); });
  expect([&] { return store->Create(ipam::LeaseKey::Node("node1"), "{}"); });
  expect([&] { return store->Update(*seen, R"({"a":1})"); });
  expect([&] { return store->Nodes("", 5); });
  EXPECT_EQ(**store->Get(seen->key), *seen);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, KubeAnswerTest,
    ::testing::Values(
        BadAnswer{"NoJson", 200, "<html>", ErrorCode::kMalformed, "no valid JSON"},
        BadAnswer{"NoObject", 200, R"({"kind":"Status"})", ErrorCode::kMalformed, "kubernetes-store"},
        BadAnswer{"OtherName", 200,
                  R"({"metadata":{"name":"x","uid":"u","resourceVersion":"1"},"items":[{}],"spec":{}})",
                  ErrorCode::kMalformed, "kubernetes-store"},
        BadAnswer{"TooMany", 429, R"({"message":"slow down"})", ErrorCode::kUnavailable, "after 7 s"},
        BadAnswer{"Internal", 500, R"({"message":"etcd is away"})", ErrorCode::kUnavailable, "etcd is away"},
        BadAnswer{"Timeout", 504, R"({"reason":"Timeout","message":"too slow"})", ErrorCode::kTimeout,
                  "too slow"},
        BadAnswer{"Unprocessable", 422, R"({"reason":"Invalid","message":"bad spec"})", ErrorCode::kInvalid,
                  "bad spec"},
        BadAnswer{"Elsewhere", 302, "", ErrorCode::kMalformed, "302"},
        BadAnswer{"NoApi", 404, "404 page not found", ErrorCode::kInvalid, "kubernetes-store"}),
    [](const auto& named) { return named.param.name; });

TEST(KubeAnswersTest, WhatTheServerDropsIsAnError) {
  ScriptedServer server({{ScriptedServer::Answer(
      201, R"({"metadata":{"name":"node0","uid":"u","resourceVersion":"1"},"spec":{"counter":1}})")}});
  KubeAccess access;
  access.endpoint = *http::ParseHttpEndpoint(server.url());
  auto made = address_leasing::MakeKubeStore(access, kTimeout)
                  ->Create(ipam::LeaseKey::Node("node0"), R"({"counter":1,"session":"s"})");
  ASSERT_FALSE(made);
  ExpectError(made.error(), ErrorCode::kMalformed, "something else than was sent");
}

TEST(KubeAnswersTest, WhatAFinalizerKeepsIsNotRemoved) {
  ScriptedServer server({{ScriptedServer::Answer(
      200, R"({"kind":"NodeAddresses","metadata":{"name":"node0","finalizers":["x/y"]},"spec":{}})")}});
  KubeAccess access;
  access.endpoint = *http::ParseHttpEndpoint(server.url());
  auto removed =
      address_leasing::MakeKubeStore(access, kTimeout)->Remove({ipam::LeaseKey::Node("node0"), "{}", "u/1"});
  ASSERT_FALSE(removed);
  ExpectError(removed.error(), ErrorCode::kUnavailable, "finalizers");
  EXPECT_NE(server.last().find(R"("preconditions":{"resourceVersion":"1","uid":"u"})"), std::string::npos)
      << server.last();
}

TEST(KubeNamesTest, ThereAndBack) {
  const std::vector<std::pair<ipam::LeaseKey, std::string>> names = {
      {ipam::LeaseKey::Block("10.100.0.0/16", 42), "v4-10-100-0-0-16-000000000000002a"},
      {ipam::LeaseKey::Block("0.0.0.0/0", 0), "v4-0-0-0-0-0-0000000000000000"},
      {ipam::LeaseKey::Block("fd00:1::/64", UINT64_MAX),
       "v6-fd000001000000000000000000000000-64-ffffffffffffffff"},
      {ipam::LeaseKey::Node("node-0.rack1"), "node-0.rack1"}};
  for (const auto& [key, name] : names) {
    auto made = address_leasing::KubeNameOf(key);
    ASSERT_TRUE(made) << Describe(made.error());
    EXPECT_EQ(*made, name);
    EXPECT_EQ(address_leasing::ParseKubeName(key.kind, name), key);
    EXPECT_LE(name.size(), 63U);
  }
}

TEST(KubeNamesTest, OthersAreNotOurs) {
  for (const char* name :
       {"", "v4", "v4-10-100-0-0-16", "v4-10-100-0-0-33-0000000000000000", "v4-10-100-0-0-16-2a",
        "v4-10-100-0-1-16-000000000000002a", "v4-010-100-0-0-16-000000000000002a",
        "v5-10-100-0-0-16-000000000000002a", "v4-10-100-0-0-16-00000000000000zz",
        "v6-FD000001000000000000000000000000-64-0000000000000000"}) {
    EXPECT_EQ(address_leasing::ParseKubeName(ipam::LeaseKey::Kind::kBlock, name), std::nullopt) << name;
  }
  for (const char* name : {"", "A", "-a", "a-", "a/b", "a b"}) {
    EXPECT_EQ(address_leasing::ParseKubeName(ipam::LeaseKey::Kind::kNode, name), std::nullopt) << name;
    EXPECT_FALSE(address_leasing::KubeNameOf(ipam::LeaseKey::Node(name))) << name;
  }
}

}  // namespace
}  // namespace railhead::testing
