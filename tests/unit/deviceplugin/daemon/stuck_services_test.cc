// Each service of railheadd hangs once: a debugger stops its thread, whatever that is at. The probes, the log
// and the service manager learn of it, the other services go on, and railheadd can be stopped.
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "netns/base/text.h"
#include "tests/support/daemon/daemon_process.h"
#include "tests/support/eventually.h"
#include "tests/support/metrics/http_client.h"
#include "tests/support/metrics/metrics_parser.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

// The service manager, which counts WATCHDOG=1.
class Watchdog {
 public:
  explicit Watchdog(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  // Since the last call.
  int TakeBeats() {
    int beats = 0;
    std::array<char, 4096> message{};
    for (ssize_t size = 0;
         (size = ::recv(socket_.get(), message.data(), message.size(), MSG_DONTWAIT)) > 0;) {
      if (std::string_view(message.data(), static_cast<std::size_t>(size)) == "WATCHDOG=1") ++beats;
    }
    return beats;
  }

 private:
  const UniqueFd socket_;
};

// A railheadd on a node of its own.
class Node : public KubeletTest {
 public:
  void TestBody() override {}

  Node() : watchdog_(root_.Path("/notify")) {
    daemon_ = StartOn(sysfs_.directory(),
                      {RAILHEADD, "--kubelet-dir", "/kubelet", "--http-address", "127.0.0.1:0",
                       "--http-socket", own_, "--reconcile-interval", "1", "--resync-interval", "1"},
                      {"NOTIFY_SOCKET=" + root_.Path("/notify"), "WATCHDOG_USEC=200000"});
  }

  // "" before it serves. Without the page of `hung`, which does not answer.
  std::string Address(const std::string& hung) {
    if (hung == "http") return "unix:" + own_;
    for (const std::string& line : Split(daemon_->err(), '\n')) {
      const Json json = Json::parse(line, nullptr, false);
      const bool serves = json.is_object() && json.value("msg", "") == "serving metrics and probes";
      if (serves && json["address"].get<std::string>().rfind("unix:", 0) != 0) return json["address"];
    }
    return "";
  }
  std::vector<std::string> Services() {
    std::vector<std::string> names;
    const auto page = Metrics("");
    const auto family = page.families.find("railhead_thread_alive");
    if (family == page.families.end()) return names;
    for (const auto& sample : family->second.samples) names.push_back(sample.labels.at("thread"));
    return names;
  }
  MetricsText Metrics(const std::string& hung) {
    const auto answer = Get(Address(hung), "/metrics");
    return answer && answer->status == 200 ? ParseMetrics(answer->body, false) : MetricsText{};
  }
  double Value(const std::string& hung, const std::string& name) {
    auto page = Metrics(hung);
    return page.Find(name, {}) == nullptr ? 0 : page.Value(name);
  }
  // 0: the service does not run yet.
  pid_t ThreadOf(const std::string& service) {
    const std::string tasks = "/proc/" + std::to_string(daemon_->pid()) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
      if (ReadFileAt(task.path().string() + "/comm") == service + "\n")
        return static_cast<pid_t>(ParseInt(task.path().filename().string()).value_or(0));
    }
    return 0;
  }
  Json Health(const std::string& hung) {
    const auto answer = Get(Address(hung), "/healthz");
    return answer ? Json::parse(answer->body, nullptr, false) : Json();
  }
  // From now on the fabric names rail0's switch, so that LLDP judges its cable.
  void ChangeFabric() {
    const std::string path = "/etc/railhead/fabric.json";
    std::string text = ReadFileAt(root_.Path(path));
    const std::string rail = R"("name": "rail0")";
    const std::size_t at = text.find(rail);
    ASSERT_NE(at, std::string::npos) << text;
    sysfs_.Write(path, text.insert(at + rail.size(), R"(, "expectedSwitches": "leaf0")"));
  }
  bool HasChangedFabric(const std::string& hung) {
    auto page = Metrics(hung);
    return page.Find("railhead_rail_miscabled", {{"rail", "rail0"}}) != nullptr;
  }
  Process& daemon() { return *daemon_; }
  Watchdog& watchdog() { return watchdog_; }

 private:
  const std::string own_ = root_.Path("/own.sock");
  Watchdog watchdog_;
  std::unique_ptr<Process> daemon_;
};

bool Stop(pid_t thread) {
  return ::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) == 0 &&
         ::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) == 0 &&
         ::waitpid(thread, nullptr, __WALL) == thread;
}

// The others' passes go on.
bool GoesOn(Node& node, const std::string& hung) {
  const char* const passes =
      hung == "reconciler" ? "railhead_discovery_runs_total" : "railhead_reconcile_passes_total";
  const double before = node.Value(hung, passes);
  return Eventually([&] { return node.Value(hung, passes) >= before + 3; });
}

class StuckServicesTest : public ::testing::Test {
 protected:
  void HangEach(const std::vector<std::string>& services) {
    for (const std::string& service : services) nodes_[service] = std::make_unique<Node>();
    for (auto& [service, node] : nodes_) {
      ASSERT_TRUE(Eventually([&, &service = service, &node = node] {
        return !node->Address("").empty() && node->Value("", "railhead_reconcile_passes_total") > 0 &&
               (threads_[service] = node->ThreadOf(service)) != 0;
      })) << service
          << node->daemon().err();
      ASSERT_TRUE(Stop(threads_[service])) << service << ": " << std::strerror(errno);
    }
  }

  std::map<std::string, std::unique_ptr<Node>> nodes_;  // by the service that hangs
  std::map<std::string, pid_t> threads_;
};

TEST_F(StuckServicesTest, AreNamedWhileTheOthersGoOnAndRailheaddCanBeStopped) {
  std::vector<std::string> services;
  {
    Node node;
    ASSERT_TRUE(Eventually([&] { return !(services = node.Services()).empty(); })) << node.daemon().err();
    EXPECT_EQ(node.Health("")["status"], "alive");
    EXPECT_EQ(node.daemon().Stop(), 0);
  }
  ASSERT_GE(services.size(), 10U);
  HangEach(services);
  if (HasFatalFailure()) return;
  for (auto& [service, node] : nodes_) {
    SCOPED_TRACE(service);
    EXPECT_TRUE(Eventually([&, &service = service, &node = node] {
      const Json health = node->Health(service);
      return health.is_object() && health.value("status", "") == "stuck";
    }));
    const Json health = node->Health(service);
    EXPECT_EQ(health["threads"], Json::array({service})) << health;
    EXPECT_FALSE(health["busyAt"].value(service, "").empty()) << health;
    EXPECT_TRUE(Logs(node->daemon(), "\"what\":\"" + service + "\""));
    node->watchdog().TakeBeats();
    EXPECT_TRUE(GoesOn(*node, service));
    EXPECT_EQ(node->watchdog().TakeBeats(), 0) << "the service manager must learn of it";
    if (service == "node_watcher" || service == "lldp") continue;  // they are the ones that would take it
    EXPECT_FALSE(node->HasChangedFabric(service));
    node->ChangeFabric();
    EXPECT_TRUE(
        Eventually([&, &service = service, &node = node] { return node->HasChangedFabric(service); }));
  }
  for (auto& [service, node] : nodes_) node->daemon().Signal(SIGTERM);
  for (auto& [service, node] : nodes_) {
    SCOPED_TRACE(service);
    // A tracer has to take note of a thread's end.
    while (::waitpid(threads_[service], nullptr, __WALL) >= 0) {
    }
    EXPECT_EQ(node->daemon().Wait(), 0);
    EXPECT_NE(node->daemon().err().find("\"error\":\"" + service + "\""), std::string::npos)
        << node->daemon().err();
  }
}

}  // namespace
}  // namespace railhead::testing
