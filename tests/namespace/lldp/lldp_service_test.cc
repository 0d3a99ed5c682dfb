// LldpService on the real kernel: switches are namespaces that send LLDP frames, and lldpd.
#include "deviceplugin/services/lldp/lldp_service.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "deviceplugin/node/resources/fabric_resources.h"
#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/services/lldp/neighbor_table.h"
#include "netns/linux_kernel.h"
#include "tests/support/netns/wires.h"
#include "tests/support/process.h"
#include "tests/support/service/running.h"
#include "tests/support/sysfs/fake_sysfs.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

constexpr const char* kPf0 = "0000:43:00.0";
constexpr const char* kPf1 = "0000:83:00.0";
constexpr const char* kFabric = "/etc/railhead/fabric.json";

class LldpServiceTest : public ::testing::Test {
 protected:
  LldpServiceTest() {
    sysfs_.AddPf({.address = kPf0, .netdev = "pf0", .rdma = "mlx5_0"});
    sysfs_.AddPf({.address = kPf1, .netdev = "pf1", .rdma = "mlx5_1"});
    for (const char* pf : {"pf0", "pf1"}) Carrier(pf, true);
    sysfs_.Write("/etc/railhead/node-name", "gpu-001\n");
    sysfs_.Write(kFabric, R"({"version": 1, "rails": [
      {"name": "rail0", "pf": "0000:43:00.0", "expectedSwitches": "leaf0*"},
      {"name": "rail1", "pf": "0000:83:00.0", "expectedSwitches": ["other", "leaf1"]},
      {"name": "rail2", "pf": "none"}]})");
  }
  ~LldpServiceTest() override { Stop(); }

  // A complaint is a failure of the test.
  void Start() {
    ::testing::internal::CaptureStderr();
    service_ = RunService<lldp::LldpService>(
        sysfs_.root(), kernel_, node_, lldp::NodeFeatures(sysfs_.root(), "", std::chrono::seconds(60), &log_),
        &log_);
    Update();
  }
  void Stop() {
    if (service_.IsEmpty()) return;
    service_ = {};
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.find("LLDP monitoring failed"), std::string::npos) << said;
  }
  // As railheadd's discovery: a fabric that is wrong changes nothing.
  void Update() { Update(Must(inventory::Discover(sysfs_.root(), {}))); }
  void Update(std::shared_ptr<const inventory::Inventory> inventory) {
    NodeSnapshot node;
    node.inventory = std::move(inventory);
    node.of_fabric = true;
    const auto fabric = ReadFabric(sysfs_.root(), kFabric);
    if (!fabric) return;
    node.fabric = std::make_shared<const Fabric>(**fabric);
    node.pf_of_rail = resources::PfsOfRails(*node.fabric, *node.inventory);
    node_.Set(std::move(node));
  }
  lldp::LldpReport Report() { return *service_->report().Get(); }
  void Carrier(const std::string& pf, bool up) {
    sysfs_.Write("/sys/class/net/" + pf + "/carrier", up ? "1\n" : "0\n");
  }
  lldp::RailNeighbor Rail(const std::string& rail) {
    const lldp::LldpReport report = Report();
    const lldp::RailNeighbor* found = report.Find(rail);
    return found == nullptr ? lldp::RailNeighbor{} : *found;
  }
  std::string SwitchOf(const std::string& rail) {
    const lldp::RailNeighbor found = Rail(rail);
    return found.neighbor ? found.neighbor->neighbor.SwitchName() : "";
  }
  // The switch repeats its frame until it is received, since the listener may start later.
  bool Says(int number, const std::string& leaf) {
    return Holds([&] {
      wires_.Send(number, LldpFrameOf(leaf, "Ethernet4"));
      return SwitchOf("rail" + std::to_string(number)) == leaf;
    });
  }

  FakeSysfs sysfs_;
  Wires wires_{2};
  LinuxKernel kernel_{sysfs_.root()};
  Log log_{"warning"};
  Published<NodeSnapshot> node_;
  Running<lldp::LldpService> service_;
};

TEST_F(LldpServiceTest, FindsTheSwitchesOfTheRails) {
  Start();
  ASSERT_TRUE(Holds([&] { return Report().rails.size() == 3; }));
  EXPECT_EQ(Report().node, "gpu-001");
  EXPECT_EQ(Rail("rail0").cabling, lldp::Cabling::kUnknown);
  EXPECT_EQ(Rail("rail2").because, "this node has no PF for it");
  ASSERT_TRUE(Says(0, "leaf0"));
  ASSERT_TRUE(Says(1, "leaf1"));
  EXPECT_EQ(Rail("rail0").cabling, lldp::Cabling::kRight);
  EXPECT_EQ(Rail("rail1").neighbor->neighbor.Port(), "Ethernet4");
  EXPECT_EQ(Rail("rail1").pf, "pf1");
  EXPECT_TRUE(Holds([&] {
    const auto written = lldp::kLldpFile.Read(sysfs_.root());
    return written && *written && SaysTheSame(**written, Report());
  }));
}

TEST_F(LldpServiceTest, FindsCablesThatChangedPlaces) {
  Start();
  ASSERT_TRUE(Says(0, "leaf1"));
  ASSERT_TRUE(Says(1, "leaf0"));
  EXPECT_TRUE(Holds([&] { return Rail("rail0").because == "swapped with rail1"; }));
  EXPECT_EQ(Rail("rail1").cabling, lldp::Cabling::kWrong);
  // The fabric was wrong, not the cables.
  sysfs_.Write(
      kFabric,
      R"({"version": 1, "rails": [{"name": "rail0", "pf": "0000:43:00.0", "expectedSwitches": "leaf1"},
                                                    {"name": "rail1", "pf": "0000:83:00.0"}]})");
  Update();
  EXPECT_TRUE(Holds([&] { return Rail("rail0").cabling == lldp::Cabling::kRight; }));
  EXPECT_EQ(Rail("rail1").cabling, lldp::Cabling::kUnchecked);
  EXPECT_EQ(Report().rails.size(), 2U);
  sysfs_.Write(kFabric, "{");
  Update();
  ASSERT_TRUE(Says(1, "leaf0"));
  EXPECT_EQ(Report().rails.size(), 2U) << "a fabric that is wrong changes nothing";
}

TEST_F(LldpServiceTest, ADeadRailKeepsItsSwitchAndANewCableIsSeen) {
  Start();
  ASSERT_TRUE(Says(0, "leaf0"));
  Carrier("pf0", false);
  wires_.Unplug(0);
  Update();
  ASSERT_TRUE(Holds([&] { return !Rail("rail0").carrier; }));
  EXPECT_EQ(SwitchOf("rail0"), "leaf0");
  wires_.Plug(0);  // another device of that name
  Carrier("pf0", true);
  ASSERT_TRUE(Says(0, "leaf7"));
  EXPECT_EQ(Rail("rail0").others, std::vector<std::string>{});
  EXPECT_EQ(Rail("rail0").cabling, lldp::Cabling::kWrong);
}

TEST_F(LldpServiceTest, FollowsAPfThatIsRenamed) {
  Start();
  ASSERT_TRUE(Says(0, "leaf0"));
  LinkChange renamed;
  renamed.up = false;
  const auto route = OpenRoute(wires_.host());
  const int index = wires_.Near(0);
  Must(route->ChangeLink(index, renamed));
  renamed.up.reset();
  renamed.name = "ens1f0";
  Must(route->ChangeLink(index, renamed));
  BringUp(*route, index);
  auto inventory = std::make_shared<inventory::Inventory>(*Must(inventory::Discover(sysfs_.root(), {})));
  for (inventory::NicFunction& function : inventory->functions) {
    if (function.id == kPf0) function.pf_name = "ens1f0";
  }
  sysfs_.Write("/sys/class/net/ens1f0/carrier", "1\n");
  Update(inventory);
  ASSERT_TRUE(Says(0, "leaf00"));
  EXPECT_EQ(Rail("rail0").pf, "ens1f0");
}

TEST_F(LldpServiceTest, TheNextStartKnowsItAtOnce) {
  Start();
  ASSERT_TRUE(Says(0, "leaf0"));
  ASSERT_TRUE(Holds([&] {
    const auto written = lldp::kLldpFile.Read(sysfs_.root());
    return written && *written && SaysTheSame(**written, Report());
  }));
  Stop();
  Start();
  EXPECT_TRUE(Holds([&] { return SwitchOf("rail0") == "leaf0"; })) << "without a frame";
  // The report omits a PF that has disappeared.
  Update(std::make_shared<inventory::Inventory>());
  EXPECT_TRUE(Holds([&] { return SwitchOf("rail0").empty(); }));
}

// A flood of other frames on one rail does not hide the frames of the next rail.
TEST_F(LldpServiceTest, AFloodOnOneRailLeavesTheOtherHeard) {
  Start();
  std::atomic<bool> over{false};
  std::thread flood([&] {
    for (int i = 0; !over; ++i) wires_.Send(0, LldpFrameOf("flood" + std::to_string(i % 100), "p", 65535));
  });
  EXPECT_TRUE(Says(1, "leaf1"));
  over = true;
  flood.join();
  EXPECT_LE(Rail("rail0").others.size(), lldp::NeighborTable::kMost);
}

// Debian's lldpd as the switch.
class Lldpd {
 public:
  Lldpd(const NetNs& ns, const std::string& configuration) : socket_(temp_.directory() + "/lldpd.socket") {
    temp_.Write("/lldpd.conf", configuration);
    // lldpd gives its privileges up.
    std::filesystem::permissions(temp_.directory(), std::filesystem::perms(0755));
    process_.emplace(ProcessSpec{.arguments = {"/usr/sbin/lldpd", "-d", "-u", socket_, "-I", "swp0", "-O",
                                               temp_.directory() + "/lldpd.conf"},
                                 .ends_with_test = true,
                                 .in_child = [&] {
                                   if (::setns(ns.fd(), CLONE_NEWNET) != 0) ::_exit(127);
                                 }});
  }
  ~Lldpd() { (void)process_->Stop(); }
  Lldpd(const Lldpd&) = delete;
  Lldpd& operator=(const Lldpd&) = delete;

  [[nodiscard]] std::string log() const { return process_->out() + process_->err(); }

 private:
  TempRoot temp_;
  std::string socket_;
  std::optional<Process> process_;
};

TEST_F(LldpServiceTest, UnderstandsLldpd) {
  Start();
  // Set before its first frame: lldpd under a new name counts as another neighbor until the first one
  // expires.
  const Lldpd lldpd(wires_.the_switch(),
                    "configure system hostname leaf0.dc1\n"
                    "configure lldp tx-interval 1\n"
                    "configure ports swp0 lldp portidsubtype local Ethernet4 description \"to gpu-001\"\n");
  EXPECT_TRUE(Holds([&] { return SwitchOf("rail0") == "leaf0.dc1"; })) << SwitchOf("rail0") << lldpd.log();
  const lldp::RailNeighbor rail = Rail("rail0");
  ASSERT_TRUE(rail.neighbor);
  EXPECT_EQ(rail.neighbor->neighbor.port, "Ethernet4");
  EXPECT_EQ(rail.neighbor->neighbor.port_description, "to gpu-001");
  EXPECT_EQ(rail.neighbor->neighbor.ttl.count(), 4) << "four times the interval";
  EXPECT_TRUE(MacAddress::Parse(rail.neighbor->neighbor.chassis)) << rail.neighbor->neighbor.chassis;
  EXPECT_EQ(rail.cabling, lldp::Cabling::kRight);
}

}  // namespace
}  // namespace railhead::testing
