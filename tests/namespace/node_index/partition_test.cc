// Eight nodes, each in its own network namespace, claim indices in one Kubernetes API and allocate addresses.
// During this, the test kills, stops and cuts off the API and nodes, loses answers, and removes Node objects.
// Afterwards it checks the history: which node might use which index, and which addresses it held. See
// partition.sh, and partition_node.cc for the nodes.
#include "tests/namespace/node_index/partition.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "netns/base/unique_fd.h"
#include "tests/namespace/node_index/checker.h"
#include "tests/support/eventually.h"
#include "tests/support/kubernetes/kube_server.h"
#include "tests/support/kubernetes/server_process.h"
#include "tests/support/seed.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

constexpr int kNodes = 8;
constexpr int kAlone = 5;       // nodes that start one after another: they have the lowest indices
constexpr int kNewcomer = 7;    // starts when an index is free again
constexpr int kFirstNode = 11;  // its namespace
constexpr int kApi = 1;         // likewise
constexpr int kSome = 10;       // addresses that a node takes
constexpr const char* kClaims = "/apis/railhead.io/v1alpha1/nodeindices";

void EnterNamespace(int number) {
  const std::string path = "/run/netns/n" + std::to_string(number);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || ::setns(fd, CLONE_NEWNET) != 0) ::_exit(126);
}

std::uint64_t NowMs() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1000 +
         static_cast<std::uint64_t>(time.tv_nsec) / 1'000'000;
}

// A renewal goes on with the use before it.
std::vector<IndexUse> UsesIn(const std::vector<PartitionLine>& lines) {
  std::map<std::string, IndexUse> present;
  std::vector<IndexUse> uses;
  const auto end = [&](const std::string& node, std::uint64_t time_ms) {
    const auto found = present.find(node);
    if (found == present.end()) return;
    found->second.until_ms = std::min(found->second.until_ms, time_ms);
    uses.push_back(found->second);
    present.erase(found);
  };
  for (const PartitionLine& line : lines) {
    if (line.what == "stop") end(line.node, line.time_ms);
    if (line.what != "use") continue;
    const std::size_t slash = line.subject.find('/');
    const int index = std::stoi(line.subject.substr(0, slash));
    const std::uint64_t until_ms = std::stoull(line.subject.substr(slash + 1));
    const auto found = present.find(line.node);
    if (found != present.end() && found->second.index == index && line.time_ms <= found->second.until_ms) {
      found->second.until_ms = std::max(found->second.until_ms, until_ms);
    } else {
      end(line.node, line.time_ms);
      present[line.node] = {line.node, index, line.time_ms, until_ms};
    }
  }
  for (const auto& [node, use] : present) uses.push_back(use);
  return uses;
}

std::vector<HistoryEvent> EventsIn(const std::vector<PartitionLine>& lines) {
  std::vector<HistoryEvent> events;
  for (const PartitionLine& line : lines) {
    if (line.what == "hold")
      events.push_back({line.time_ms, HistoryEvent::Kind::kHold, line.node, line.subject});
    if (line.what == "release")
      events.push_back({line.time_ms, HistoryEvent::Kind::kRelease, line.node, line.subject});
    if (line.what == "excuse") events.push_back({line.time_ms, HistoryEvent::Kind::kExcuse, line.node, ""});
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const auto& a, const auto& b) { return a.time_ms < b.time_ms; });
  return events;
}

class PartitionTest : public ::testing::Test {
 protected:
  PartitionTest() {
    (void)std::signal(SIGPIPE, SIG_IGN);
    nodes_.resize(kNodes);
    WriteFileAt(files_.directory() + "/kubeconfig", server_.Kubeconfig());
  }

  static std::string NameOfNode(int node) { return "node" + std::to_string(node); }
  [[nodiscard]] std::string History() const { return files_.directory() + "/history"; }
  [[nodiscard]] Process& ProcessOf(int node) const { return *nodes_[static_cast<std::size_t>(node)]; }

  void CreateNodeObject(int node) {
    const nlohmann::json object = {{"metadata", {{"name", NameOfNode(node)}}}};
    server_.Admin("POST", "/api/v1/nodes", object.dump());
  }
  void RemoveNodeObject(int node) { server_.Admin("DELETE", "/api/v1/nodes/" + NameOfNode(node)); }
  // The next changes are made, but their answers are lost.
  void LoseAnswers(int times) {
    server_.Admin("POST", "/standin/lose", nlohmann::json{{"times", times}}.dump());
  }
  bool IsClaimed(int index) {
    const auto list = nlohmann::json::parse(server_.Admin("GET", kClaims).body);
    for (const auto& item : list.at("items"))
      if (item.at("metadata").at("name") == "node-" + std::to_string(index)) return true;
    return false;
  }

  void StartNode(int node) {
    const std::string at = files_.directory() + "/" + NameOfNode(node);
    nodes_[static_cast<std::size_t>(node)] =
        StartServer({PARTITION_NODE, NameOfNode(node), at, History(), files_.directory() + "/kubeconfig",
                     std::to_string(random_())},
                    at + ".log", [node] { EnterNamespace(kFirstNode + node); });
    running_.insert(node);
  }
  void KillNode(int node) {
    ProcessOf(node).Kill();
    running_.erase(node);
  }

  // The bridge's port to a namespace.
  static void SetConnected(int number, bool connected) {
    const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    const std::string name = "v" + std::to_string(number);
    std::copy(name.begin(), name.end(), std::begin(request.ifr_name));
    ASSERT_EQ(::ioctl(fd.get(), SIOCGIFFLAGS, &request), 0);
    const int flags = connected ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP;
    request.ifr_flags = static_cast<short>(flags);
    ASSERT_EQ(::ioctl(fd.get(), SIOCSIFFLAGS, &request), 0);
  }

  // The index that the node may use now.
  [[nodiscard]] std::optional<int> IndexOf(int node) const {
    std::optional<int> index;
    const std::uint64_t now_ms = NowMs();
    for (const IndexUse& use : UsesIn(ReadPartitionHistory(History()))) {
      if (use.node == NameOfNode(node) && now_ms < use.until_ms) index = use.index;
    }
    return index;
  }
  // The index that it uses as soon as it may use one: on a busy machine it may be between two confirmations.
  [[nodiscard]] std::optional<int> AwaitIndex(int node) const {
    std::optional<int> index;
    (void)Eventually([&] { return (index = IndexOf(node)).has_value(); });
    return index;
  }
  bool AwaitFence(int node) {
    return Eventually([&] { return !IndexOf(node); });
  }

  // How often each node has taken an address so far.
  [[nodiscard]] std::map<std::string, int> Holds() const {
    std::map<std::string, int> holds;
    for (const PartitionLine& line : ReadPartitionHistory(History())) holds[line.node] += line.what == "hold";
    return holds;
  }
  [[nodiscard]] int AllHolds() const {
    int all = 0;
    for (const auto& [node, holds] : Holds()) all += holds;
    return all;
  }
  // Of the node, now.
  [[nodiscard]] std::set<std::string> HeldBy(int node) const {
    std::set<std::string> held;
    for (const PartitionLine& line : ReadPartitionHistory(History())) {
      if (line.node != NameOfNode(node)) continue;
      if (line.what == "hold") held.insert(line.subject);
      if (line.what == "release") held.erase(line.subject);
    }
    return held;
  }
  // Waits until every running node but `without` has taken some more addresses.
  void AwaitHolds(const std::string& during, int without = -1) {
    auto before = Holds();
    const bool done = Eventually([&] {
      auto now = Holds();
      return std::ranges::all_of(running_, [&](int node) {
        const std::string name = NameOfNode(node);
        return node == without || now[name] >= before[name] + kSome;
      });
    });
    EXPECT_TRUE(done) << during << ": nodes do not get addresses\n" << Logs();
  }
  // Without the API, nodes use their indices for some time.
  void AwaitHoldsWithoutTheApi(const std::string& during) {
    const int before = AllHolds();
    EXPECT_TRUE(Eventually([&] { return AllHolds() >= before + kNodes; })) << during << "\n" << Logs();
  }

  [[nodiscard]] std::string Logs() const {
    std::string logs;
    for (const int node : running_) {
      const std::string log = ProcessOf(node).out();
      logs += NameOfNode(node) + ": " + log.substr(log.size() > 600 ? log.size() - 600 : 0) + "\n";
    }
    return logs;
  }

  void StartTheNodes();
  void InterruptTheApi();
  void InterruptNodes();
  void RemoveANodeThatComesBack();
  void RemoveANodeWhosePodsRunOn();
  void CheckTheHistory() const;

  int Any(int count) { return static_cast<int>(random_() % static_cast<std::uint64_t>(count)); }

  std::mt19937_64 random_{Seed()};
  TempRoot files_{TempRoot::Where::kMemory};
  KubeServer server_{KubeServer::Kind::kStandIn,
                     {.address = "10.77.0.1", .keeps_state = true, .in_child = [] { EnterNamespace(kApi); }}};
  std::vector<std::unique_ptr<Process>> nodes_;
  std::set<int> running_;
};

void PartitionTest::StartTheNodes() {
  for (int node = 0; node < kNodes; ++node) CreateNodeObject(node);
  for (int node = 0; node < kAlone; ++node) {
    StartNode(node);
    ASSERT_TRUE(Eventually([&] { return IndexOf(node); })) << Logs();
  }
  LoseAnswers(2);
  for (int node = kAlone; node < kNewcomer; ++node) StartNode(node);
  AwaitHolds("all is well");
}

void PartitionTest::InterruptTheApi() {
  server_.Kill();
  AwaitHoldsWithoutTheApi("the API is killed");
  server_.Start();
  AwaitHolds("the API is back");

  SetConnected(kApi, false);
  AwaitHoldsWithoutTheApi("the API is cut off");
  SetConnected(kApi, true);
  AwaitHolds("the API is connected again");

  server_.Signal(SIGSTOP);
  for (const int node : running_) EXPECT_TRUE(AwaitFence(node)) << Logs();
  server_.Signal(SIGCONT);
  AwaitHolds("the API was stopped for longer than fenceSeconds");
}

void PartitionTest::InterruptNodes() {
  const int dead = Any(kNewcomer);
  const auto before = AwaitIndex(dead);
  KillNode(dead);
  AwaitHolds("a node is killed");
  StartNode(dead);
  AwaitHolds("the node is back");
  EXPECT_EQ(AwaitIndex(dead), before);

  const int alone = Any(kNewcomer);
  const auto own = AwaitIndex(alone);
  SetConnected(kFirstNode + alone, false);
  EXPECT_TRUE(AwaitFence(alone)) << Logs();
  AwaitHolds("a node is cut off", alone);
  SetConnected(kFirstNode + alone, true);
  AwaitHolds("the node is connected again");
  EXPECT_EQ(AwaitIndex(alone), own) << "its Node object was there";
}

void PartitionTest::RemoveANodeThatComesBack() {
  const int gone = Any(kNewcomer);
  const auto own = AwaitIndex(gone);
  const std::size_t read = ProcessOf(gone).out().size();
  RemoveNodeObject(gone);
  EXPECT_TRUE(Eventually([&] {
    return ProcessOf(gone).out().find("the cluster has no node", read) != std::string::npos;
  })) << Logs();
  CreateNodeObject(gone);  // with another uid
  AwaitHolds("a removed node is back");
  EXPECT_EQ(AwaitIndex(gone), own) << "its claim was not yet reclaimed";
}

// The node sees nothing of it: it is cut off.
void PartitionTest::RemoveANodeWhosePodsRunOn() {
  const int gone = Any(kAlone);
  const auto own = AwaitIndex(gone);
  ASSERT_TRUE(own);
  ProcessOf(gone).Signal(SIGUSR1);
  ASSERT_TRUE(Eventually([&] { return !HeldBy(gone).empty(); }));
  SetConnected(kFirstNode + gone, false);
  RemoveNodeObject(gone);
  LoseAnswers(2);
  EXPECT_TRUE(Eventually([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the API is to answer the nodes
    return !IsClaimed(*own);
  })) << "the claim of a removed node is not reclaimed\n"
      << Logs();
  const std::set<std::string> held = HeldBy(gone);
  ASSERT_FALSE(held.empty());
  StartNode(kNewcomer);
  EXPECT_TRUE(Eventually([&] { return IndexOf(kNewcomer) == own; })) << Logs();
  // The lowest free index is that one, and its addresses are those that the pods of the removed node hold.
  EXPECT_TRUE(Eventually([&] {
    const auto others = HeldBy(kNewcomer);
    return std::ranges::any_of(others, [&](const std::string& address) { return held.contains(address); });
  })) << Logs();
  AwaitHolds("another node has the index", gone);
  EXPECT_FALSE(IndexOf(gone));

  SetConnected(kFirstNode + gone, true);
  CreateNodeObject(gone);
  ProcessOf(gone).Signal(SIGUSR2);
  AwaitHolds("the removed node is back");
  EXPECT_NE(AwaitIndex(gone), own);
  EXPECT_EQ(AwaitIndex(kNewcomer), own);
}

void PartitionTest::CheckTheHistory() const {
  const auto lines = ReadPartitionHistory(History());
  std::vector<HistoryEvent> events = EventsIn(lines);
  std::vector<IndexUse> uses = UsesIn(lines);
  const auto reuse_delay_ms =
      static_cast<std::uint64_t>(std::chrono::milliseconds(kPartitionReuseDelay).count());
  EXPECT_GT(events.size(), 500U);
  for (const std::string& finding : CheckUses(uses)) ADD_FAILURE() << finding;
  for (const std::string& finding : CheckHistory(events, reuse_delay_ms)) ADD_FAILURE() << finding;
  std::printf("%zu events, %zu uses of indices\n", events.size(), uses.size());

  // Planted violations: the checks must find them.
  const auto hold = std::find_if(events.begin(), events.end(), [](const HistoryEvent& event) {
    return event.kind == HistoryEvent::Kind::kHold;
  });
  ASSERT_NE(hold, events.end());
  HistoryEvent planted = *hold;
  planted.node = planted.node == "node0" ? "node1" : "node0";
  events.insert(hold + 1, planted);
  EXPECT_FALSE(CheckHistory(events, reuse_delay_ms).empty());
  ASSERT_FALSE(uses.empty());
  IndexUse late = uses.front();
  late.node = late.node == "node0" ? "node1" : "node0";
  late.from_ms = late.until_ms - 1;
  late.until_ms = late.from_ms + 1000;
  uses.push_back(late);
  EXPECT_FALSE(CheckUses(uses).empty());
}

TEST_F(PartitionTest, NoIndexIsOfTwoNodes) {
  ASSERT_NO_FATAL_FAILURE(StartTheNodes());
  InterruptTheApi();
  InterruptNodes();
  RemoveANodeThatComesBack();
  ASSERT_NO_FATAL_FAILURE(RemoveANodeWhosePodsRunOn());
  const std::set<int> all = running_;
  for (const int node : all) {
    EXPECT_FALSE(ProcessOf(node).HasEnded()) << Logs();
    KillNode(node);
  }
  CheckTheHistory();
}

}  // namespace
}  // namespace railhead::testing
