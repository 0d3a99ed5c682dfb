// Liveness and readiness from the threads' heartbeats, and late heartbeats.
#include "deviceplugin/daemon/pages.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

namespace railhead::testing {
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;

std::shared_ptr<kubelet::ResourceActivity> Resource(const std::string& name, bool registered) {
  auto resource = std::make_shared<kubelet::ResourceActivity>(name);
  resource->serving = true;
  resource->registered = registered;
  return resource;
}

TEST(HeartbeatTest, IsLateAfterItsTimeLimit) {
  Heartbeat beat;
  EXPECT_FALSE(beat.IsLate()) << "nobody has begun";
  beat.Within(60s);
  EXPECT_FALSE(beat.IsLate());
  EXPECT_TRUE(beat.IsLate(Heartbeat::Clock::now() + 61s));
  beat.Within(-1s);
  EXPECT_TRUE(beat.IsLate());
  beat.SetIdle();
  EXPECT_FALSE(beat.IsLate(Heartbeat::Clock::now() + std::chrono::hours(24 * 365)));
}

// Whatever comes and goes beside it, from any thread.
TEST(HeartbeatTest, ARequestThatHangsIsSeenAmongOthers) {
  SharedHeartbeat beat;
  EXPECT_FALSE(beat.IsLate(Heartbeat::Clock::now() + std::chrono::hours(24 * 365)));
  const auto others = [&beat] {
    for (int i = 0; i < 1000; ++i) SharedHeartbeat::Request(beat, 60s);
  };
  {
    const SharedHeartbeat::Request hangs(beat, -1s);
    std::thread beside(others);
    for (int i = 0; i < 1000; ++i) EXPECT_TRUE(beat.IsLate());
    others();
    beside.join();
    EXPECT_TRUE(beat.IsLate());
  }
  EXPECT_FALSE(beat.IsLate(Heartbeat::Clock::now() + std::chrono::hours(24 * 365))) << "all have ended";
}

TEST(ProbesTest, HealthzNamesStuckThreads) {
  Heartbeats beats;
  EXPECT_EQ(daemon::HealthzAnswer(beats).status, 200);
  beats.registrar.Within(-1s);
  std::optional<SharedHeartbeat::Request> binding;
  binding.emplace(beats.binder, -1s);
  const http::HttpResponse stuck = daemon::HealthzAnswer(beats);
  EXPECT_EQ(stuck.status, 503);
  EXPECT_EQ(Json::parse(stuck.body)["threads"], (Json{"registrar", "binder"})) << stuck.body;
  beats.registrar.Within(60s);
  binding.reset();
  beats.node_watcher.Within(-1s);
  EXPECT_EQ(Json::parse(daemon::HealthzAnswer(beats).body)["threads"], Json::array({"node_watcher"}));
  beats.node_watcher.SetIdle();
  beats.reconciler.Within(-1s);
  EXPECT_EQ(Json::parse(daemon::HealthzAnswer(beats).body)["threads"], Json::array({"reconciler"}));
}

TEST(ProbesTest, ReadyzNamesWhatIsMissingAndWhy) {
  daemon::Activity activity;
  EXPECT_FALSE(ReadinessOf(activity, {}).ready()) << "serving has not begun";
  activity.serving = true;
  EXPECT_TRUE(ReadinessOf(activity, {}).ready()) << "a node without NICs has nothing to register";

  const auto good = Resource("a/good", true);
  const auto bad = Resource("a/bad", false);
  bad->set_problem("kubelet said \"no\" \xFF");
  http::HttpResponse answer = ReadyzAnswer(ReadinessOf(activity, {good, bad}));
  EXPECT_EQ(answer.status, 503);
  const Json json = Json::parse(answer.body);
  EXPECT_EQ(json["registered"], 1);
  ASSERT_EQ(json["missing"].size(), 1U);
  EXPECT_EQ(json["missing"][0]["resource"], "a/bad");
  EXPECT_EQ(json["missing"][0]["because"].get<std::string>().rfind("kubelet said \"no\"", 0), 0U);

  bad->standby = true;
  answer = ReadyzAnswer(ReadinessOf(activity, {good, bad}));
  EXPECT_EQ(answer.status, 200) << "a newer process has it";
  EXPECT_EQ(Json::parse(answer.body)["standby"], 1);
}

TEST(ProbesTest, ReadyzWarnsWithoutUevents) {
  daemon::Activity activity;
  activity.serving = true;
  EXPECT_FALSE(Json::parse(ReadyzAnswer(ReadinessOf(activity, {})).body).contains("warnings"));
  activity.node.uevents_connected = false;
  const http::HttpResponse answer = ReadyzAnswer(ReadinessOf(activity, {}));
  EXPECT_EQ(answer.status, 200);
  ASSERT_EQ(Json::parse(answer.body)["warnings"].size(), 1U) << answer.body;
  EXPECT_NE(answer.body.find("the kernel sends no device events"), std::string::npos) << answer.body;
}

TEST(ProbesTest, OnlyAProcessWithoutAnyResourceIsStandby) {
  const auto one = Resource("a/one", true);
  const auto two = Resource("a/two", false);
  EXPECT_FALSE(daemon::IsStandby({}));
  two->standby = true;
  EXPECT_FALSE(daemon::IsStandby({one, two}));
  EXPECT_TRUE(daemon::IsStandby({two}));
}

TEST(ProbesTest, TheStatusIsOneLineForPeople) {
  daemon::Activity activity;
  activity.serving = true;
  const auto one = Resource("a/one", true);
  const auto two = Resource("a/two", false);
  EXPECT_EQ(StatusLine(ReadinessOf(activity, {one})), "1 of 1 resources are registered with kubelet");
  two->set_problem("it slept");
  EXPECT_EQ(StatusLine(ReadinessOf(activity, {one, two})), "Not registered with kubelet: a/two: it slept");
  two->standby = true;
  EXPECT_EQ(StatusLine(ReadinessOf(activity, {two})), "Standby: a newer railheadd serves the resources");
}

TEST(ActivityTest, CountsByKind) {
  daemon::Activity activity;
  reconcile::ReconcileReport report;
  report.attachments = 3;
  report.actions.push_back({"address", "10.0.0.1", "no pod", std::nullopt});
  report.actions.push_back({"address", "10.0.0.2", "no pod", std::nullopt});
  report.actions.push_back({"attachment", "x", "no pod", Error{}});
  activity.Reconciled(report);
  activity.Reconciled({});
  const auto actions = activity.reconcile_actions();
  EXPECT_EQ(actions.at({"address", false}), 2U);
  EXPECT_EQ(actions.at({"attachment", true}), 1U);
  EXPECT_EQ(activity.passes.value(), 2U);
  EXPECT_EQ(activity.attachments, 0U) << "as of the latest pass";

  activity.Bound(Bindings{}, 20us);
  activity.Bound(Fail(ErrorCode::kBusy, "none is free"), 5ms);
  activity.Bound(Fail(ErrorCode::kLimited, "odd"), 5ms);
  EXPECT_EQ(activity.bound.value(), 1U);
  EXPECT_EQ(activity.not_bound.at(static_cast<std::size_t>(ErrorCode::kBusy)).value(), 1U);
  EXPECT_EQ(activity.not_bound.back().value(), 1U) << "the last code has its place";
  EXPECT_EQ(activity.bind_duration.sum_ns(), 10'020'000U);
}

}  // namespace
}  // namespace railhead::testing
