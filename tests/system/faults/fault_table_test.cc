// Faults of a node with railheadd as a process. For each fault the test checks which command reports it and
// which devices are out of use. No other device may be, and all must recover by themselves.
//
// Links, gateways, switches' frames and a second node are real packets on the kernel's veths. The parts of
// hardware (ports, counters) are a fake sysfs. The table in docs/operate/node-status.md has to equal this
// one.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "netns/base/text.h"
#include "tests/namespace/reachability/nodes.h"
#include "tests/support/daemon/daemon_process.h"
#include "tests/support/eventually.h"
#include "tests/support/kubelet/device_manager.h"
#include "tests/support/process.h"

namespace railhead::testing {
namespace {

constexpr const char* kFabric = R"({"version": 1, "reachability": {"intervalSeconds": 1},
  "health": {"intervalSeconds": 1, "vfSeconds": 1, "counterSeconds": 1,
    "link": {"downAfter": 1, "upAfter": 2}, "rdmaPort": {"downAfter": 1, "upAfter": 2},
    "aer": {"upAfter": 1, "counters": {"aer_dev_fatal": {"limit": 0, "seconds": 3}}},
    "errorRate": {"upAfter": 1, "counters": {"symbol_error": {"limit": 120, "seconds": 3}}}},
  "rails": [
    {"name": "rail0", "pf": "pf0", "expectedSwitches": "leaf0", "subnet": "10.100.0.0/24", "gateway": "10.100.0.254", "mtu": 1400,
     "probeAddresses": {"node0": "10.100.0.1", "node2": "10.100.0.3"}},
    {"name": "rail1", "pf": "pf1", "expectedSwitches": "leaf1", "subnet": "10.200.0.0/24", "gateway": "10.200.0.254"}]})";

constexpr const char* kSymbolErrors = "/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error";
constexpr const char* kAerFatal = "/sys/bus/pci/devices/0000:83:00.0/aer_dev_fatal";

// A node with two rails, and a neighbour on rail0: node2, whose PF is pf2.
class FaultyNode : public KubeletTest {
 protected:
  FaultyNode() {
    sysfs_.Write("/etc/railhead/node-name", "node0\n");
    sysfs_.Write("/etc/railhead/fabric.json", kFabric);
    Carrier(0, true);
    Carrier(1, true);
    sysfs_.Write(kSymbolErrors, "7\n");
    sysfs_.Write(kAerFatal, "TOTAL_ERR_FATAL 1\n");
    Heal();
    LinkChange up;
    up.up = true;
    Must(OpenRoute(wires_.host())->ChangeLink(wires_.Near(2), up));
    neighbour_.Round();
  }

  void Heal() {
    switch_.Drop(nullptr);
    switch_.Own([](int port, int, const IpAddress& address) {
      return (port == 0 && address == IpAddress::Parse("10.100.0.254")) ||
             (port == 1 && address == IpAddress::Parse("10.200.0.254"));
    });
  }
  // Changes the carrier in sysfs and on the wire.
  void Carrier(int pf, bool up) {
    const std::string n = std::to_string(pf);
    sysfs_.Write("/sys/class/net/pf" + n + "/carrier", up ? "1\n" : "0\n");
    sysfs_.Write("/sys/class/infiniband/mlx5_" + n + "/ports/1/state", up ? "4: ACTIVE\n" : "1: DOWN\n");
    LinkChange change;
    change.up = up;
    Must(OpenRoute(wires_.the_switch())->ChangeLink(wires_.Far(pf), change));
  }
  void VfPort(const std::string& state) {
    sysfs_.Write("/sys/class/infiniband/pf0_rdma1/ports/1/state", state + "\n");
  }
  void Cable(const std::string& of_0, const std::string& of_1) {
    wires_.Send(0, LldpFrameOf(of_0, "Ethernet4"));
    wires_.Send(1, LldpFrameOf(of_1, "Ethernet4"));
  }

  [[nodiscard]] std::string Railctl(const std::string& words) const {
    std::vector<std::string> command = {RAILCTL};
    for (const std::string& word : Split(words, ' ')) command.push_back(word);
    const auto output = RunProcess(command, {{"RAILHEAD_ROOT", sysfs_.directory()}}, "");
    return output.out + output.err;
  }
  // The devices that kubelet sees as unhealthy.
  std::set<std::string> OutOfUse() {
    const auto devices = kubelet_.Devices(kResource, 1, Soon());
    if (!devices) return {Describe(devices.error())};
    std::set<std::string> out;
    for (const SeenDevice& one : *devices) {
      if (!one.healthy) out.insert(one.id);
    }
    return out;
  }

  Wires wires_{3};
  LinuxKernel kernel_{Root()};
  FakeSwitch switch_{wires_, 3};
  ReachabilityNode neighbour_{kernel_, 2, 3, 8, false};
  DeviceManager kubelet_{directory_};
};

struct Fault {
  std::string what;
  std::function<void()> begin;
  std::function<void()> end;
  std::string command;            // of railctl; reports the fault
  std::string said;               // the text of its report
  std::string out;                // the devices out of use, as text
  std::set<std::string> devices;  // the same devices, as kubelet sees them
  std::string back;               // what brings it back
};

class FaultTableOfANode : public FaultyNode {
 protected:
  std::vector<Fault> Faults() {
    const auto rail0 = std::set<std::string>(vfs0_.begin(), vfs0_.end());
    const auto rail1 = std::set<std::string>(vfs1_.begin(), vfs1_.end());
    const auto heal = [this] { Heal(); };
    const auto drop = [this](auto rule) { return [this, rule] { switch_.Drop(rule); }; };
    return {
        {"the cable of rail0 is cut", [this] { Carrier(0, false); }, [this] { Carrier(0, true); }, "health",
         "PF pf0 (0000:43:00.0) has no carrier", "rail0", rail0, "carrier"},
        {"the switch forwards nothing of rail0 (wrong VLAN, dead leaf)",
         [this] { switch_.Drop([](const Passing& frame) { return frame.from == 0 || frame.to == 0; }); },
         heal,
         "reachability",
         "dead",
         "nothing",
         {},
         ""},
        {"the frames to the neighbour are lost",
         drop([](const Passing& frame) { return frame.to == 2 && frame.source_port != 0; }),
         heal,
         "reachability",
         "silent: node2",
         "nothing",
         {},
         ""},
        {"MTU black hole: no more than 1,300 bytes to the neighbour",
         drop([](const Passing& frame) { return frame.to == 2 && frame.size > 1314; }),
         heal,
         "reachability",
         "mtu: node2",
         "nothing",
         {},
         ""},
        {"the gateway of rail0 is silent, the neighbour is not",
         [this] {
           switch_.Own([](int port, int, const IpAddress& address) {
             return port == 1 && address == IpAddress::Parse("10.200.0.254");
           });
         },
         heal,
         "reachability",
         "gateway 10.100.0.254 does not answer",
         "nothing",
         {},
         ""},
        {"the cables of rail0 and rail1 have changed places",
         [this] { Cable("leaf1", "leaf0"); },
         [this] { Cable("leaf0", "leaf1"); },
         "lldp",
         "wrong: swapped with rail1",
         "nothing",
         {},
         ""},
        {"the RDMA port of one VF is down",
         [this] { VfPort("1: DOWN"); },
         [this] { VfPort("4: ACTIVE"); },
         "health",
         "of VF " + vfs0_[1] + " is DOWN",
         "this VF",
         {vfs0_[1]},
         "its port"},
        {"symbol errors on rail0", [this] { sysfs_.Write(kSymbolErrors, "207\n"); }, [] {}, "health",
         "symbol_error of PF pf0 (0000:43:00.0) rose by 200", "rail0", rail0, "a quiet counter"},
        {"a fatal PCIe error of rail1's NIC", [this] { sysfs_.Write(kAerFatal, "TOTAL_ERR_FATAL 2\n"); },
         [] {}, "health", "aer_dev_fatal of PF pf1 (0000:83:00.0) rose by 1", "rail1", rail1,
         "a quiet counter"},
        {"an operator drains rail1", [this] { (void)Railctl("drain rail1 --reason cable"); },
         [this] { (void)Railctl("undrain rail1"); }, "health", "PF pf1 (0000:83:00.0) is drained: cable",
         "rail1", rail1, "`railctl undrain`"},
    };
  }

  void Run(const Fault& fault) {
    const auto begin = std::chrono::steady_clock::now();
    const auto seconds = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    fault.begin();
    EXPECT_TRUE(Eventually([&] { return Railctl(fault.command).find(fault.said) != std::string::npos; }))
        << fault.what << ": railctl " << fault.command << " says\n"
        << Railctl(fault.command);
    EXPECT_TRUE(Eventually([&] { return OutOfUse() == fault.devices; }))
        << fault.what << ": out of use is " << Join({OutOfUse().begin(), OutOfUse().end()}, " ");
    const double found = seconds();
    // A fault that takes no device out of use must not do so at the next checks either.
    const auto looks = std::chrono::steady_clock::now() + std::chrono::seconds(3);
    while (fault.devices.empty() && std::chrono::steady_clock::now() < looks)
      ASSERT_TRUE(OutOfUse().empty()) << fault.what << ": " << Railctl("health");
    fault.end();
    EXPECT_TRUE(Eventually([&] { return IsWell(); })) << fault.what << ": " << Railctl("reachability");
    std::printf("%-65s found after %4.1f s, all well again after %4.1f s\n", fault.what.c_str(), found,
                seconds());
    rows_ << "| " << fault.what << " | `railctl " << fault.command << "`: " << fault.said << " | "
          << fault.out << " | " << fault.back << " |\n";
  }
  bool IsWell() {
    const std::string net = Railctl("reachability");
    const bool reached = net.find("rail1  pf1  reachable") != std::string::npos &&
                         net.find("degraded") == std::string::npos && net.find("dead") == std::string::npos &&
                         net.find("unknown") == std::string::npos;
    return reached && OutOfUse().empty() && Railctl("lldp").find("wrong") == std::string::npos;
  }

  std::ostringstream rows_;
};

TEST_F(FaultTableOfANode, IsWhatTheDocumentationSays) {
  ASSERT_TRUE(kubelet_.Start());
  const auto daemon = RunDaemon();
  Cable("leaf0", "leaf1");
  ASSERT_TRUE(kubelet_.Devices(kResource, 8, Soon())) << daemon->err();
  ASSERT_TRUE(Eventually([&] {
    if (Railctl("lldp").find("unknown") != std::string::npos) Cable("leaf0", "leaf1");
    return IsWell() && Railctl("lldp").find("unknown") == std::string::npos;
  })) << Railctl("lldp")
      << Railctl("reachability") << daemon->err();
  for (const Fault& fault : Faults()) Run(fault);
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
  std::ifstream file(DOCUMENTATION);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_NE(text.find(rows_.str()), std::string::npos) << "docs/operate/node-status.md should have\n"
                                                       << rows_.str();
}

}  // namespace
}  // namespace railhead::testing
