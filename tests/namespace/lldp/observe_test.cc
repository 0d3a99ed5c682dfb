// What `railctl fabric suggest` hears of a node's switches on the real kernel.
#include "deviceplugin/tools/fabric_suggest/observe.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "netns/linux_kernel.h"
#include "tests/support/netns/wires.h"
#include "tests/support/sysfs/fake_sysfs.h"

namespace railhead::testing {
namespace {

using fabric_suggest::NodeObservation;

constexpr const char* kPf0 = "0000:43:00.0";
constexpr const char* kPf1 = "0000:83:00.0";
// Longer than any test: it ends when all PFs were heard.
constexpr std::chrono::seconds kUntilHeard{600};

class ObserveLldpTest : public ::testing::Test {
 protected:
  ObserveLldpTest() {
    sysfs_.AddPf({.address = kPf0, .netdev = "pf0", .rdma = "mlx5_0"});
    sysfs_.AddPf({.address = kPf1, .netdev = "pf1", .rdma = "mlx5_1"});
    sysfs_.Write("/etc/railhead/node-name", "gpu-001\n");
  }

  // What is observed while `act` is repeated.
  NodeObservation ObservedWhile(std::chrono::seconds listen, const std::function<void()>& act) {
    std::atomic<bool> over{false};
    std::thread acting([&] {
      while (!over) {
        act();
        std::this_thread::yield();
      }
    });
    auto observation = fabric_suggest::Observe(sysfs_.root(), kernel_, {.listen = listen});
    over = true;
    acting.join();
    return Must(std::move(observation));
  }
  static std::string SwitchOf(const NodeObservation& observation, std::size_t pf) {
    const auto& neighbor = observation.pfs.at(pf).neighbor;
    return neighbor ? neighbor->SwitchName() : "";
  }

  FakeSysfs sysfs_;
  Wires wires_{2};
  LinuxKernel kernel_{sysfs_.root()};
};

TEST_F(ObserveLldpTest, ListensUntilAllWereHeard) {
  Bytes all = LldpFrameOf("leaf0", "swp7");
  all.resize(all.size() - 2);  // without the TLV of the end
  all = all + LldpTlv(127, {0x00, 0x80, 0xc2, 1, 0, 100}) + LldpTlv(127, {0x00, 0x12, 0x0f, 4, 0x24, 0x00});
  const auto observation = ObservedWhile(kUntilHeard, [&] {
    wires_.Send(0, LldpFrame(LldpTlv(1, {4})));  // a damaged one
    wires_.Send(0, all);
    wires_.Send(1, LldpFrameOf("gone", "swp8", 0));  // a switch that ends
    wires_.Send(1, LldpFrameOf("leaf1", "swp8"));
  });
  ASSERT_EQ(observation.pfs.size(), 2U);
  EXPECT_EQ(SwitchOf(observation, 0), "leaf0");
  EXPECT_EQ(observation.pfs[0].neighbor->Port(), "swp7");
  EXPECT_EQ(observation.pfs[0].neighbor->port_vlan, 100);
  EXPECT_EQ(observation.pfs[0].neighbor->max_frame, 9216);
  EXPECT_EQ(SwitchOf(observation, 1), "leaf1");
  EXPECT_EQ(observation.notes, std::vector<std::string>{});
}

TEST_F(ObserveLldpTest, ASilentSwitchLeavesTheOtherHeard) {
  const auto observation =
      ObservedWhile(std::chrono::seconds(3), [&] { wires_.Send(1, LldpFrameOf("leaf1", "swp8")); });
  EXPECT_EQ(SwitchOf(observation, 0), "");
  EXPECT_EQ(SwitchOf(observation, 1), "leaf1");
}

TEST_F(ObserveLldpTest, WithoutACableNothingIsAwaited) {
  wires_.Unplug(0);
  const auto observation = ObservedWhile(kUntilHeard, [&] { wires_.Send(1, LldpFrameOf("leaf1", "swp8")); });
  EXPECT_EQ(SwitchOf(observation, 0), "");
  EXPECT_EQ(SwitchOf(observation, 1), "leaf1");
}

TEST_F(ObserveLldpTest, APfThatRailheaddListensOnIsNotAwaited) {
  lldp::LldpReport report{"gpu-001", std::chrono::system_clock::now(), {}};
  for (const char* device : {kPf0, kPf1}) {
    lldp::RailNeighbor rail;
    rail.rail = device == kPf0 ? "rail0" : "rail1";
    rail.device = device;
    report.rails.push_back(rail);
  }
  report.rails[0].neighbor.emplace();
  report.rails[0].neighbor->neighbor.chassis = "leaf5";
  report.rails[0].neighbor->neighbor.port = "swp1";
  Must(lldp::kLldpFile.Write(sysfs_.root(), report));
  const auto observation = Must(fabric_suggest::Observe(sysfs_.root(), kernel_, {.listen = kUntilHeard}));
  EXPECT_EQ(SwitchOf(observation, 0), "leaf5");
  EXPECT_EQ(SwitchOf(observation, 1), "") << "railheadd has heard nothing there either";
}

}  // namespace
}  // namespace railhead::testing
