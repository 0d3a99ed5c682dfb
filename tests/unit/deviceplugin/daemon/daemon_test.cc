// How railheadd reports on itself, as a process: metrics, probes, the service manager, the log.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "cni/state/attach_log.h"
#include "cni/state/conflict_log.h"
#include "deviceplugin/services/nic_metrics/cached_nic_page.h"
#include "ipam/store/store.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
#include "tests/support/daemon/daemon_process.h"
#include "tests/support/eventually.h"
#include "tests/support/ipam/support.h"
#include "tests/support/kubelet/device_manager.h"
#include "tests/support/metrics/documented_metrics.h"
#include "tests/support/metrics/http_client.h"
#include "tests/support/metrics/metrics_parser.h"
#include "tests/support/metrics/notify_socket.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

class ObservedTest : public KubeletTest {
 protected:
  // With HTTP at a port of its own.
  std::unique_ptr<Process> RunObserved(std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--http-address", "127.0.0.1:0"});
    return RunDaemon(std::move(more));
  }

  // What the daemon says that it listens at.
  static std::string AddressOf(const Process& daemon) {
    std::string address;
    Eventually([&] {
      for (const std::string& line : Split(daemon.err(), '\n')) {
        const Json json = Json::parse(line, nullptr, false);
        if (json.is_object() && json.value("msg", "") == "serving metrics and probes")
          address = json["address"];
      }
      return !address.empty();
    });
    return address;
  }

  static MetricsText Metrics(const std::string& address) {
    const auto answer = Get(address, "/metrics");
    EXPECT_TRUE(answer);
    if (!answer) return {};
    EXPECT_EQ(answer->status, 200);
    EXPECT_NE(answer->head.find("Content-Type: text/plain; version=0.0.4"), std::string::npos);
    MetricsText page = ParseMetrics(answer->body, false);
    EXPECT_EQ(page.errors, std::vector<std::string>()) << answer->body;
    return page;
  }

  // Until the value is there. It is looked at again and again, but not by a clock.
  static bool Becomes(const std::string& address, const std::string& name,
                      const std::map<std::string, std::string>& labels, double value) {
    return Eventually([&] {
      const auto page = Metrics(address);
      const MetricSample* sample = page.Find(name, labels);
      return sample != nullptr && sample->value == value;
    });
  }

  static bool Answers(const std::string& address, const std::string& path, int status) {
    return Eventually([&] {
      const auto answer = Get(address, path);
      return answer && answer->status == status;
    });
  }

  static std::map<std::string, std::string> Devices(const std::string& health, const std::string& use) {
    return {{"resource", kResource}, {"health", health}, {"use", use}};
  }
  static std::map<std::string, std::string> Calls(const std::string& call, const std::string& outcome) {
    return {{"resource", kResource}, {"call", call}, {"outcome", outcome}};
  }
};

TEST_F(ObservedTest, CountsKubeletsRequestsAndAnswers) {
  DeviceManager kubelet(directory_);
  ASSERT_TRUE(kubelet.Start());
  const auto daemon = RunObserved();
  ASSERT_TRUE(kubelet.Devices(kResource, 8, Soon())) << daemon->err();
  ASSERT_TRUE(kubelet.Allocate(kResource, 2));
  EXPECT_FALSE(kubelet.PreStart(kResource, {vfs0_[0]}));
  const std::string address = AddressOf(*daemon);
  // kubelet takes the first list before it answers the registration, and before its stream is counted.
  ASSERT_TRUE(Becomes(address, "railhead_registered", {{"resource", kResource}}, 1));
  ASSERT_TRUE(Becomes(address, "railhead_listandwatch_streams", {{"resource", kResource}}, 1));

  auto page = Metrics(address);
  EXPECT_EQ(page.Value("railhead_build_info", {{"version", RAILHEAD_VERSION}}), 1);
  EXPECT_EQ(page.Value("railhead_devices", Devices("healthy", "free")), 8);
  EXPECT_EQ(page.Value("railhead_devices", Devices("unhealthy", "free")), 0);
  EXPECT_EQ(page.Value("railhead_kubelet_calls_total", Calls("Allocate", "answered")), 1);
  EXPECT_EQ(page.Value("railhead_kubelet_calls_total", Calls("Allocate", "refused")), 0);
  EXPECT_EQ(page.Value("railhead_kubelet_calls_total", Calls("GetPreferredAllocation", "answered")), 1);
  EXPECT_EQ(page.Value("railhead_kubelet_calls_total", Calls("PreStartContainer", "refused")), 1);
  const std::map<std::string, std::string> allocate = {{"resource", kResource}, {"call", "Allocate"}};
  EXPECT_EQ(page.Value("railhead_kubelet_call_duration_seconds_count", allocate), 1);
  EXPECT_GT(page.Value("railhead_kubelet_call_duration_seconds_sum", allocate), 0);
  EXPECT_EQ(page.Value("railhead_registrations_total", {{"resource", kResource}}), 1);
  EXPECT_EQ(page.Value("railhead_listandwatch_updates_total", {{"resource", kResource}}), 1);
  EXPECT_EQ(page.Value("railhead_standby", {{"resource", kResource}}), 0);
  EXPECT_GE(page.Value("railhead_reconcile_passes_total"), 1);
  for (const char* part : {"node_watcher", "registrar", "reconciler", "binder"})
    EXPECT_EQ(page.Value("railhead_thread_alive", {{"thread", part}}), 1) << part;
  EXPECT_EQ(page.errors, std::vector<std::string>());

  // A NIC that a pod has, as its journal entry tells.
  ASSERT_TRUE(MakeDirectories(root_.Path("/run/railhead/locks")));
  const std::string lock = root_.Path("/run/railhead/locks/" + vfs0_[1] + ".lock");
  ASSERT_TRUE(WriteAtomic(lock, "c1/rails@net1.json\n", Sync::kVolatile));
  EXPECT_TRUE(Becomes(address, "railhead_devices", Devices("healthy", "in_use"), 1));
  EXPECT_TRUE(Becomes(address, "railhead_devices", Devices("healthy", "free"), 7));
}

TEST_F(ObservedTest, TellsOfNicsOnAPageOfTheirOwn) {
  const auto daemon = RunObserved();
  const std::string address = AddressOf(*daemon);
  const std::map<std::string, std::string> port = {
      {"device", kPf1}, {"pf", "pf1"}, {"rail", "rail1"}, {"numa_node", "1"}};
  MetricsText page;
  // Health is known after its first check.
  EXPECT_TRUE(Eventually([&] {
    const auto answer = Get(address, "/metrics/nics");
    if (!answer || answer->status != 200) return false;
    page = ParseMetrics(answer->body, false);
    const MetricSample* healthy = page.Find("railhead_nic_healthy", port);
    return healthy != nullptr && healthy->value == 1;
  }));
  auto info = port;
  info.insert({{"driver", "mlx5_core"}, {"rdma_device", "mlx5_1"}});
  EXPECT_EQ(page.Value("railhead_nic_info", info), 1);
  EXPECT_EQ(page.errors, std::vector<std::string>());
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
}

// Anybody on the node can ask. Each collection takes another time, which its page tells.
TEST_F(ObservedTest, ManyRequestsForThePageOfNicsDoNotCollectEachTime) {
  const auto daemon = RunObserved();
  const std::string address = AddressOf(*daemon);
  ASSERT_TRUE(Answers(address, "/metrics/nics", 200));
  std::set<double> collections;
  const auto begin = std::chrono::steady_clock::now();
  for (int request = 0; request < 300; ++request) {
    const bool open = request % 2 != 0;
    const auto answer =
        Get(address, "/metrics/nics", open ? "Accept: application/openmetrics-text;version=1.0.0\r\n" : "");
    ASSERT_TRUE(answer);
    collections.insert(ParseMetrics(answer->body, open).Value("railhead_nic_collect_seconds"));
  }
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_LE(collections.size(), static_cast<std::size_t>(took / nic_metrics::CachedNicPage::kMaxAge) + 2);
}

TEST_F(ObservedTest, CountsAttachesOutOfTheirLog) {
  const auto daemon = RunObserved();
  const std::string address = AddressOf(*daemon);
  ASSERT_TRUE(Becomes(address, "railhead_cni_adds_total", {{"outcome", "attached"}}, 0));
  ASSERT_TRUE(MakeDirectories(root_.Path("/run/railhead")));
  LogAttachTiming(root_, {{"rails", "c1", "net1"}, 1, "", {{"move", std::chrono::microseconds(2500)}}});
  LogAttachTiming(root_, {{"rails", "c2", "net1"}, 1, "no", {{"move", std::chrono::microseconds(9)}}});
  auto page = Metrics(address);
  EXPECT_EQ(page.Value("railhead_cni_adds_total", {{"outcome", "attached"}}), 1);
  EXPECT_EQ(page.Value("railhead_cni_adds_total", {{"outcome", "failed"}}), 1);
  EXPECT_EQ(page.Value("railhead_cni_add_phase_seconds_total", {{"phase", "move"}}), 0.0025);
  EXPECT_EQ(page.Value("railhead_cni_add_duration_seconds_count"), 1);
  EXPECT_EQ(Metrics(address).Value("railhead_cni_adds_total", {{"outcome", "attached"}}), 1) << "once";
}

TEST_F(ObservedTest, CountsLooksAndWhetherTheConfigurationIsGood) {
  const auto daemon = RunObserved();
  const std::string address = AddressOf(*daemon);
  ASSERT_TRUE(Becomes(address, "railhead_config_ok", {}, 1));
  EXPECT_TRUE(Eventually(
      [&] { return Metrics(address).Value("railhead_config_last_good_timestamp_seconds") > 1e9; }));
  const std::string good = ReadFile(root_.Path("/etc/railhead/fabric.json")).value().value();
  sysfs_.Write("/etc/railhead/fabric.json", "{");
  EXPECT_TRUE(Becomes(address, "railhead_config_ok", {}, 0));
  EXPECT_TRUE(Eventually([&] { return Metrics(address).Value("railhead_discovery_failures_total") >= 1; }));
  EXPECT_GE(Metrics(address).Value("railhead_discovery_triggers_total", {{"source", "files"}}), 1);
  EXPECT_EQ(Metrics(address).Value("railhead_devices", Devices("healthy", "free")), 8)
      << "the last valid configuration stays in use";
  sysfs_.Write("/etc/railhead/fabric.json", good);
  EXPECT_TRUE(Becomes(address, "railhead_config_ok", {}, 1));
  daemon->Signal(SIGHUP);
  EXPECT_TRUE(Becomes(address, "railhead_discovery_triggers_total", {{"source", "signal"}}, 1));
}

TEST_F(ObservedTest, TellsUnhealthyDevicesByRule) {
  sysfs_.Write(
      "/etc/railhead/fabric.json",
      TwoRailFabric(R"(, "health": {"intervalSeconds": 1, "link": {"downAfter": 0, "upAfter": 0}})"));
  const auto daemon = RunObserved();
  const std::string address = AddressOf(*daemon);
  ASSERT_TRUE(Becomes(address, "railhead_devices", Devices("healthy", "free"), 8));
  const auto before = Metrics(address);
  // A VF that is gone from its driver. (The fake tree's links are what they are.)
  const auto rule = [](const char* name) { return std::map<std::string, std::string>{{"rule", name}}; };
  EXPECT_NE(before.Find("railhead_unhealthy_devices", rule("rdmaPort")), nullptr);
  sysfs_.Write("/sys/class/net/pf0/carrier", "0\n");
  EXPECT_TRUE(Becomes(address, "railhead_devices", Devices("unhealthy", "free"), 4));
  EXPECT_TRUE(
      Eventually([&] { return Metrics(address).Value("railhead_unhealthy_devices", rule("link")) >= 4; }));
  EXPECT_GE(Metrics(address).Value("railhead_health_changes_total", {{"rule", "link"}, {"to", "unhealthy"}}),
            4);
  sysfs_.Write("/sys/class/net/pf0/carrier", "1\n");
  EXPECT_TRUE(Becomes(address, "railhead_devices", Devices("unhealthy", "free"), 0));
  EXPECT_GE(Metrics(address).Value("railhead_health_changes_total", {{"rule", "link"}, {"to", "healthy"}}),
            4);
}

TEST_F(ObservedTest, TellsOfAddresses) {
  const auto daemon = RunObserved({"--reconcile-interval", "1"});
  const std::string address = AddressOf(*daemon);
  // It logs what has come since its first look.
  ASSERT_TRUE(Eventually([&] { return Metrics(address).Value("railhead_reconcile_passes_total", {}) >= 1; }));
  const std::string subnet = "10.1.0.0/30";
  const ipam::AddressPool pool{subnet, *ipam::RangeSet::Make({*IpPrefix::Parse(subnet), {}, {}, {}}),
                               std::chrono::hours(1)};
  {
    auto store = ipam::AddressStore::Open(root_);
    ASSERT_TRUE(store->Allocate({"blue", "a", "eth1"}, pool));
    ASSERT_TRUE(store->Allocate({"blue", "b", "eth1"}, pool));
    ASSERT_FALSE(store->Allocate({"blue", "c", "eth1"}, pool));
    ASSERT_TRUE(store->Release({"blue", "b", "eth1"}));
  }
  EXPECT_TRUE(Becomes(address, "railhead_ipam_addresses", {{"pool", subnet}, {"state", "held"}}, 1));
  EXPECT_TRUE(Becomes(address, "railhead_ipam_addresses", {{"pool", subnet}, {"state", "cooling_down"}}, 1));
  auto page = Metrics(address);
  EXPECT_EQ(page.Value("railhead_ipam_allocations_total", {{"pool", subnet}}), 2);
  EXPECT_EQ(page.Value("railhead_ipam_releases_total", {{"pool", subnet}}), 1);
  EXPECT_EQ(page.Value("railhead_ipam_exhaustions_total", {{"pool", subnet}}), 1);
  EXPECT_TRUE(Logs(*daemon, "no address was free of " + subnet + ", 1 times"));
}

TEST_F(ObservedTest, ReportsAHostThatAnswersForManyAddresses) {
  const auto daemon = RunObserved({"--reconcile-interval", "1"});
  const std::string address = AddressOf(*daemon);
  ASSERT_TRUE(Eventually([&] { return Metrics(address).Value("railhead_reconcile_passes_total", {}) >= 1; }));
  ConflictRecord record{{"rails", "c2", "net1"}, vfs0_[0], *IpAddress::Parse("10.0.0.9"), {}, {}, {}, true};
  record.source = *MacAddress::Parse("02:00:00:00:00:07");
  record.boottime = BoottimeNow();
  ASSERT_TRUE(MakeDirectories(root_.Path("/run/railhead")));
  for (int i = 0; i < 3; ++i) LogConflict(root_, record);
  EXPECT_TRUE(Becomes(address, "railhead_ipam_conflicts_ignored_total", {}, 3));
  EXPECT_TRUE(Logs(*daemon, "02:00:00:00:00:07 (no pod of this node) answers for 1 addresses"));
}

TEST_F(ObservedTest, EveryMetricIsDocumentedAndEveryDocumentedOneIsThere) {
  const auto daemon = RunObserved();
  ExpectDocumented(Metrics(AddressOf(*daemon)), MetricsPageName::kDaemon);
}

TEST_F(ObservedTest, SpeaksOpenMetrics) {
  const auto daemon = RunObserved();
  const auto answer =
      Get(AddressOf(*daemon), "/metrics", "Accept: application/openmetrics-text;version=1.0.0\r\n");
  ASSERT_TRUE(answer);
  EXPECT_NE(answer->head.find("Content-Type: application/openmetrics-text; version=1.0.0"),
            std::string::npos);
  EXPECT_EQ(ParseMetrics(answer->body, true).errors, std::vector<std::string>()) << answer->body;
}

TEST_F(ObservedTest, IsReadyWhileKubeletHasItsResources) {
  const auto daemon = RunObserved();
  const std::string address = AddressOf(*daemon);
  EXPECT_TRUE(Answers(address, "/healthz", 200)) << "alive before kubelet is there";
  const auto waiting = Get(address, "/readyz");
  ASSERT_TRUE(waiting);
  EXPECT_EQ(waiting->status, 503);
  EXPECT_NE(waiting->head.find("Content-Type: application/json"), std::string::npos);
  EXPECT_FALSE(Json::parse(waiting->body)["missing"].empty()) << waiting->body;
  EXPECT_TRUE(Eventually([&] {
    const Json json = Json::parse(Get(address, "/readyz")->body);
    return json["missing"][0].value("resource", "") == kResource;
  }));
  {
    DeviceManager kubelet(directory_);
    ASSERT_TRUE(kubelet.Start());
    EXPECT_TRUE(Answers(address, "/readyz", 200));
    const Json json = Json::parse(Get(address, "/readyz")->body);
    EXPECT_EQ(json["status"], "ready");
    EXPECT_EQ(json["registered"], 1);
    ASSERT_TRUE(kubelet.Devices(kResource, 8, Soon()));
  }
  ASSERT_TRUE(RemoveFile(directory_ + "/kubelet.sock"));
  EXPECT_TRUE(Answers(address, "/readyz", 503)) << "kubelet is gone";
  EXPECT_TRUE(Answers(address, "/healthz", 200)) << "which is not this process's fault";
  DeviceManager again(directory_);
  ASSERT_TRUE(again.Start());
  EXPECT_TRUE(Answers(address, "/readyz", 200));
  EXPECT_EQ(Json::parse(Get(address, "/healthz")->body)["status"], "alive");
  EXPECT_EQ(Get(address, "/")->status, 404);
}

TEST_F(ObservedTest, TheNewerOfTwoAnswersProbesAndTheOlderWhenThatIsGone) {
  DeviceManager kubelet(directory_);
  ASSERT_TRUE(kubelet.Start());
  const auto older = RunObserved();
  const std::string address = AddressOf(*older);
  ASSERT_TRUE(Answers(address, "/readyz", 200));
  ASSERT_TRUE(kubelet.Devices(kResource, 8, Soon()));
  const double start = Metrics(address).Value("process_start_time_seconds");
  const auto newer = RunDaemon({"--http-address", address});
  EXPECT_EQ(AddressOf(*newer), address) << "it is given up when the older one stands by\n" << newer->err();
  EXPECT_TRUE(Logs(*older, "standby: a newer"));
  EXPECT_TRUE(Eventually([&] { return Metrics(address).Value("process_start_time_seconds") > start; }))
      << "it is the newer one that answers";
  EXPECT_TRUE(Becomes(address, "railhead_registered", {{"resource", kResource}}, 1));
  newer->Kill();
  EXPECT_TRUE(Answers(address, "/readyz", 200)) << older->err();
  EXPECT_EQ(older->Stop(), 0);
}

// As kubelet's probes ask during an update: the newer one is not ready because the older one is.
TEST_F(ObservedTest, EachOfTwoAnswersForItselfAtItsSocket) {
  const auto socket = [&](const char* name) { return root_.Path(name); };
  const auto ask = [&](const char* name, const char* page) {
    auto asked = Run({"--http-socket", socket(name), "--ask", page});
    asked->Wait();
    return asked;
  };
  const auto is_ready = [&](const char* name) { return ask(name, "/readyz")->Wait() == 0; };
  DeviceManager kubelet(directory_);
  ASSERT_TRUE(kubelet.Start());
  const auto older = RunDaemon({"--http-socket", socket("/older"), "--http-address", ""});
  ASSERT_TRUE(Eventually([&] { return is_ready("/older"); })) << older->err();
  EXPECT_EQ(ask("/newer", "/readyz")->Wait(), 1) << "nobody serves there";
  const auto newer = RunDaemon({"--http-socket", socket("/newer"), "--http-address", ""});
  ASSERT_TRUE(Eventually([&] { return is_ready("/newer"); })) << newer->err();
  EXPECT_TRUE(Eventually([&] { return is_ready("/older"); })) << "it stands by";
  EXPECT_EQ(Json::parse(ask("/newer", "/readyz")->out())["standby"], 0);
  EXPECT_EQ(Json::parse(ask("/newer", "/healthz")->out())["status"], "alive");
  newer->Kill();
  EXPECT_EQ(ask("/newer", "/healthz")->Wait(), 1);
  EXPECT_EQ(ask("/older", "/healthz")->Wait(), 0);
  EXPECT_EQ(older->Stop(), 0);
  EXPECT_EQ(Run({"--ask", "/readyz"})->Wait(), 2) << "of which railheadd?";
}

TEST_F(ObservedTest, AnAddressInUseDoesNotStopTheDaemon) {
  DeviceManager kubelet(directory_);
  ASSERT_TRUE(kubelet.Start());
  const auto other = Run({"--kubelet-dir", "/nowhere", "--http-address", "127.0.0.1:0"});
  const std::string address = AddressOf(*other);
  const auto daemon = RunDaemon({"--http-address", address});
  ASSERT_TRUE(kubelet.Devices(kResource, 8, Soon())) << daemon->err();
  EXPECT_TRUE(Logs(*daemon, "serving metrics and probes failed"));
  EXPECT_EQ(other->Stop(), 0);
  EXPECT_EQ(AddressOf(*daemon), address);
  EXPECT_TRUE(Answers(address, "/readyz", 200));
}

TEST_F(ObservedTest, WithoutAnAddressNobodyListens) {
  DeviceManager kubelet(directory_);
  ASSERT_TRUE(kubelet.Start());
  const auto daemon = RunDaemon({"--http-address", ""});
  ASSERT_TRUE(kubelet.Devices(kResource, 8, Soon())) << daemon->err();
  EXPECT_EQ(daemon->Stop(), 0);
  EXPECT_EQ(daemon->err().find("metrics"), std::string::npos) << daemon->err();
  EXPECT_EQ(Run({"--http-address", "localhost:1"})->Wait(), 2);
}

class NotifyTest : public ObservedTest, public ::testing::WithParamInterface<bool> {
 protected:
  std::unique_ptr<Process> RunService(const std::string& socket, const std::string& watchdog_usec) {
    std::vector<std::string> environment = {"NOTIFY_SOCKET=" + socket};
    if (!watchdog_usec.empty()) environment.push_back("WATCHDOG_USEC=" + watchdog_usec);
    return StartOn(sysfs_.directory(), {RAILHEADD, "--kubelet-dir", "/kubelet", "--http-address", ""},
                   environment);
  }
  // A name in the abstract namespace must be unique.
  [[nodiscard]] std::string SocketName() const {
    return (GetParam() ? "@" : "") + sysfs_.directory() + "/notify";
  }
};

TEST_P(NotifyTest, TheServiceManagerHearsHowItIs) {
  NotifySocket manager(SocketName());
  const auto daemon = RunService(SocketName(), "");
  const auto ready = manager.Await("READY=1");
  ASSERT_EQ(ready.size(), 2U) << daemon->err();
  EXPECT_EQ(ready[1].rfind("STATUS=Not registered with kubelet: " + std::string(kResource), 0), 0U)
      << ready[1];

  DeviceManager kubelet(directory_);
  ASSERT_TRUE(kubelet.Start());
  EXPECT_FALSE(manager.Await("STATUS=1 of 1 resources are registered with kubelet").empty());

  daemon->Signal(SIGHUP);
  const auto reloading = manager.Await("RELOADING=1");
  ASSERT_EQ(reloading.size(), 2U);
  EXPECT_EQ(reloading[1].rfind("MONOTONIC_USEC=", 0), 0U) << reloading[1];
  EXPECT_GT(ParseInt(reloading[1].substr(15)).value_or(0), 0);
  EXPECT_EQ(manager.Await("READY=1").size(), 2U);

  daemon->Signal(SIGTERM);
  EXPECT_EQ(manager.Await("STOPPING=1").size(), 1U);
  EXPECT_EQ(daemon->Wait(), 0);
}

TEST_P(NotifyTest, TheWatchdogIsFed) {
  NotifySocket manager(SocketName());
  const auto daemon = RunService(SocketName(), "200000");
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(manager.Await("WATCHDOG=1").empty()) << daemon->err();
  EXPECT_EQ(daemon->Stop(), 0);
}

INSTANTIATE_TEST_SUITE_P(PathAndAbstract, NotifyTest, ::testing::Bool());

TEST_F(ObservedTest, EveryLineOfTheLogIsAnObject) {
  DeviceManager kubelet(directory_);
  ASSERT_TRUE(kubelet.Start());
  const auto daemon = RunObserved({"--log-level", "debug"});
  ASSERT_TRUE(kubelet.Devices(kResource, 8, Soon()));
  ASSERT_TRUE(kubelet.Allocate(kResource, 1));
  sysfs_.Write("/etc/railhead/fabric.json", "{ \"quoted\\\" \xFF\n");
  EXPECT_TRUE(Logs(*daemon, "the last valid configuration stays in use"));
  EXPECT_EQ(daemon->Stop(), 0);
  const std::set<std::string> levels = {"debug", "info", "warning", "error"};
  int lines = 0;
  for (const std::string& line : Split(daemon->err(), '\n')) {
    if (line.empty()) continue;
    const Json json = Json::parse(line, nullptr, false);
    ASSERT_TRUE(json.is_object()) << line;
    EXPECT_TRUE(levels.contains(json.value("level", ""))) << line;
    EXPECT_EQ(json.value("time", "").size(), 24U) << line;
    EXPECT_FALSE(json.value("msg", "").empty()) << line;
    ++lines;
  }
  EXPECT_GT(lines, 5);
}

TEST_F(ObservedTest, TheLogCanBeText) {
  const auto daemon = RunDaemon({"--log-format", "text", "--http-address", "127.0.0.1:0"});
  EXPECT_TRUE(Logs(*daemon, "serving metrics and probes address=127"));
  EXPECT_TRUE(Logs(*daemon, "Z info advertising resource=railhead.io/roce devices=8\n"));
  EXPECT_EQ(daemon->Stop(), 0);
  EXPECT_EQ(Run({"--log-format", "xml"})->Wait(), 2);
}

}  // namespace
}  // namespace railhead::testing
