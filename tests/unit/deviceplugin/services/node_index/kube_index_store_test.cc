// The Kubernetes API's own ways of refusing and failing; on the stand-in, and what a real kube-apiserver can
// be brought to on that, too.
#include "deviceplugin/services/node_index/kube_index_store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "deviceplugin/services/node_index/index_store.h"
#include "deviceplugin/support/kubernetes/kube_access.h"
#include "tests/support/kubernetes/kube_servers.h"
#include "tests/support/kubernetes/scripted_server.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;
using node_index::ClaimEntry;
using node_index::Encode;
using node_index::IndexRecord;
using node_index::IndexStore;

constexpr const char* kClaims = "/apis/railhead.io/v1alpha1/nodeindices";
constexpr std::chrono::seconds kTimeout{60};

void ExpectError(const Error& error, ErrorCode code, const std::string& word) {
  EXPECT_EQ(error.code, code) << Describe(error);
  EXPECT_NE(Describe(error).find(word), std::string::npos) << Describe(error);
}

std::unique_ptr<IndexStore> StoreOf(const ScriptedServer& server) {
  KubeAccess access;
  access.endpoint = *http::ParseHttpEndpoint(server.url());
  return node_index::MakeKubeIndexStore(access, kTimeout);
}

class KubeIndexTest : public ::testing::TestWithParam<KubeServer::Kind> {
 protected:
  KubeIndexTest() { server_.Clear(); }
  Result<ClaimEntry> Create(std::uint64_t index, const IndexRecord& record) {
    return store_->Create(index, Encode(record));
  }
  static Error ErrorOf(const KubeAccess& access) {
    auto got = node_index::MakeKubeIndexStore(access, kTimeout)->Get(7);
    return got ? Error{} : got.error();
  }

  KubeServer& server_ = SharedKubeServer(GetParam());
  std::unique_ptr<IndexStore> store_ = node_index::MakeKubeIndexStore(server_.Access(), kTimeout);
};

TEST_P(KubeIndexTest, ObjectsAreWhatPeopleExpect) {
  const auto made = Create(17, {"a", "u", ""});
  ASSERT_TRUE(made) << Describe(made.error());
  const Json item = Json::parse(server_.Admin("GET", std::string(kClaims) + "/node-17").body);
  EXPECT_EQ(item.at("kind"), "NodeIndex");
  EXPECT_EQ(item.at("spec"), (Json{{"node", "a"}, {"uid", "u"}}));
  EXPECT_FALSE(item.at("metadata").contains("ownerReferences")) << "garbage collection must leave it alone";
  const auto marked = store_->Update(*made, Encode(IndexRecord{"a", "u", "b"}));
  ASSERT_TRUE(marked) << Describe(marked.error());
  EXPECT_EQ(node_index::ParseIndexRecord(**store_->Get(17)), (IndexRecord{"a", "u", "b"}));
}

TEST_P(KubeIndexTest, WhoIsUnknownOrMayNotIsRefused) {
  ASSERT_EQ(ErrorOf(server_.Access()).message, "");
  ExpectError(ErrorOf(server_.UnprivilegedAccess()), ErrorCode::kPermission,
              "bind its role railhead-node-index");
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

TEST_P(KubeIndexTest, ATokenIsReadAgain) {
  const std::string path = server_.files().directory() + "/rotated";
  WriteFileAt(path, "made-up");
  KubeAccess access = server_.Access();
  access.token_file = path;
  const auto store = node_index::MakeKubeIndexStore(access, kTimeout);
  EXPECT_EQ(store->Claims(std::nullopt, 1).error().code, ErrorCode::kPermission);
  WriteFileAt(path, ReadFileAt(server_.files().directory() + "/token"));
  const auto listed = store->Claims(std::nullopt, 1);
  EXPECT_TRUE(listed) << Describe(listed.error());
  WriteFileAt(path, "");
  ExpectError(store->Claims(std::nullopt, 1).error(), ErrorCode::kPermission, "is empty");
}

TEST_P(KubeIndexTest, AnUnknownResourceIsNoEmptyList) {
  // A path that the server does not know, as it does not before the manifest is applied.
  KubeAccess access = server_.AdminAccess();
  access.endpoint.path = "/apis/nobody.example/v1";
  const auto store = node_index::MakeKubeIndexStore(access, kTimeout);
  ExpectError(store->Get(7).error(), ErrorCode::kInvalid, "manifests/components/node-index");
  ExpectError(store->Claims(std::nullopt, 1).error(), ErrorCode::kInvalid, "manifests/components/node-index");
}

TEST_P(KubeIndexTest, TheSchemaRefusesWhatNobodyCanRead) {
  const auto create = [&](const std::string& name) {
    const Json claim = {{"apiVersion", "railhead.io/v1alpha1"},
                        {"kind", "NodeIndex"},
                        {"metadata", {{"name", name}}},
                        {"spec", {{"node", "a"}, {"uid", "u"}}}};
    server_.Admin("POST", kClaims, claim.dump());
  };
  for (const char* name : {"node-", "node-01", "node-x", "17", "mine", "node-65536", "node-65540",
                           "node-66000", "node-70000", "node-100000", "node-12345678901"}) {
    EXPECT_THROW(create(name), std::runtime_error) << name;
  }
  for (const char* name : {"node-0", "node-9", "node-9999", "node-10000", "node-59999", "node-64999",
                           "node-65499", "node-65529", "node-65535"}) {
    EXPECT_NO_THROW(create(name)) << name;
    EXPECT_TRUE(node_index::ParseKubeName(name)) << name;
  }
  const auto refused = store_->Create(1, R"({"node": "a"})");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid) << Describe(refused.error());
  const auto made = Create(2, {"a", "u", ""});
  ASSERT_TRUE(made) << Describe(made.error());
  const auto changed = store_->Update(*made, R"({"node": 7, "uid": "u"})");
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, ErrorCode::kInvalid) << Describe(changed.error());
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
  server_.Admin("DELETE", "/api/v1/nodes/" + name);
  const auto gone = store_->Node(name);
  ASSERT_TRUE(gone) << Describe(gone.error());
  EXPECT_FALSE(*gone);
}

INSTANTIATE_TEST_SUITE_P(Servers, KubeIndexTest, ::testing::ValuesIn(KubeServerKinds()),
                         [](const auto& named) { return NameOfKubeServer(named.param); });

TEST(KubeStandInTest, ListsExpire) {
  KubeServer& server = SharedKubeServer(KubeServer::Kind::kStandIn);
  server.Clear();
  const auto store = node_index::MakeKubeIndexStore(server.Access(), kTimeout);
  for (const std::uint64_t index : {0, 1, 2})
    ASSERT_TRUE(store->Create(index, Encode(IndexRecord{"a", "u", ""})));
  const Json page = Json::parse(server.Admin("GET", std::string(kClaims) + "?limit=1").body).at("metadata");
  const std::string token = page.at("continue");
  const std::string next = std::string(kClaims) + "?limit=1&continue=" + token;
  server.Admin("GET", next);
  server.Admin("POST", "/standin/expire");
  EXPECT_THROW(server.Admin("GET", next), std::runtime_error);
  // A list from an index on asks for the latest state, which does not expire.
  EXPECT_EQ(store->Claims(0, 10)->size(), 2U);
}

TEST(KubeStandInTest, KeepsItsStateAndLosesAnswers) {
  KubeServer server(KubeServer::Kind::kStandIn, {.keeps_state = true});
  const auto store = node_index::MakeKubeIndexStore(server.Access(), kTimeout);
  const Json node = {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", "a"}}}};
  server.Admin("POST", "/api/v1/nodes", node.dump());
  server.Admin("POST", "/standin/lose", R"({"times": 1})");
  EXPECT_FALSE(store->Create(7, Encode(IndexRecord{"a", "u", ""}))) << "no answer";
  const auto made = store->Get(7);
  ASSERT_TRUE(made && *made);
  server.Kill();
  EXPECT_FALSE(store->Get(7));
  server.Start();
  EXPECT_EQ(store->Get(7).value(), *made);
  EXPECT_TRUE(store->Node("a").value());
  const auto changed = store->Update(**made, Encode(IndexRecord{"a", "v", ""}));
  ASSERT_TRUE(changed) << Describe(changed.error());
  EXPECT_NE(changed->revision, (*made)->revision);
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

// The store asks once: a second request would get the right answer.
TEST_P(KubeAnswerTest, IsAnErrorOfItsKind) {
  KubeServer& server = SharedKubeServer(KubeServer::Kind::kStandIn);
  server.Clear();
  const auto store = node_index::MakeKubeIndexStore(server.Access(), kTimeout);
  const auto seen = store->Create(0, Encode(IndexRecord{"a", "u", ""}));
  ASSERT_TRUE(seen) << Describe(seen.error());
  const Json answer = {{"status", GetParam().status},
                       {"headers", {{"Retry-After", "7"}}},
                       {"body", GetParam().body},
                       {"times", 1}};
  const auto expect = [&](const auto& call) {
    server.Admin("POST", "/standin/answer", answer.dump());
    const auto result = call();
    ASSERT_FALSE(result);
    ExpectError(result.error(), GetParam().code, GetParam().word);
  };
  expect([&] { return store->Get(0); });
  expect([&] { return store->Create(1, Encode(IndexRecord{"a", "u", ""})); });
  expect([&] { return store->Update(*seen, Encode(IndexRecord{"a", "v", ""})); });
  expect([&] { return store->Claims(std::nullopt, 5); });
  EXPECT_EQ(store->Get(0).value(), *seen);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, KubeAnswerTest,
    ::testing::Values(
        BadAnswer{"NoJson", 200, "<html>", ErrorCode::kMalformed, "no valid JSON"},
        BadAnswer{"NoObject", 200, R"({"kind":"Status"})", ErrorCode::kMalformed, "components/node-index"},
        BadAnswer{"OtherName", 200,
                  R"({"metadata":{"name":"x","uid":"u","resourceVersion":"1"},"items":[7],"spec":{}})",
                  ErrorCode::kMalformed, "components/node-index"},
        BadAnswer{"TooMany", 429, R"({"message":"slow down"})", ErrorCode::kUnavailable, "after 7 s"},
        BadAnswer{"Internal", 500, R"({"message":"etcd is away"})", ErrorCode::kUnavailable, "etcd is away"},
        BadAnswer{"Timeout", 504, R"({"reason":"Timeout","message":"too slow"})", ErrorCode::kTimeout,
                  "too slow"},
        BadAnswer{"Unprocessable", 422, R"({"reason":"Invalid","message":"bad spec"})", ErrorCode::kInvalid,
                  "bad spec"},
        BadAnswer{"Elsewhere", 302, "", ErrorCode::kMalformed, "302"},
        BadAnswer{"NoApi", 404, "404 page not found", ErrorCode::kInvalid, "components/node-index"}),
    [](const auto& named) { return named.param.name; });

TEST(KubeIndexAnswerTest, KubeletsMachineIsReadFromTheNode) {
  ScriptedServer server({{ScriptedServer::Answer(
      200, R"({"metadata":{"name":"a","uid":"u"},"status":{"nodeInfo":{"systemUUID":"4C4C-1"}}})")}});
  const auto node = StoreOf(server)->Node("a");
  ASSERT_TRUE(node && *node);
  EXPECT_EQ((*node)->machine, "4C4C-1");
  EXPECT_NE(server.last().find("GET /api/v1/nodes/a "), std::string::npos) << server.last();
}

TEST(KubeIndexAnswerTest, WhatTheServerDropsIsAnError) {
  ScriptedServer server({{ScriptedServer::Answer(
      201, R"({"metadata":{"name":"node-7","uid":"o","resourceVersion":"1"},"spec":{"node":"a"}})")}});
  const auto made = StoreOf(server)->Create(7, Encode(IndexRecord{"a", "u", ""}));
  ASSERT_FALSE(made);
  ExpectError(made.error(), ErrorCode::kMalformed, "something else than was sent");
}

TEST(KubeIndexAnswerTest, WhatAFinalizerKeepsIsNotRemoved) {
  ScriptedServer server({{ScriptedServer::Answer(
      200, R"({"kind":"NodeIndex","metadata":{"name":"node-7","finalizers":["x/y"]},"spec":{}})")}});
  const auto removed = StoreOf(server)->Remove({7, "{}", "u/1"});
  ASSERT_FALSE(removed);
  ExpectError(removed.error(), ErrorCode::kUnavailable, "finalizers");
  EXPECT_NE(server.last().find(R"("preconditions":{"resourceVersion":"1","uid":"u"})"), std::string::npos)
      << server.last();
}

// Two pages of one object each where three were asked for.
TEST(KubeIndexAnswerTest, AServerMayAnswerInPieces) {
  const auto page = [](const std::string& name, const std::string& token) {
    const Json item = {{"metadata", {{"name", name}, {"uid", "u"}, {"resourceVersion", "5"}}},
                       {"spec", Json::object()}};
    const Json list = {{"metadata", {{"resourceVersion", "7"}, {"continue", token}}},
                       {"items", Json::array({item})}};
    return ScriptedServer::Answer(200, list.dump());
  };
  ScriptedServer server({{page("node-1", "next token")}, {page("node-2", "")}});
  const auto listed = StoreOf(server)->Claims(std::nullopt, 3);
  ASSERT_TRUE(listed) << Describe(listed.error());
  EXPECT_EQ(listed->size(), 2U);
  EXPECT_NE(server.last().find("?limit=2&continue=next%20token "), std::string::npos) << server.last();
}

// A server with another custom resource definition: the object's name is a claim all the same.
TEST(KubeIndexAnswerTest, AClaimWithoutASpecIsListed) {
  ScriptedServer server({{ScriptedServer::Answer(200, R"({"metadata":{"resourceVersion":"9"},"items":[
          {"metadata":{"name":"node-3","uid":"u","resourceVersion":"1"}},
          {"metadata":{"name":"node-4","uid":"u","resourceVersion":"1"},"spec":[7]},
          {"metadata":{"name":"node-5","uid":"u","resourceVersion":"1"},"spec":{"node":"a","uid":"u"}}]})")}});
  const auto claims = StoreOf(server)->Claims(std::nullopt, 10);
  ASSERT_TRUE(claims) << Describe(claims.error());
  ASSERT_EQ(claims->size(), 3U);
  for (const std::size_t i : {0U, 1U}) {
    const auto record = node_index::ParseIndexRecord(claims->at(i));
    ASSERT_FALSE(record);
    EXPECT_NE(record.error().message.find("NodeIndex node-" + std::to_string(i + 3)), std::string::npos)
        << record.error().message;
    EXPECT_NE(record.error().hint.find("kubectl get nodeindex node-"), std::string::npos);
  }
  EXPECT_EQ(node_index::ParseIndexRecord(claims->at(2)), (IndexRecord{"a", "u", ""}));
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
                                        rest + R"(,{"metadata":{"name":"node-65536",)" + rest + "]}")}});
  const auto claims = StoreOf(server)->Claims(std::nullopt, 2);
  ASSERT_TRUE(claims) << Describe(claims.error());
  ASSERT_EQ(claims->size(), 1U);
  EXPECT_EQ(claims->at(0).index, 5U);
}

TEST(KubeIndexNamesTest, ThereAndBack) {
  EXPECT_EQ(node_index::KubeNameOf(17), "node-17");
  for (const std::uint64_t index : {std::uint64_t{0}, std::uint64_t{17}, node_index::kLastIndex})
    EXPECT_EQ(node_index::ParseKubeName(node_index::KubeNameOf(index)), index);
  for (const char* name : {"", "node-", "node-01", "node--1", "node-1 ", "Node-1", "1", "node-65536",
                           "node-4294967296", "node-18446744073709551616"})
    EXPECT_EQ(node_index::ParseKubeName(name), std::nullopt) << name;
}

}  // namespace
}  // namespace railhead::testing
