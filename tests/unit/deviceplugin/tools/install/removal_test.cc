// The pods with NICs: what of the API's lists counts, page by page, and `railctl install check-removal` as a
// process.
#include "deviceplugin/tools/install/removal.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "deviceplugin/support/http/http_message.h"
#include "deviceplugin/support/kubernetes/kube_access.h"
#include "tests/support/kubernetes/kube_server.h"
#include "tests/support/kubernetes/scripted_server.h"
#include "tests/support/kubernetes/server_process.h"
#include "tests/support/process.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;
using Step = ScriptedServer::Step;

constexpr std::chrono::milliseconds kLong{60000};
constexpr std::chrono::milliseconds kShort{100};
constexpr const char* kRoce = "railhead.io/roce";

// Of one container beside another one without limits.
Json Pod(const std::string& name, const Json& limits) {
  return {{"metadata", {{"namespace", "team"}, {"name", name}}},
          {"spec",
           {{"nodeName", "gpu-001"},
            {"containers", {{{"name", "a"}}, {{"name", "b"}, {"resources", {{"limits", limits}}}}}}}},
          {"status", {{"phase", "Running"}}}};
}

std::string Page(const std::vector<Json>& pods, const std::string& next = "") {
  Json page = {{"kind", "PodList"}, {"apiVersion", "v1"}, {"metadata", {{"resourceVersion", "7"}}}};
  page["items"] = pods;
  if (!next.empty()) page["metadata"]["continue"] = next;
  return page.dump();
}

Step Answer(int status, const std::string& body) {
  return {ScriptedServer::Answer(status, body)};
}

std::string Refusal(int status, const std::string& reason) {
  return Json{{"kind", "Status"}, {"code", status}, {"reason", reason}, {"message", "said: " + reason}}
      .dump();
}

KubeAccess AccessTo(const std::string& url) {
  (void)std::signal(SIGPIPE, SIG_IGN);
  KubeAccess access;
  access.endpoint = *http::ParseHttpEndpoint(url);
  access.token = "token";
  return access;
}

Result<install::RemovalReport> Check(const ScriptedServer& server,
                                     const std::vector<std::string>& resources = {},
                                     std::chrono::milliseconds timeout = kLong) {
  KubeApi api = install::PodsApi(AccessTo(server.url()), timeout);
  return install::CheckRemoval(api, resources);
}

// NAME:RESOURCES of those that are found in one page.
std::vector<std::string> Found(const std::vector<Json>& pods,
                               const std::vector<std::string>& resources = {}) {
  const ScriptedServer server({Answer(200, Page(pods))});
  const auto report = Check(server, resources);
  EXPECT_TRUE(report) << Describe(report.error());
  std::vector<std::string> found;
  if (!report) return found;
  for (const install::PodWithNics& pod : report->pods) {
    found.push_back(pod.name + ":");
    for (const std::string& resource : pod.resources) found.back() += resource + ";";
  }
  return found;
}

void ExpectError(const Result<install::RemovalReport>& report, ErrorCode code, const std::string& word) {
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, code) << Describe(report.error());
  EXPECT_NE(Describe(report.error()).find(word), std::string::npos) << Describe(report.error());
}

TEST(RemovalTest, APodWithNics) {
  const ScriptedServer server({Answer(200, Page({Pod("train-0", {{kRoce, "8"}, {"cpu", "1"}})}))});
  const auto report = Check(server);
  ASSERT_TRUE(report) << Describe(report.error());
  EXPECT_FALSE(report->Ok());
  EXPECT_EQ(report->pods, (std::vector<install::PodWithNics>{{"team", "train-0", "gpu-001", {kRoce}}}));
  EXPECT_EQ(install::RemovalAsText(*report),
            "Pods have NICs of Railhead. Delete them first, then run helm uninstall again.\n"
            "team/train-0 on gpu-001: railhead.io/roce\n");
  EXPECT_TRUE(server.last().starts_with("GET /api/v1/pods?limit=500 HTTP/1.1\r\n")) << server.last();
  EXPECT_NE(server.last().find("Authorization: Bearer token\r\n"), std::string::npos) << server.last();
}

TEST(RemovalTest, PodsWithoutNics) {
  EXPECT_EQ(Found({}), std::vector<std::string>{});
  Json bare = {{"metadata", {{"namespace", "a"}, {"name", "bare"}}},
               {"spec", {{"nodeName", "n"}, {"containers", {{{"name", "a"}}}}}}};
  EXPECT_EQ(Found({bare, Pod("other", {{"nvidia.com/gpu", "8"}, {"railhead.iox/roce", "1"}}),
                   Pod("zero", {{kRoce, "0"}})}),
            std::vector<std::string>{});
  EXPECT_EQ(install::RemovalAsText({}), "No pod has NICs of Railhead.\n");
}

TEST(RemovalTest, FinishedPodsAndPodsWithoutNodeDoNotCount) {
  std::vector<Json> pods;
  for (const char* phase : {"Succeeded", "Failed", "Pending", "Unknown"}) {
    pods.push_back(Pod(phase, {{kRoce, "1"}}));
    pods.back()["status"]["phase"] = phase;
  }
  pods.push_back(Pod("waiting", {{kRoce, "1"}}));
  pods.back()["spec"].erase("nodeName");
  pods.push_back(Pod("deleted", {{kRoce, "1"}}));
  pods.back()["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z";
  EXPECT_EQ(Found(pods), (std::vector<std::string>{"Pending:railhead.io/roce;", "Unknown:railhead.io/roce;",
                                                   "deleted:railhead.io/roce;"}));
}

TEST(RemovalTest, InitContainersCount) {
  Json pod = Pod("init", {{"cpu", "1"}});
  pod["spec"]["initContainers"] =
      Json::array({{{"name", "check"}, {"resources", {{"limits", {{"railhead.io/rail1", "2k"}}}}}}});
  EXPECT_EQ(Found({pod}), std::vector<std::string>{"init:railhead.io/rail1;"});
  pod["spec"]["containers"][1]["resources"]["limits"] = {{kRoce, "1"}, {"railhead.io/rail1", "1"}};
  EXPECT_EQ(Found({pod}), std::vector<std::string>{"init:railhead.io/rail1;railhead.io/roce;"}) << "once";
}

TEST(RemovalTest, OtherResourcesCountWhenTheyAreNamed) {
  const std::vector<Json> pods = {Pod("a", {{"example.com/nic", "1"}}), Pod("b", {{"example.com/nics", "1"}}),
                                  Pod("c", {{kRoce, "1"}}), Pod("d", {{"example.com/nic", "0"}})};
  EXPECT_EQ(Found(pods), std::vector<std::string>{"c:railhead.io/roce;"});
  EXPECT_EQ(Found(pods, {"example.com/other", "example.com/nic"}),
            (std::vector<std::string>{"a:example.com/nic;", "c:railhead.io/roce;"}));
}

TEST(RemovalTest, AllPagesAreRead) {
  const ScriptedServer server({Answer(200, Page({Pod("a", {{kRoce, "1"}})}, "one")),
                               Answer(200, Page({Pod("b", {{"cpu", "1"}})}, "t+w/o=")),
                               Answer(200, Page({Pod("c", {{kRoce, "1"}})}))});
  const auto report = Check(server);
  ASSERT_TRUE(report) << Describe(report.error());
  ASSERT_EQ(report->pods.size(), 2U);
  EXPECT_EQ(report->pods[0].name + report->pods[1].name, "ac");
  EXPECT_EQ(server.requests(), 3);
  EXPECT_TRUE(server.last().starts_with("GET /api/v1/pods?limit=500&continue=t%2Bw%2Fo%3D HTTP/1.1\r\n"))
      << server.last();
}

// etcd has compacted the version that the first page is of.
TEST(RemovalTest, AnExpiredListBeginsAgain) {
  const Step first = Answer(200, Page({Pod("a", {{kRoce, "1"}})}, "one"));
  const Step expired = Answer(410, Refusal(410, "Expired"));
  const ScriptedServer server({first, expired, first, Answer(200, Page({Pod("b", {{kRoce, "1"}})}))});
  const auto report = Check(server);
  ASSERT_TRUE(report) << Describe(report.error());
  EXPECT_EQ(report->pods.size(), 2U) << "no pod is there twice";
  const ScriptedServer never({first, expired, first, expired, first, expired});
  ExpectError(Check(never), ErrorCode::kUnavailable, "expired before its last page, 3 times");
}

// 500 pods with their managedFields have more than the other answers may have.
TEST(RemovalTest, APageMayBeLarge) {
  Json pod = Pod("large", {{kRoce, "1"}});
  pod["metadata"]["managedFields"] = std::string(std::size_t{6} << 20, 'x');
  EXPECT_EQ(Found({pod}), std::vector<std::string>{"large:railhead.io/roce;"});
}

// Then fewer pods are asked for, from the same place on.
TEST(RemovalTest, APageMayBeTooLarge) {
  const std::string large(std::size_t{33} << 20U, ' ');
  std::string chunked = "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n2100000\r\n" + large;
  const ScriptedServer server({Answer(200, Page({Pod("a", {{kRoce, "1"}})}, "one")),
                               Answer(200, large),
                               {std::move(chunked)},
                               Answer(200, Page({Pod("b", {{kRoce, "1"}})}, "two")),
                               Answer(200, Page({Pod("c", {{kRoce, "1"}})}))});
  const auto report = Check(server);
  ASSERT_TRUE(report) << Describe(report.error());
  std::string names;
  for (const install::PodWithNics& pod : report->pods) names += pod.name;
  EXPECT_EQ(names, "abc");
  EXPECT_TRUE(server.last().starts_with("GET /api/v1/pods?limit=7&continue=two HTTP/1.1\r\n"))
      << server.last();
  const ScriptedServer never(std::vector<Step>(4, Answer(200, large)));
  ExpectError(Check(never), ErrorCode::kMalformed, "larger than 33554432 bytes");
  EXPECT_TRUE(never.last().starts_with("GET /api/v1/pods?limit=1 HTTP/1.1\r\n")) << never.last();
}

TEST(RemovalTest, RefusalsAndWrongAnswersAreNoEmptyList) {
  const ScriptedServer forbidden({Answer(403, Refusal(403, "Forbidden"))});
  ExpectError(Check(forbidden), ErrorCode::kPermission, "role railhead-removal-check");
  const ScriptedServer unknown({Answer(401, Refusal(401, "Unauthorized"))});
  ExpectError(Check(unknown), ErrorCode::kPermission, "listing the pods of all namespaces");
  const ScriptedServer broken({Answer(500, "oops")});
  ExpectError(Check(broken), ErrorCode::kUnavailable, "oops");
  const ScriptedServer missing({Answer(404, "404 page not found\n")});
  ExpectError(Check(missing), ErrorCode::kInvalid, "404 page not found");
  for (const char* body :
       {"", "{}", "[]", "<html>", R"({"kind":"Status"})", R"({"kind":"PodList","items":7})",
        R"({"kind":"PodList","items":[{"metadata":{"name":"a"},"spec":{"nodeName":7}}]})"}) {
    const ScriptedServer wrong({Answer(200, body)});
    const auto report = Check(wrong);
    ASSERT_FALSE(report) << body;
    EXPECT_EQ(report.error().code, ErrorCode::kMalformed) << body << ": " << Describe(report.error());
  }
  const ScriptedServer second({Answer(200, Page({}, "one")), Answer(403, Refusal(403, "Forbidden"))});
  ExpectError(Check(second), ErrorCode::kPermission, "said: Forbidden");
}

TEST(RemovalTest, NoAnswer) {
  const ScriptedServer silent({{"", false, false, true}});
  ExpectError(Check(silent, {}, kShort), ErrorCode::kTimeout, "listing the pods of all namespaces");
  const ReservedPort closed;
  KubeApi api = install::PodsApi(AccessTo("http://127.0.0.1:" + std::to_string(closed.number())), kLong);
  ExpectError(install::CheckRemoval(api, {}), ErrorCode::kUnavailable, "listing the pods of all namespaces");
}

// In a pod: by the service account's files, and with TLS.
class RemovalCommandTest : public ::testing::Test {
 protected:
  RemovalCommandTest() {
    const KubeAccess access = server_.Access();
    const std::string account = "/var/run/secrets/kubernetes.io/serviceaccount/";
    temp_.Write(account + "ca.crt", ReadFileAt(access.tls.authorities.file));
    temp_.Write(account + "token", ReadFileAt(access.token_file));
    environment_ = {{"RAILHEAD_ROOT", temp_.directory()},
                    {"KUBERNETES_SERVICE_HOST", "127.0.0.1"},
                    {"KUBERNETES_SERVICE_PORT", access.endpoint.port}};
  }
  // The next request is answered so.
  void Script(int status, const std::string& body) {
    server_.Admin("POST", "/standin/answer", Json{{"status", status}, {"body", body}}.dump());
  }
  [[nodiscard]] ProcessOutput Run(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {RAILCTL, "install", "check-removal"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProcess(arguments, environment_, "");
  }

  TempRoot temp_;
  KubeServer server_{KubeServer::Kind::kStandIn};
  std::map<std::string, std::string> environment_;
};

TEST_F(RemovalCommandTest, PodsWithNicsAreNamed) {
  const std::string page = Page({Pod("train-0", {{kRoce, "8"}}), Pod("train-1", {{"example.com/nic", "1"}})});
  Script(200, page);
  const ProcessOutput one = Run();
  EXPECT_EQ(one.status, 1) << one.err;
  EXPECT_EQ(one.out,
            "Pods have NICs of Railhead. Delete them first, then run helm uninstall again.\n"
            "team/train-0 on gpu-001: railhead.io/roce\n");
  Script(200, page);
  const ProcessOutput both = Run({"--resource", "example.com/nic", "-o", "json"});
  EXPECT_EQ(both.status, 1) << both.err;
  const Json report = Json::parse(both.out, nullptr, false);
  EXPECT_EQ(report["ok"], false) << both.out;
  ASSERT_EQ(report["pods"].size(), 2U) << both.out;
  EXPECT_EQ(report["pods"][1], (Json{{"namespace", "team"},
                                     {"name", "train-1"},
                                     {"node", "gpu-001"},
                                     {"resources", {"example.com/nic"}}}));
}

// Of a fabric that no chart knows, as the ConfigMap's volume has it.
TEST_F(RemovalCommandTest, PodsWithResourcesOfTheFabricAreNamed) {
  const std::string page =
      Page({Pod("train-0", {{"example.com/nic", "1"}}), Pod("other", {{"example.com/x", "1"}})});
  temp_.Write("/config/fabric.json",
              R"({"version": 1, "rails": [{"name": "rail0", "pf": 0, "vlan": 100}],
                  "pools": [{"resource": "example.com/nic"}, {"resource": "railhead.io/roce"}]})");
  Script(200, page);
  // As kubelet makes it.
  std::filesystem::permissions(temp_.directory() + "/config", std::filesystem::perms::all);
  const ProcessOutput found = Run({"--fabric", "/config/fabric.json"});
  EXPECT_EQ(found.status, 1) << found.err;
  EXPECT_EQ(found.out,
            "Pods have NICs of Railhead. Delete them first, then run helm uninstall again.\n"
            "team/train-0 on gpu-001: example.com/nic\n");
  Script(200, page);
  const ProcessOutput none = Run({"--fabric", "/config/none.json"});
  EXPECT_EQ(none.status, 0) << none.err << none.out;
  temp_.Write("/config/fabric.json", R"({"version": 1, "rails": 7})");
  const ProcessOutput wrong = Run({"--fabric", "/config/fabric.json"});
  EXPECT_EQ(wrong.status, 1) << "which resources count is not known";
  EXPECT_NE(wrong.err.find("/config/fabric.json"), std::string::npos) << wrong.err;
}

TEST_F(RemovalCommandTest, NoPods) {
  Script(200, Page({}));
  const ProcessOutput text = Run();
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_EQ(text.out, "No pod has NICs of Railhead.\n");
  Script(200, Page({}));
  const ProcessOutput yaml = Run({"-o", "yaml"});
  EXPECT_EQ(yaml.status, 0) << yaml.err;
  EXPECT_EQ(yaml.out, "ok: true\npods: []\n");
}

TEST_F(RemovalCommandTest, WhatCannotBeReadIsAFailure) {
  Script(403, Refusal(403, "Forbidden"));
  const ProcessOutput forbidden = Run();
  EXPECT_EQ(forbidden.status, 1);
  EXPECT_NE(forbidden.err.find("role railhead-removal-check"), std::string::npos) << forbidden.err;
  const ReservedPort closed;
  environment_["KUBERNETES_SERVICE_PORT"] = std::to_string(closed.number());
  EXPECT_EQ(Run().status, 1) << "nobody listens";
  environment_.erase("KUBERNETES_SERVICE_HOST");
  const ProcessOutput outside = Run({"-o", "json"});
  EXPECT_EQ(outside.status, 1);
  EXPECT_EQ(Json::parse(outside.out, nullptr, false)["ok"], false) << outside.out;
  EXPECT_NE(outside.err.find("run it in a pod"), std::string::npos) << outside.err;
}

}  // namespace
}  // namespace railhead::testing
