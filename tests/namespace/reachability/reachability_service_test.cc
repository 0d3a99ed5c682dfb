// ReachabilityService on the real kernel: rounds by themselves, its file, its end, and pods.
#include "deviceplugin/services/reachability/reachability_service.h"

#include <gtest/gtest.h>
#include <linux/neighbour.h>

#include <filesystem>

#include "cni/fabric/fabric.h"
#include "cni/fabric/node_index.h"
#include "cni/fabric/probe_endpoint_mac.h"
#include "cni/state/journal.h"
#include "deviceplugin/node/resources/fabric_resources.h"
#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "netns/linux_kernel.h"
#include "tests/namespace/reachability/fake_switch.h"
#include "tests/support/service/running.h"
#include "tests/support/sysfs/fake_sysfs.h"

namespace railhead::testing {
namespace {

constexpr const char* kFabric = "/etc/railhead/fabric.json";

class ReachabilityServiceTest : public ::testing::Test {
 protected:
  ReachabilityServiceTest() {
    sysfs_.AddPf({.address = "0000:43:00.0", .netdev = "pf0", .rdma = "mlx5_0"});
    sysfs_.Write("/etc/railhead/node-name", "gpu-001\n");
    Describe(R"({"intervalSeconds": 1, "podSeconds": 1})");
    switch_.Own(
        [](int, int, const IpAddress& address) { return address == IpAddress::Parse("10.100.0.254"); });
  }
  ~ReachabilityServiceTest() override {
    const std::string said = Stop();
    EXPECT_FALSE(Complains(said)) << said;
  }

  void Describe(const std::string& settings, const std::string& other_addresses = "") {
    sysfs_.Write(kFabric, R"({"version": 1, "reachability": )" + settings + R"(, "rails": [
      {"name": "rail0", "pf": "0000:43:00.0", "subnet": "10.100.0.0/24", "gateway": "10.100.0.254",
       "probeAddresses": {"gpu-001": "10.100.0.1")" +
                              other_addresses + R"(}}, {"name": "rail1", "pf": "none"}]})");
  }
  void Start() {
    ::testing::internal::CaptureStderr();
    echo_ = RunService<reachability::EchoServer>();
    service_ = RunService<reachability::ReachabilityService>(
        sysfs_.root(), kernel_, *echo_, sysfs_.root().Path(kProbeKeysPath), node_, claimed_, &log_);
    Update();
  }
  // What it has logged, as a warning or more.
  std::string Stop() {
    if (service_.IsEmpty()) return "";
    service_ = {};
    echo_ = {};
    return ::testing::internal::GetCapturedStderr();
  }
  void Update() {
    NodeSnapshot node;
    node.inventory = Must(inventory::Discover(sysfs_.root(), {}));
    node.of_fabric = true;
    node.fabric = std::make_shared<const Fabric>(Must(ReadFabric(sysfs_.root(), kFabric)).value());
    node.pf_of_rail = resources::PfsOfRails(*node.fabric, *node.inventory);
    node_.Set(std::move(node));
  }
  reachability::ReachabilityReport Report() { return *service_->report().Get(); }
  // Rounds that are over so far.
  int Rounds() {
    const auto report = service_->report().Get();
    if (report != latest_) ++rounds_;
    latest_ = report;
    return rounds_;
  }
  static bool Complains(const std::string& said) { return said.find("probing failed") != std::string::npos; }
  reachability::RailReachability Rail(const std::string& rail) {
    const reachability::ReachabilityReport report = Report();
    const reachability::RailReachability* found = report.Find(rail);
    return found == nullptr ? reachability::RailReachability{} : *found;
  }
  bool Becomes(reachability::ReachabilityState state) {
    return Holds([&] { return Rail("rail0").state == state; });
  }

  FakeSysfs sysfs_;
  Wires wires_{1};
  LinuxKernel kernel_{sysfs_.root()};
  FakeSwitch switch_{wires_, 1};
  Log log_{"warning"};
  Published<NodeSnapshot> node_;
  Published<NodeIndices> claimed_;
  Running<reachability::EchoServer> echo_;
  Running<reachability::ReachabilityService> service_;
  int rounds_ = 0;
  std::shared_ptr<const reachability::ReachabilityReport> latest_;
};

TEST_F(ReachabilityServiceTest, ProbesRoundByRoundAndWritesItDown) {
  Start();
  ASSERT_TRUE(Becomes(reachability::ReachabilityState::kReachable)) << Rail("rail0").because;
  EXPECT_TRUE(Holds([&] { return Rail("rail1").because == "this node has no PF for it"; }));
  EXPECT_EQ(Report().node, "gpu-001");
  switch_.Own(nullptr);
  EXPECT_TRUE(Becomes(reachability::ReachabilityState::kDead));
  EXPECT_TRUE(Holds([&] {
    const auto written = reachability::ReadReachabilityReport(sysfs_.root());
    return written && *written && (*written)->Find("rail0")->state == reachability::ReachabilityState::kDead;
  }));
}

TEST_F(ReachabilityServiceTest, ARestartGoesOnWhereItWas) {
  switch_.Own(nullptr);
  Start();
  ASSERT_TRUE(Becomes(reachability::ReachabilityState::kDead));
  const auto since = Rail("rail0").since;
  ASSERT_TRUE(Holds([&] { return Must(reachability::ReadReachabilityReport(sysfs_.root())).has_value(); }));
  EXPECT_FALSE(Complains(Stop()));
  rounds_ = 0;
  Start();
  ASSERT_TRUE(Holds([&] { return Rounds() >= 2; }));
  EXPECT_EQ(Rail("rail0").state, reachability::ReachabilityState::kDead);
  EXPECT_LE(Rail("rail0").since - since, std::chrono::seconds(1)) << "it has been so since then";
}

TEST_F(ReachabilityServiceTest, IsOffUnlessTheFabricSaysSo) {
  Start();
  ASSERT_TRUE(Becomes(reachability::ReachabilityState::kReachable));
  ASSERT_TRUE(Holds([&] { return Must(reachability::ReadReachabilityReport(sysfs_.root())).has_value(); }));
  Describe("false");
  Update();
  EXPECT_TRUE(Holds([&] { return Report().rails.empty(); }));
  EXPECT_FALSE(Must(reachability::ReadReachabilityReport(sysfs_.root())).has_value())
      << "an old word is none";
}

// A node that claims its index probes those that it knows to have one, as itself only while its own one
// counts.
TEST_F(ReachabilityServiceTest, ProbesTheNodesThatHaveClaimedAnIndex) {
  sysfs_.Write(kFabric, R"({"version": 1, "reachability": {"intervalSeconds": 1, "podSeconds": 0},
    "addresses": {"index": {"from": "kubernetes"}}, "rails": [
      {"name": "rail0", "pf": "0000:43:00.0", "subnet": "10.100.0.0/24", "gateway": "10.100.0.254",
       "nodeBlock": 28, "probeAddresses": "10.100.0.1-10.100.0.40"}]})");
  Start();
  ASSERT_TRUE(Becomes(reachability::ReachabilityState::kReachable)) << "the gateway needs no address";
  claimed_.Set({{"gpu-002", 1}, {"gpu-003", 30}, {"gpu-900", 40}});
  const auto peers = [this] {
    std::map<std::string, std::string> addresses;
    for (const auto& peer : Rail("rail0").peers) addresses[peer.node] = peer.address.ToString();
    return addresses;
  };
  const int before = Rounds();
  ASSERT_TRUE(Holds([&] { return Rounds() >= before + 2; }));
  EXPECT_TRUE(peers().empty()) << "this node has no index";
  NodeIndex own{.node = "gpu-001", .index = 7, .claimed = true, .fence = std::chrono::hours(1)};
  const auto now = Must(ReadNodeIndexClock(sysfs_.root()));
  own.boot = now.boot;
  own.boottime_ms = now.boottime_ms;
  own.wall = now.wall;
  ASSERT_TRUE(kNodeIndexFile.Write(sysfs_.root(), own));
  EXPECT_TRUE(Holds([&] {
    return peers() ==
           std::map<std::string, std::string>{{"gpu-002", "10.100.0.2"}, {"gpu-003", "10.100.0.31"}};
  })) << "gpu-900 is above the range";
  EXPECT_EQ(Rail("rail0").probe_address, IpAddress::Parse("10.100.0.8"));
  claimed_.Set({{"gpu-001", 3}, {"gpu-003", 2}});
  EXPECT_TRUE(Holds([&] {
    return peers() == std::map<std::string, std::string>{{"gpu-003", "10.100.0.3"}};
  }));
  EXPECT_EQ(Rail("rail0").probe_address, IpAddress::Parse("10.100.0.8")) << "its own file counts";
  own.claimed = false;
  ASSERT_TRUE(kNodeIndexFile.Write(sysfs_.root(), own));
  EXPECT_TRUE(Holds([&] { return !Rail("rail0").probe_address && peers().empty(); }));
}

// Keys come and go while it runs, and a file that is wrong changes nothing.
TEST_F(ReachabilityServiceTest, TakesKeysBeforeEachRound) {
  Start();
  // In one step: half a file would be a complaint, too.
  const auto write = [&](const std::string& keys) {
    Must(WriteAtomic(sysfs_.root().Path(kProbeKeysPath), keys, Sync::kVolatile));
  };
  const auto becomes = [&](const std::string& keys, bool authentic) {
    write(keys);
    return Holds([&] { return Report().authentic == authentic; });
  };
  ASSERT_TRUE(Becomes(reachability::ReachabilityState::kReachable));
  EXPECT_FALSE(Report().authentic);
  const std::string key = "00112233445566778899aabbccddeeff\n";
  EXPECT_TRUE(becomes(key, true));
  EXPECT_TRUE(becomes(key + "unsigned\n", false));
  EXPECT_TRUE(becomes(key, true));
  write("no key\n");
  const int rounds = Rounds();
  EXPECT_TRUE(Holds([&] { return Rounds() >= rounds + 3; }));
  EXPECT_TRUE(Report().authentic) << "as before";
  const std::string said = Stop();
  const std::size_t first = said.find("reading the keys of probes");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("reading the keys of probes", first + 1), std::string::npos) << "once: " << said;
}

TEST_F(ReachabilityServiceTest, EndsInTheMidstOfARound) {
  switch_.Own(nullptr);
  Start();
  ASSERT_TRUE(Holds([&] { return Rounds() >= 1; }));
  service_.RequestStop();
  EXPECT_TRUE(service_.AwaitEnd(kLong));
}

// A pod is a namespace with a macvlan of the PF, as its VF would be.
class ReachabilityOfPodsTest : public ReachabilityServiceTest {
 protected:
  ReachabilityOfPodsTest() {
    const NetNs host = Must(NetNs::Current());
    const int device = AddMacvlan(host, "vf0", wires_.Near(0));
    Must(OpenRoute(host)->MoveLink(device, pod_, "rail0", std::nullopt));
    link_ = GetLink(*route_, "rail0").index;
    BringUp(*route_, link_);
    Must(route_->AddAddress(link_, *IpPrefix::Parse("10.100.0.50/24")));

    JournalEntry entry;
    entry.key = {"rails", "container", "rail0"};
    entry.boot_id = Must(BootId(sysfs_.root()));
    entry.phase = Phase::kDone;
    entry.netns = "/proc/self/fd/" + std::to_string(pod_.fd());
    entry.netns_inode = pod_.inode();
    entry.cni_args = {{"K8S_POD_NAMESPACE", "ml"}, {"K8S_POD_NAME", "trainer-0"}};
    AttachedDevice attached;
    attached.device = "0000:43:00.2";
    attached.rail = "rail0";
    attached.pod_name = "rail0";
    attached.addressing.addresses = {*IpPrefix::Parse("10.100.0.50/24")};
    entry.devices = {attached};
    Must(Journal(sysfs_.root()).Write(entry));
    // An earlier sandbox of the same pod.
    entry.key.container_id = "before";
    Must(Journal(sysfs_.root()).Write(entry));
  }
  reachability::PodReachability Pod() {
    const auto pods = Report().pods;
    return pods.empty() ? reachability::PodReachability{} : pods.front();
  }
  bool PodBecomes(reachability::ReachabilityState state) {
    return Holds([&] { return Pod().state == state; });
  }

  NetNs pod_ = MakeNetns();
  std::unique_ptr<RouteApi> route_ = OpenRoute(pod_);
  int link_ = 0;
};

TEST_F(ReachabilityOfPodsTest, AreLookedAtFromInside) {
  Start();
  ASSERT_TRUE(PodBecomes(reachability::ReachabilityState::kReachable));
  EXPECT_EQ(Report().pods.size(), 1U);
  EXPECT_TRUE(Holds([&] { return Must(reachability::ReadReachabilityReport(sysfs_.root())).has_value(); }))
      << "it can be read";
  const reachability::PodReachability reach = Pod();
  EXPECT_EQ(reach.pod_namespace + "/" + reach.pod + " " + reach.interface, "ml/trainer-0 rail0");
  EXPECT_EQ(reach.gateway_answers, true);
  EXPECT_TRUE(reach.stale.empty()) << "that the gateway answers no echo request is no sign of that";
  // The VF is silent; the node is reachable.
  LinkChange down;
  down.up = false;
  Must(route_->ChangeLink(link_, down));
  EXPECT_TRUE(PodBecomes(reachability::ReachabilityState::kDead));
  EXPECT_EQ(Rail("rail0").state, reachability::ReachabilityState::kReachable);
  BringUp(*route_, link_);
  EXPECT_TRUE(PodBecomes(reachability::ReachabilityState::kReachable));
}

// The switch's end of the cable plays the gateway and another node. Their entries for the pod's address have
// another MAC address, as if another pod had had it before. One check finds, reports and fixes this.
TEST_F(ReachabilityOfPodsTest, StaleNeighboursAreFixed) {
  switch_.Own(nullptr);
  const auto far = OpenRoute(wires_.the_switch());
  // Nodes know each other's endpoints by their MAC addresses.
  LinkChange change;
  change.mac = ProbeEndpointMac("gpu-002", "rail0");
  Must(far->ChangeLink(wires_.Far(0), change));
  for (const char* own : {"10.100.0.254/24", "10.100.0.2/24"})
    Must(far->AddAddress(wires_.Far(0), *IpPrefix::Parse(own)));
  const IpAddress gateway = *IpAddress::Parse("10.100.0.254");
  const IpAddress endpoint = *IpAddress::Parse("10.100.0.2");
  const auto echo = RunService<reachability::EchoServer>();
  echo->Serve("rail0", {{*IpPrefix::Parse("10.100.0.0/24")}, {}, 0},
              Must(reachability::OpenUdp(wires_.the_switch(), "swp0",
                                         {endpoint, reachability::ReachabilitySettings().port}, 0)));
  Describe(R"({"intervalSeconds": 1, "podSeconds": 1})", R"(, "gpu-002": "10.100.0.2")");
  // Otherwise a broadcast of the pod may come first and fix it too.
  const MacAddress far_mac = GetLink(*far, wires_.Far(0)).mac;
  for (const IpAddress& one : {gateway, endpoint})
    Must(route_->SetNeighbour({one, far_mac, link_, NUD_PERMANENT}));
  Start();
  ASSERT_TRUE(Holds([&] {
    return Pod().state == reachability::ReachabilityState::kReachable && Pod().sent > 0;
  })) << Pod().because;
  EXPECT_EQ(Rail("rail0").stale, 0U);

  Must(far->SetNeighbour({*IpAddress::Parse("10.100.0.50"), *MacAddress::Parse("02:00:00:00:00:99"),
                          wires_.Far(0), NUD_REACHABLE}));
  ASSERT_TRUE(Holds([&] { return Rail("rail0").stale >= 2; })) << Pod().because;
  EXPECT_TRUE(Holds([&] { return Pod().stale.empty(); })) << "at the next look it is well";
  EXPECT_EQ(Pod().state, reachability::ReachabilityState::kReachable);
  EXPECT_EQ(Rail("rail0").stale, 2U);
}

}  // namespace
}  // namespace railhead::testing
