// A list and a watch against the stand-in, and a real kube-apiserver if there is one: what it knows is always
// what the server has in the end, whatever happens to connections and versions in between.
#include "deviceplugin/support/kubernetes/resource_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "deviceplugin/support/kubernetes/kube_access.h"
#include "tests/support/eventually.h"
#include "tests/support/kubernetes/kube_servers.h"
#include "tests/support/kubernetes/scripted_server.h"
#include "tests/support/seed.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

constexpr const char* kPath = "/apis/railhead.io/v1alpha1/nodeindices";
constexpr std::chrono::seconds kTimeout{60};

// The name and node of each object.
class Known : public WatchedObjects {
 public:
  void BeginList() override { next_.emplace(); }
  void EndList() override {
    objects = *std::move(next_);
    next_.reset();
    ++lists;
  }
  void Set(const std::string& name, JsonReader object) override {
    auto spec = object.Object("spec");
    (next_ ? *next_ : objects)[name] = spec ? spec->RequiredString("node") : "";
  }
  void Remove(const std::string& name) override { objects.erase(name); }

  std::map<std::string, std::string> objects;
  int lists = 0;

 private:
  std::optional<std::map<std::string, std::string>> next_;
};

class ResourceWatchTest : public ::testing::TestWithParam<KubeServer::Kind> {
 protected:
  ResourceWatchTest() { server_.Clear(); }

  void Put(int index, const std::string& node) {
    const std::string name = "node-" + std::to_string(index);
    Json object = {{"apiVersion", "railhead.io/v1alpha1"},
                   {"kind", "NodeIndex"},
                   {"metadata", {{"name", name}}},
                   {"spec", {{"node", node}, {"uid", "u"}}}};
    if (there_.contains(name)) {
      const auto now = Json::parse(server_.Admin("GET", std::string(kPath) + "/" + name).body);
      object["metadata"]["resourceVersion"] = now.at("metadata").at("resourceVersion");
      server_.Admin("PUT", std::string(kPath) + "/" + name, object.dump());
    } else {
      server_.Admin("POST", kPath, object.dump());
    }
    there_[name] = node;
  }
  void Drop(int index) {
    const std::string name = "node-" + std::to_string(index);
    if (there_.erase(name) != 0) server_.Admin("DELETE", std::string(kPath) + "/" + name);
  }
  // Whether the watch comes to know what is there. Errors on the way are what the caller made.
  bool Follows(ResourceWatch& watch) {
    return Eventually([&] {
      (void)watch.Take(std::chrono::milliseconds(50), known_);
      return known_.lists > 0 && known_.objects == there_;
    });
  }

  KubeServer& server_ = SharedKubeServer(GetParam());
  std::map<std::string, std::string> there_;
  Known known_;
};

TEST_P(ResourceWatchTest, KnowsWhatWasThereAndWhatChanges) {
  for (int i = 0; i < 1200; ++i) Put(i, "n" + std::to_string(i));
  ResourceWatch watch(server_.Access(), kTimeout, kPath);
  EXPECT_TRUE(Follows(watch));
  Put(3, "other");
  Put(5000, "new");
  Drop(4);
  EXPECT_TRUE(Follows(watch));
  EXPECT_EQ(known_.lists, 1) << "events are enough";
}

TEST_P(ResourceWatchTest, AnUnprivilegedUserLearnsWhichRoleIsMissing) {
  ResourceWatch watch(server_.UnprivilegedAccess(), kTimeout, kPath);
  const auto taken = watch.Take(std::chrono::milliseconds(0), known_);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, ErrorCode::kPermission);
  EXPECT_NE(taken.error().hint.find("railhead-node-index"), std::string::npos) << Describe(taken.error());
}

std::string KindName(const ::testing::TestParamInfo<KubeServer::Kind>& info) {
  return NameOfKubeServer(info.param);
}
INSTANTIATE_TEST_SUITE_P(Servers, ResourceWatchTest, ::testing::ValuesIn(KubeServerKinds()), KindName);

// What only the stand-in can be made to do.
class BrokenWatchTest : public ResourceWatchTest {};

TEST_P(BrokenWatchTest, GoesOnWhereACutWatchHasEnded) {
  Put(1, "a");
  ResourceWatch watch(server_.Access(), kTimeout, kPath);
  ASSERT_TRUE(Follows(watch));
  for (int i = 2; i < 6; ++i) {
    server_.Admin("POST", "/standin/cut");
    Put(i, "b");
    Drop(i - 1);
    EXPECT_TRUE(Follows(watch));
  }
  EXPECT_EQ(known_.lists, 1);
}

TEST_P(BrokenWatchTest, ListsAnewWhenTheServerHasForgottenItsVersion) {
  Put(1, "a");
  ResourceWatch watch(server_.Access(), kTimeout, kPath);
  ASSERT_TRUE(Follows(watch));
  server_.Admin("POST", "/standin/cut");
  EXPECT_FALSE(watch.Take(kTimeout, known_)) << "the cut";
  // Gone while nobody watched, and forgotten: only a list shows it.
  Drop(1);
  Put(2, "b");
  server_.Admin("POST", "/standin/expire");
  EXPECT_TRUE(Follows(watch));
  EXPECT_EQ(known_.lists, 2);
}

TEST_P(BrokenWatchTest, ABookmarkSavesAList) {
  Put(1, "a");
  ResourceWatch watch(server_.Access(), kTimeout, kPath);
  ASSERT_TRUE(Follows(watch));
  // The version of the last event is too old now, that of the bookmark which follows is not.
  server_.Admin("POST", "/standin/expire");
  ASSERT_TRUE(watch.Take(kTimeout, known_)) << "the bookmark";
  server_.Admin("POST", "/standin/cut");
  EXPECT_FALSE(watch.Take(kTimeout, known_)) << "the cut";
  Put(2, "b");
  EXPECT_TRUE(Follows(watch));
  EXPECT_EQ(known_.lists, 1);
}

TEST_P(BrokenWatchTest, EndsAtTheTruthWhateverHappens) {
  std::mt19937_64 random(Seed());
  ResourceWatch watch(server_.Access(), kTimeout, kPath);
  for (int round = 0; round < 60; ++round) {
    switch (random() % 7) {
      case 0:
        server_.Admin("POST", "/standin/cut");
        break;
      case 1:
        server_.Admin("POST", "/standin/expire");
        break;
      case 2:
        server_.Admin("POST", "/standin/answer", R"({"status": 503, "body": "busy", "times": 1})");
        break;
      case 3:
        server_.Admin("POST", "/standin/answer", R"({"status": 200, "body": "{\"items\": [{", "times": 1})");
        break;
      case 4:
        Drop(static_cast<int>(random() % 8));
        break;
      default:
        Put(static_cast<int>(random() % 8), "n" + std::to_string(random() % 3));
    }
    if (random() % 2 == 0) (void)watch.Take(std::chrono::milliseconds(random() % 20), known_);
    if (random() % 10 == 0) {
      ASSERT_TRUE(Follows(watch)) << "round " << round;
    }
  }
  EXPECT_TRUE(Follows(watch));
}

INSTANTIATE_TEST_SUITE_P(StandIn, BrokenWatchTest, ::testing::Values(KubeServer::Kind::kStandIn), KindName);

// An API server of another cluster, or one whose etcd was restored from a copy.
TEST(ResourceWatchScripts, AVersionOfTheFutureEndsInAListOfAnyState) {
  (void)std::signal(SIGPIPE, SIG_IGN);
  const std::string list =
      R"({"kind": "NodeIndexList", "items": [], "metadata": {"resourceVersion": "900"}})";
  const std::string future =
      R"({"kind": "Status", "reason": "Timeout", "message": "Timeout: Too large resource version: 900, current: 5"})";
  const std::string restored =
      R"({"kind": "NodeIndexList", "items": [{"metadata": {"name": "node-1"}, "spec": {"node": "a"}}], "metadata": {"resourceVersion": "5"}})";
  ScriptedServer server({{.bytes = ScriptedServer::Answer(200, list), .close = true},
                         {.bytes = ScriptedServer::Answer(504, future), .close = true},
                         {.bytes = ScriptedServer::Answer(504, future), .close = true},
                         {.bytes = ScriptedServer::Answer(200, restored), .close = true},
                         {.bytes = ScriptedServer::Answer(200, ""), .close = true}});
  KubeAccess access;
  access.endpoint = *http::ParseHttpEndpoint(server.url());
  ResourceWatch watch(access, kTimeout, kPath);
  Known known;
  EXPECT_TRUE(watch.Take(std::chrono::milliseconds(0), known));
  EXPECT_FALSE(watch.Take(std::chrono::milliseconds(0), known));
  EXPECT_TRUE(watch.Take(std::chrono::milliseconds(0), known));
  EXPECT_EQ(known.objects, (std::map<std::string, std::string>{{"node-1", "a"}}));
}

// What is no list or no event is an error, and what was known stays.
TEST(ResourceWatchScripts, KeepsWhatItKnowsWhenAnAnswerIsBroken) {
  (void)std::signal(SIGPIPE, SIG_IGN);
  const std::string good =
      R"({"items": [{"metadata": {"name": "node-1"}, "spec": {"node": "a"}}], "metadata": {"resourceVersion": "5"}})";
  for (const std::string bad :
       {"", "[]", "{}", R"({"items": [{"metadata": {}}], "metadata": {"resourceVersion": "6"}})",
        R"({"items": [{"metadata": {"name": "node-2"}}], "metadata": {}})", R"({"items": [{"metadata":)"}) {
    ScriptedServer server({{.bytes = ScriptedServer::Answer(200, good), .close = true},
                           {.bytes = ScriptedServer::Answer(200, "nonsense\n"), .close = true},
                           {.bytes = ScriptedServer::Answer(200, bad), .close = true}});
    KubeAccess access;
    access.endpoint = *http::ParseHttpEndpoint(server.url());
    ResourceWatch watch(access, kTimeout, kPath);
    Known known;
    const auto nonsense = watch.Take(std::chrono::seconds(60), known);
    ASSERT_FALSE(nonsense);
    EXPECT_NE(nonsense.error().message.find("nonsense"), std::string::npos) << Describe(nonsense.error());
    EXPECT_FALSE(watch.Take(std::chrono::milliseconds(0), known)) << bad;
    EXPECT_EQ(known.objects, (std::map<std::string, std::string>{{"node-1", "a"}})) << bad;
    EXPECT_EQ(known.lists, 1);
  }
}

}  // namespace
}  // namespace railhead::testing
