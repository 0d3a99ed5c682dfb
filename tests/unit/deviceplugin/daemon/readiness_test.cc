// The answers to probes, and the line for the service manager.
#include "deviceplugin/daemon/readiness.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "deviceplugin/services/kubelet/registrar.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

std::shared_ptr<kubelet::ResourceActivity> Resource(const std::string& name, bool registered) {
  auto resource = std::make_shared<kubelet::ResourceActivity>(name);
  resource->serving = true;
  resource->registered = registered;
  return resource;
}

// The registrar has a thread of its own. Before its first step it knows no resource that could be missing,
// and /readyz said that all are registered.
TEST(ProbesTest, UntilTheRegistrarServesTheNodeIsNotReady) {
  Published<std::optional<Advertisement>> advertisement{std::nullopt};
  Published<bool> reconciled{false};
  Log log{"error"};
  const kubelet::Registrar registrar({.root = Root(),
                                      .kubelet_directory = "/kubelet",
                                      .socket_tag = "t",
                                      .paths = {},
                                      .preconditions = {{reconciled, "not reconciled"}}},
                                     advertisement, &log);
  const auto ready = [&] {
    return daemon::ReadinessOf(registrar.NotServing(), true, registrar.Activities()).ready();
  };
  EXPECT_FALSE(ready());
  advertisement.Set(Advertisement{});
  EXPECT_EQ(registrar.NotServing(), "not reconciled");
  reconciled.Set(true);
  EXPECT_FALSE(ready()) << "advertised, and nothing served";
}

TEST(ProbesTest, HealthzNamesStuckServicesAndWhatTheyAreBusyAt) {
  EXPECT_EQ(daemon::HealthzAnswer({}).status, 200);
  const http::HttpResponse stuck =
      daemon::HealthzAnswer({{"registrar", "registering with kubelet"}, {"binder", "waiting"}});
  EXPECT_EQ(stuck.status, 503);
  const Json json = Json::parse(stuck.body);
  EXPECT_EQ(json["threads"], (Json{"registrar", "binder"})) << stuck.body;
  EXPECT_EQ(json["busyAt"]["registrar"], "registering with kubelet");
}

TEST(ProbesTest, ReadyzNamesWhatIsMissingAndWhy) {
  EXPECT_FALSE(daemon::ReadinessOf("the node has not been read yet", true, {}).ready())
      << "serving has not begun";
  EXPECT_TRUE(daemon::ReadinessOf("", true, {}).ready()) << "a node without NICs has nothing to register";

  const auto good = Resource("a/good", true);
  const auto bad = Resource("a/bad", false);
  bad->set_problem("kubelet said \"no\" \xFF");
  http::HttpResponse answer = ReadyzAnswer(daemon::ReadinessOf("", true, {good, bad}));
  EXPECT_EQ(answer.status, 503);
  const Json json = Json::parse(answer.body);
  EXPECT_EQ(json["registered"], 1);
  ASSERT_EQ(json["missing"].size(), 1U);
  EXPECT_EQ(json["missing"][0]["resource"], "a/bad");
  EXPECT_EQ(json["missing"][0]["because"].get<std::string>().rfind("kubelet said \"no\"", 0), 0U);

  bad->standby = true;
  answer = ReadyzAnswer(daemon::ReadinessOf("", true, {good, bad}));
  EXPECT_EQ(answer.status, 200) << "a newer process has it";
  EXPECT_EQ(Json::parse(answer.body)["standby"], 1);
}

TEST(ProbesTest, ReadyzWarnsWithoutUevents) {
  EXPECT_FALSE(Json::parse(ReadyzAnswer(daemon::ReadinessOf("", true, {})).body).contains("warnings"));
  const http::HttpResponse answer = ReadyzAnswer(daemon::ReadinessOf("", false, {}));
  EXPECT_EQ(answer.status, 200);
  ASSERT_EQ(Json::parse(answer.body)["warnings"].size(), 1U) << answer.body;
  EXPECT_NE(answer.body.find("the kernel sends no device events"), std::string::npos) << answer.body;
}

TEST(ProbesTest, TheStatusIsOneLineForPeople) {
  const auto one = Resource("a/one", true);
  const auto two = Resource("a/two", false);
  EXPECT_EQ(StatusLine(daemon::ReadinessOf("", true, {one})), "1 of 1 resources are registered with kubelet");
  two->set_problem("it slept");
  EXPECT_EQ(StatusLine(daemon::ReadinessOf("", true, {one, two})),
            "Not registered with kubelet: a/two: it slept");
  two->standby = true;
  EXPECT_EQ(StatusLine(daemon::ReadinessOf("", true, {two})),
            "Standby: a newer railheadd serves the resources");
}

}  // namespace
}  // namespace railhead::testing
