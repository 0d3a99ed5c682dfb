// Eight nodes, each in its own network namespace, lease blocks from one etcd of three members and allocate
// addresses. During this, the test kills, stops and cuts off members and nodes. Afterwards it checks the
// history of held addresses. See partition.sh, and partition_node.cc for the nodes.
#include "tests/namespace/cluster_store/partition.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "deviceplugin/services/address_leasing/etcd_store.h"
#include "netns/base/unique_fd.h"
#include "tests/support/cluster_store/certificates.h"
#include "tests/support/cluster_store/etcd_cluster.h"
#include "tests/support/eventually.h"
#include "tests/support/ipam/support.h"
#include "tests/support/seed.h"
#include "tests/unit/ipam/lease/simulation/checker.h"

namespace railhead::testing {
namespace {

constexpr int kMembers = 3;
constexpr int kNodes = 8;
constexpr int kFirstNode = 11;  // its namespace

void EnterNamespace(int number) {
  const std::string path = "/run/netns/n" + std::to_string(number);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || ::setns(fd, CLONE_NEWNET) != 0) ::_exit(126);
}

class PartitionTest : public ::testing::Test {
 protected:
  PartitionTest()
      : cluster_(etcd_files_.directory(), {kMembers,
                                           true,
                                           true,
                                           certificates_.directory(),
                                           {"10.77.0.1", "10.77.0.2", "10.77.0.3"},
                                           [](int member) { EnterNamespace(member + 1); }}),
        store_(MakeEtcdStore(Root(), cluster_.Config())) {
    (void)std::signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < kNodes; ++i) {
      nodes_.push_back(nullptr);
      StartNode(i);
    }
  }

  static std::string NameOfNode(int node) { return "node" + std::to_string(node); }

  [[nodiscard]] std::string StoreSettings() const {
    const address_leasing::EtcdConfig config = cluster_.Config();
    nlohmann::json json = {
        {"caFile", config.ca_file},     {"certFile", config.cert_file},         {"keyFile", config.key_file},
        {"userFile", config.user_file}, {"passwordFile", config.password_file}, {"timeoutSeconds", 2}};
    for (const http::HttpEndpoint& endpoint : config.endpoints)
      json["endpoints"].push_back(endpoint.ToString());
    return json.dump();
  }

  void StartNode(int node) {
    const std::string at = files_.directory() + "/" + NameOfNode(node);
    nodes_[static_cast<std::size_t>(node)] = StartServer(
        {PARTITION_NODE, NameOfNode(node), at, History(), StoreSettings(), std::to_string(random_())},
        at + ".log", [node] { EnterNamespace(kFirstNode + node); });
  }
  void KillNode(int node) { nodes_[static_cast<std::size_t>(node)]->Kill(); }

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

  [[nodiscard]] std::string History() const { return files_.directory() + "/history"; }

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

  // The number of addresses that more than one node has had in turn.
  [[nodiscard]] std::size_t Moved() const {
    std::map<std::string, std::set<std::string>> nodes;
    for (const PartitionLine& line : ReadPartitionHistory(History())) {
      if (line.what == "hold") nodes[line.address].insert(line.node);
    }
    return static_cast<std::size_t>(
        std::count_if(nodes.begin(), nodes.end(), [](const auto& one) { return one.second.size() > 1; }));
  }

  // How often another node has taken an address that this node had before.
  [[nodiscard]] int InheritedFrom(int node) const {
    std::map<std::string, std::string> last;
    int inherited = 0;
    for (const HistoryEvent& event : ReadHistory()) {
      if (event.kind != HistoryEvent::Kind::kHold) continue;
      std::string& holder = last[event.address];
      if (holder == NameOfNode(node) && event.node != holder) ++inherited;
      holder = event.node;
    }
    return inherited;
  }

  void SignalNodes(int signal) const {
    for (const auto& node : nodes_) node->Signal(signal);
  }

  // Waits until every node but `without` has taken `more` addresses.
  void AwaitHolds(const std::string& during, int more, int without = -1) {
    auto before = Holds();
    const bool done = Eventually([&] {
      auto now = Holds();
      for (int i = 0; i < kNodes; ++i) {
        const std::string name = NameOfNode(i);
        if (i != without && now[name] < before[name] + more) return false;
      }
      return true;
    });
    EXPECT_TRUE(done) << during << ": nodes do not get addresses\n" << Logs();
  }

  [[nodiscard]] std::string Logs() const {
    std::string logs;
    for (int i = 0; i < kNodes; ++i) {
      const std::string log = nodes_[static_cast<std::size_t>(i)]->out();
      logs += NameOfNode(i) + ": " + log.substr(log.size() > 600 ? log.size() - 600 : 0) + "\n";
    }
    return logs;
  }

  [[nodiscard]] std::vector<HistoryEvent> ReadHistory() const {
    std::vector<HistoryEvent> events;
    for (const PartitionLine& line : ReadPartitionHistory(History())) {
      const auto kind = line.what == "hold"      ? HistoryEvent::Kind::kHold
                        : line.what == "release" ? HistoryEvent::Kind::kRelease
                                                 : HistoryEvent::Kind::kExcuse;
      events.push_back(
          {line.time_ms, kind, line.node, kind == HistoryEvent::Kind::kExcuse ? "" : line.address});
    }
    std::stable_sort(events.begin(), events.end(),
                     [](const auto& a, const auto& b) { return a.time_ms < b.time_ms; });
    return events;
  }

  int Any(int count) { return static_cast<int>(random_() % static_cast<std::uint64_t>(count)); }

  std::mt19937_64 random_{Seed()};
  Certificates certificates_;
  TempRoot files_{TempRoot::Where::kMemory};
  TempRoot etcd_files_;  // a member's log takes 128 MB: too much for some machines' memory
  EtcdCluster cluster_;
  std::unique_ptr<ipam::ClusterStore> store_;
  std::vector<std::unique_ptr<Process>> nodes_;
};

TEST_F(PartitionTest, NoAddressIsHeldTwice) {
  constexpr int kSome = 15;
  AwaitHolds("all is well", kSome);

  const int killed = Any(kMembers);
  cluster_.Kill(killed);
  AwaitHolds("a member is killed", kSome);
  cluster_.Start(killed);
  cluster_.AwaitAll();

  const int stopped = Any(kMembers);
  cluster_.Signal(stopped, SIGSTOP);
  AwaitHolds("a member is stopped", kSome);
  cluster_.Signal(stopped, SIGCONT);

  const int cut = Any(kMembers);
  SetConnected(1 + cut, false);
  AwaitHolds("a member is cut off", kSome);
  const int other = (cut + 1) % kMembers;
  cluster_.Signal(other, SIGSTOP);
  // No member answers, so the nodes go on with the blocks that they have leased.
  const int before = AllHolds();
  EXPECT_TRUE(Eventually([&] { return AllHolds() >= before + kNodes; })) << Logs();
  cluster_.Signal(other, SIGCONT);
  SetConnected(1 + cut, true);
  AwaitHolds("the majority is back", kSome);

  const int dead = Any(kNodes);
  KillNode(dead);
  AwaitHolds("a node is killed", kSome, dead);
  StartNode(dead);
  AwaitHolds("the node is back", kSome);

  const int alone = Any(kNodes);
  const int inherited = InheritedFrom(alone);
  SetConnected(kFirstNode + alone, false);
  const bool taken = Eventually([&] {
    auto record = store_->Get(ipam::LeaseKey::Node(NameOfNode(alone)));
    return record && !*record;
  });
  EXPECT_TRUE(taken) << "the blocks of a node that is away are not taken\n" << Logs();
  // The other nodes need so many blocks that they get those of this node.
  SignalNodes(SIGUSR1);
  EXPECT_TRUE(Eventually([&] { return InheritedFrom(alone) > inherited; })) << Logs();
  SignalNodes(SIGUSR2);
  AwaitHolds("a node is cut off", kSome, alone);
  SetConnected(kFirstNode + alone, true);
  AwaitHolds("the node is connected again", kSome);

  for (int i = 0; i < kNodes; ++i) {
    EXPECT_FALSE(nodes_[static_cast<std::size_t>(i)]->HasEnded()) << Logs();
    KillNode(i);
  }
  std::vector<HistoryEvent> history = ReadHistory();
  const auto reuse_delay_ms =
      static_cast<std::uint64_t>(std::chrono::milliseconds(kPartitionReuseDelay).count());
  EXPECT_GT(history.size(), 1000U);
  for (const std::string& finding : CheckHistory(history, reuse_delay_ms)) ADD_FAILURE() << finding;
  std::printf("%zu events, %zu addresses of several nodes\n", history.size(), Moved());

  // A planted violation: the check must find it.
  const auto hold = std::find_if(history.begin(), history.end(), [](const HistoryEvent& event) {
    return event.kind == HistoryEvent::Kind::kHold;
  });
  HistoryEvent planted = *hold;
  planted.node = planted.node == "node0" ? "node1" : "node0";
  history.insert(hold + 1, planted);
  EXPECT_FALSE(CheckHistory(history, reuse_delay_ms).empty());
}

}  // namespace
}  // namespace railhead::testing
