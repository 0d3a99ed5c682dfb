// Node status arrives at the API server's stand-in, whatever else happens there.
#include "deviceplugin/services/node_status/node_status_service.h"

#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/services/node_status/node_api.h"
#include "deviceplugin/services/node_status/node_status_settings.h"
#include "deviceplugin/services/node_status/node_status_writer.h"
#include "deviceplugin/services/node_status/rail_states.h"
#include "deviceplugin/services/node_status/rails_taint.h"
#include "deviceplugin/support/kubernetes/kube_access.h"
#include "tests/support/eventually.h"
#include "tests/support/kubernetes/kube_server.h"
#include "tests/support/metrics/metrics_parser.h"
#include "tests/support/service/running.h"
#include "tests/support/temp_root.h"
#include "tests/unit/deviceplugin/services/node_status/support.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

constexpr const char* kNode = "/api/v1/nodes/gpu-001";
constexpr std::chrono::seconds kTimeout{30};

KubeServer& Server() {
  (void)std::signal(SIGPIPE, SIG_IGN);
  static KubeServer server(KubeServer::Kind::kStandIn);
  return server;
}

class NodeStatusWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Json ready = {{"type", "Ready"}, {"status", "True"}};
    const Json node = {{"metadata", {{"name", "gpu-001"}}},
                       {"spec", {{"taints", Json::array({other_})}}},
                       {"status", {{"conditions", Json::array({ready})}}}};
    Server().Admin("POST", "/api/v1/nodes", node.dump());
    events_before_ = Events().size();
  }
  static node_status::NodeStatusSettings All() {
    node_status::NodeStatusSettings settings;
    settings.node_condition = settings.events = true;
    settings.taint.emplace();
    return settings;
  }
  std::unique_ptr<node_status::NodeStatusWriter> Make(const node_status::NodeStatusSettings& settings,
                                                      const KubeAccess& access) {
    return std::make_unique<node_status::NodeStatusWriter>(
        settings, std::make_unique<node_status::NodeApi>(access, kTimeout, "gpu-001"), 1);
  }
  void Begin(const node_status::NodeStatusSettings& settings = All()) {
    writer_ = Make(settings, Server().Access());
  }
  node_status::NodeStatusOutcome Step(int second, std::vector<node_status::RailState> rails = {
                                                      Healthy("rail0"), Healthy("rail1")}) {
    status_.rails = std::move(rails);
    return writer_->Step(status_,
                         std::chrono::steady_clock::time_point(std::chrono::seconds(100000 + second)),
                         std::chrono::system_clock::from_time_t(1772366400 + second));
  }
  static Json Node() { return Json::parse(Server().Admin("GET", kNode).body); }
  static Json Taints() { return Node()["spec"].value("taints", Json::array()); }
  static Json Condition(const std::string& type = node_status::kRailsReady) {
    const Json node = Node();
    for (const Json& condition : node["status"]["conditions"])
      if (condition["type"] == type) return condition;
    return {};
  }
  static Json Events() { return Json::parse(Server().Admin("GET", "/api/v1/events").body)["items"]; }
  // The answer to the next requests.
  static void Script(int status, const std::string& body = "", int times = 1) {
    const Json script = {{"status", status}, {"body", body}, {"times", times}};
    Server().Admin("POST", "/standin/answer", script.dump());
  }

  const Json other_ = {{"key", "theirs"}, {"effect", "NoSchedule"}};
  std::unique_ptr<node_status::NodeStatusWriter> writer_;
  node_status::NodeStatus status_;
  std::size_t events_before_ = 0;
};

TEST_F(NodeStatusWriterTest, ABrokenRailIsSeenAndIsNoLonger) {
  Begin();
  auto outcome = Step(0);
  EXPECT_FALSE(outcome.problem) << Describe(*outcome.problem);
  EXPECT_EQ(Condition()["status"], "True");
  EXPECT_EQ(Taints(), Json::array({other_}));
  EXPECT_EQ(Condition("Ready")["status"], "True") << "others' conditions stay";

  outcome = Step(10, {Healthy("rail0"), Broken("rail1")});
  EXPECT_FALSE(outcome.problem);
  EXPECT_EQ(outcome.tainted, true);
  EXPECT_EQ(Condition()["status"], "False");
  EXPECT_EQ(Condition()["reason"], "RailsUnhealthy");
  EXPECT_EQ(Condition()["lastTransitionTime"], "2026-03-01T12:00:10Z");
  EXPECT_EQ(Taints(), Json::array({other_, {{"key", node_status::kRailsTaint}, {"effect", "NoSchedule"}}}));

  outcome = Step(20, {Broken("rail0"), Broken("rail1")});
  EXPECT_EQ(Condition()["lastTransitionTime"], "2026-03-01T12:00:10Z") << "False before";
  EXPECT_EQ(Condition()["lastHeartbeatTime"], "2026-03-01T12:00:20Z");

  outcome = Step(30);
  EXPECT_EQ(outcome.tainted, false);
  EXPECT_EQ(Condition()["status"], "True");
  EXPECT_EQ(Taints(), Json::array({other_}));
}

// Packets of others must not keep pods away.
TEST_F(NodeStatusWriterTest, AnUnreachableRailIsReportedAndTaintsNothing) {
  Begin();
  EXPECT_FALSE(Step(1000).problem);
  node_status::RailState unreachable = Healthy("rail1");
  unreachable.unreachable = "probes reach nothing: silent: gpu-002";
  EXPECT_FALSE(Step(1010, {Healthy("rail0"), unreachable}).problem);
  EXPECT_EQ(Condition()["status"], "False");
  EXPECT_EQ(Condition()["reason"], "RailsUnreachable");
  EXPECT_FALSE(node_status::HasRailsTaint(Taints()));
  const Json event = Events().back();
  EXPECT_EQ(event["reason"], "RailUnreachable");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["message"], "rail1: probes reach nothing: silent: gpu-002");
  EXPECT_FALSE(Step(1020).problem);
  EXPECT_EQ(Condition()["status"], "True");
  EXPECT_EQ(Events().back()["reason"], "RailReachable");
  EXPECT_EQ(Events().back()["type"], "Normal");
}

TEST_F(NodeStatusWriterTest, NothingIsSentBetweenHeartbeatsWhenNothingChanges) {
  Begin();
  auto outcome = Step(0);
  EXPECT_GE(outcome.wait, std::chrono::seconds(270));
  EXPECT_LE(outcome.wait, std::chrono::seconds(330));
  const auto calls = writer_->Counts().requests;
  EXPECT_GE(Step(200).wait, std::chrono::seconds(70));
  EXPECT_EQ(writer_->Counts().requests, calls);
  Step(331);
  EXPECT_EQ(Condition()["lastHeartbeatTime"], "2026-03-01T12:05:31Z");
  EXPECT_EQ(Condition()["lastTransitionTime"], "2026-03-01T12:00:00Z");
}

TEST_F(NodeStatusWriterTest, WhatIsAskedForIsDoneAndNoMore) {
  node_status::NodeStatusSettings settings;
  settings.node_condition = true;
  Begin(settings);
  EXPECT_FALSE(Step(0, {Broken("rail0")}).problem);
  EXPECT_EQ(Taints(), Json::array({other_}));
  settings.node_condition = false;
  settings.taint.emplace();
  Begin(settings);
  EXPECT_FALSE(Step(0, {Broken("rail0")}).problem);
  EXPECT_EQ(Taints().size(), 2U);
  settings.taint->wanted = false;
  Begin(settings);
  EXPECT_EQ(Step(0, {Broken("rail0")}).tainted, false) << "\"taint\": false cleans up";
  EXPECT_EQ(Taints(), Json::array({other_}));
}

TEST_F(NodeStatusWriterTest, AnotherProcessGoesOnWhereTheFirstStopped) {
  Begin();
  Step(0, {Broken("rail0")});
  Begin();
  const auto outcome = Step(60, {Broken("rail0")});
  EXPECT_FALSE(outcome.tainted.has_value()) << "it was there";
  EXPECT_EQ(Condition()["lastTransitionTime"], "2026-03-01T12:00:00Z");
  EXPECT_EQ(Taints().size(), 2U);
}

TEST_F(NodeStatusWriterTest, ATaintThatSomebodyTookAwayComesBackWithTheHeartbeat) {
  Begin();
  Step(0, {Broken("rail0")});
  Server().Admin("PATCH", kNode, R"({"spec": {"taints": null}})", "application/merge-patch+json");
  Step(400, {Broken("rail0")});
  EXPECT_EQ(Taints().size(), 1U);
}

TEST_F(NodeStatusWriterTest, AConflictIsReadAgain) {
  Begin();
  ASSERT_FALSE(Step(0).problem);
  // The read is answered with an older version of the node.
  Json stale = Node();
  stale["metadata"]["resourceVersion"] = "0";
  stale["spec"].erase("taints");
  Script(200, stale.dump());
  const auto outcome = Step(10, {Broken("rail0")});
  EXPECT_FALSE(outcome.problem) << Describe(*outcome.problem);
  EXPECT_EQ(Taints().size(), 2U) << "theirs is not lost";
}

TEST_F(NodeStatusWriterTest, WhatFailsIsTriedAgainEverSlower) {
  node_status::NodeStatusSettings settings;
  settings.node_condition = true;
  Begin(settings);
  Script(503, "", 6);
  std::chrono::milliseconds before{0};
  for (int i = 0; i < 6; ++i) {
    const auto outcome = Step(i, {Broken("rail0")});
    ASSERT_TRUE(outcome.problem);
    EXPECT_EQ(outcome.problem->code, ErrorCode::kUnavailable);
    EXPECT_GT(outcome.wait, before);
    EXPECT_LE(outcome.wait, std::chrono::seconds(66));
    before = outcome.wait;
  }
  EXPECT_EQ(writer_->Counts().failures, 6U);
  const auto outcome = Step(100, {Broken("rail0")});
  EXPECT_FALSE(outcome.problem) << Describe(*outcome.problem);
  EXPECT_GE(outcome.wait, std::chrono::seconds(270));
}

TEST_F(NodeStatusWriterTest, EventsOfTheNodeAndOfPods) {
  Begin();
  status_.devices = {PfHealth(kPfA, "pf0"), VfHealth(kVfA, kPfA)};
  node_status::PodDevice pod;
  pod.pod_namespace = "team";
  pod.pod = "train-0";
  status_.in_pods[kVfA] = pod;
  Step(0);
  EXPECT_EQ(Events().size(), events_before_);
  status_.devices = {PfHealth(kPfA, "pf0", {NoCarrier()}), VfHealth(kVfA, kPfA, {NoCarrier()})};
  ASSERT_FALSE(Step(10).problem);
  Json events = Events();
  ASSERT_EQ(events.size(), events_before_ + 2);
  EXPECT_EQ(events[events_before_]["involvedObject"]["name"], "gpu-001");
  EXPECT_EQ(events[events_before_ + 1]["involvedObject"]["name"], "train-0");
  EXPECT_EQ(writer_->Counts().events_sent, 2U);
  // A second time within ten minutes says nothing new.
  status_.devices = {PfHealth(kPfA, "pf0"), VfHealth(kVfA, kPfA)};
  Step(20);
  status_.devices = {PfHealth(kPfA, "pf0", {NoCarrier()}), VfHealth(kVfA, kPfA, {NoCarrier()})};
  Step(30);
  EXPECT_EQ(Events().size(), events_before_ + 4);
  EXPECT_EQ(writer_->Counts().events_limited, 2U);
}

TEST_F(NodeStatusWriterTest, AnEventWaitsForTheServerButNotForANamespaceThatIsGone) {
  node_status::NodeStatusSettings settings;
  settings.events = true;
  Begin(settings);
  status_.devices = {VfHealth(kVfA, kPfA)};
  node_status::PodDevice pod;
  pod.pod_namespace = "gone";
  pod.pod = "train-0";
  status_.in_pods[kVfA] = pod;
  Step(0);
  status_.devices = {
      VfHealth(kVfA, kPfA, {Because(health::HealthRule::kUnbound, kVfA, "VF is bound to no driver")})};
  Script(503);
  EXPECT_TRUE(Step(10).problem);
  EXPECT_EQ(Events().size(), events_before_);
  const auto outcome = Step(12);
  EXPECT_FALSE(outcome.problem) << Describe(*outcome.problem);
  EXPECT_EQ(Events().size(), events_before_ + 1) << "the node's";
}

TEST_F(NodeStatusWriterTest, ADeniedRequestIsReportedWithWhatToApply) {
  writer_ = Make(All(), Server().UnprivilegedAccess());
  const auto outcome = Step(0);
  ASSERT_TRUE(outcome.problem);
  EXPECT_EQ(outcome.problem->code, ErrorCode::kPermission);
  EXPECT_NE(outcome.problem->hint.find("manifests/components/node-conditions"), std::string::npos);
}

TEST_F(NodeStatusWriterTest, ANodeThatIsNotThere) {
  writer_ = std::make_unique<node_status::NodeStatusWriter>(
      All(), std::make_unique<node_status::NodeApi>(Server().Access(), kTimeout, "elsewhere"), 1);
  const auto outcome = Step(0);
  ASSERT_TRUE(outcome.problem);
  EXPECT_EQ(outcome.problem->code, ErrorCode::kNotFound);
}

// The service beside what it reads.
class NodeStatusServiceTest : public NodeStatusWriterTest {
 protected:
  NodeStatusServiceTest() {
    temp_.Write("/etc/railhead/node-name", "gpu-001\n");
    // Paths are below the root.
    const KubeAccess access = Server().Access();
    auto config = Json::parse(Server().Kubeconfig());
    config["clusters"][0]["cluster"]["certificate-authority"] = "/ca.crt";
    config["users"][0]["user"]["tokenFile"] = "/token";
    temp_.Write("/kubeconfig", config.dump());
    temp_.Write("/ca.crt", ReadFileAt(access.tls.authorities.file));
    temp_.Write("/token", ReadFileAt(access.token_file));
  }
  // One rail, whose PF is in the inventory. "": nothing is reported.
  void Describe(const std::string& what) {
    const auto fabric = ParseFabric(
        R"({"version": 1, "rails": [{"name": "rail0", "pf": ")" + std::string(kPfA) + R"("}])" +
            (what.empty()
                 ? ""
                 : R"(, "nodeStatus": {"kubernetes": {"kubeconfig": "/kubeconfig"}, )" + what + "}") +
            "}",
        "fabric.json");
    ASSERT_TRUE(fabric) << railhead::Describe(fabric.error());
    NodeSnapshot node;
    node.inventory = std::make_shared<const inventory::Inventory>();
    node.of_fabric = true;
    node.fabric = std::make_shared<const Fabric>(*fabric);
    node.pf_of_rail = {{"rail0", kPfA}};
    node_.Set(std::move(node));
  }
  void Say(std::vector<health::DeviceHealth> devices) { health_.Set({++generation_, std::move(devices)}); }
  double Metric(const std::string& name) {
    return ParseMetrics(metrics_.Page(ExpositionFormat::kText), false).Value(name);
  }
  bool HasMetric(const std::string& name) {
    return ParseMetrics(metrics_.Page(ExpositionFormat::kText), false).Find(name, {}) != nullptr;
  }

  TempRoot temp_;
  Log log_{"error"};
  std::uint64_t generation_ = 0;
  Published<NodeSnapshot> node_;
  Published<health::Health> health_;
  Published<RailFaults> faults_;
  Published<std::string> refused_;
  MetricRegistry metrics_;
};

TEST_F(NodeStatusServiceTest, ReportsWhenItIsWokenAndEndsAtOnce) {
  auto service = RunService<node_status::NodeStatusService>(
      temp_.root(), node_status::NodeStatusService::Sources{node_, health_, faults_, refused_}, KubeService{},
      &log_);
  service->Register(metrics_);
  EXPECT_TRUE(Condition().is_null());
  Describe(R"("nodeCondition": true)");
  Say({PfHealth(kPfA, "pf0")});
  EXPECT_TRUE(Eventually([] { return !Condition().is_null() && Condition()["status"] == "True"; }));
  Say({PfHealth(kPfA, "pf0", {NoCarrier()})});
  EXPECT_TRUE(Eventually([] { return Condition()["status"] == "False"; }));
  EXPECT_TRUE(Eventually([&] { return Metric("railhead_node_healthy_rails") == 0; }));
  // Counters only rise, also after a change of the settings.
  const double calls = Metric("railhead_node_status_requests_total");
  Describe(R"("nodeCondition": true, "events": true)");
  Say({PfHealth(kPfA, "pf0")});
  EXPECT_TRUE(Eventually([] { return Condition()["status"] == "True"; }));
  EXPECT_GT(Metric("railhead_node_status_requests_total"), calls);
  Describe("");
  Say({PfHealth(kPfA, "pf0", {NoCarrier()})});
  EXPECT_TRUE(Eventually([&] { return !HasMetric("railhead_node_healthy_rails"); }));
  EXPECT_EQ(Condition()["status"], "True") << "nobody is asked to tell";
  service.RequestStop();
  EXPECT_TRUE(service.AwaitEnd(kTimeout));
}

}  // namespace
}  // namespace railhead::testing
