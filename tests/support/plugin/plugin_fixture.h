// A node with two rails on a fake kernel, and calls of the plugin on it.
//
// pf0 (rail0, VLAN 100) and pf1 (rail1, VLAN 200) have four VFs each; one pod has eth0. IPAM is test_ipam: it
// returns the address that the configuration names, and logs its calls. Tests of the plugin on other hardware
// override MakeNics().
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "cni/plugin/plugin.h"
#include "tests/support/fake_kernel/fake_kernel.h"
#include "tests/support/sysfs/fake_sysfs.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {

struct Call {
  std::string command = "ADD";
  std::string network = "rail0";
  std::string container = "c1";
  std::string ifname = "net1";
  std::string netns = {};   // "": the pod
  std::string config = {};  // fields of the network configuration, without braces
  std::string cni_version = "1.0.0";
  std::string args = {};  // CNI_ARGS
};

class PluginFixture : public ::testing::Test {
 protected:
  void SetUp() override;
  virtual void MakeNics();

  // "deviceID": VF `n` of pf0 (or `rail` 1: pf1), and an address by test_ipam.
  [[nodiscard]] std::string Device(int n = 0, int rail = 0) const;
  [[nodiscard]] std::string Ipam(const std::string& address = "10.100.0.10/24") const;
  [[nodiscard]] std::string Usual(int n = 0, int rail = 0) const;

  CniRequest Request(const Call& call);
  Result<std::string> Add(const Call& call);
  Result<void> Del(Call call);
  Result<void> Check(Call call);
  Result<void> Gc(const std::vector<ValidAttachment>& valid, Call call);
  Result<void> Status(const std::string& config);

  // State, files and addresses for comparison, without locks and empty directories.
  [[nodiscard]] std::string World();
  // Lines that are not in both, marked - and +; "" when nothing changed.
  [[nodiscard]] std::string ChangedSince(const std::string& before);
  [[nodiscard]] std::string Files() const;
  [[nodiscard]] std::string File(const std::string& path) const;
  // The commands that test_ipam got since the last call, as "ADD DEL".
  std::string IpamCalls();
  // The same with the interfaces: "ADD rail0, ADD rail1".
  std::string IpamLog();
  // The last configuration that test_ipam got with a command.
  [[nodiscard]] std::string IpamInput(const std::string& command) const;
  // "CONTAINER@IFNAME ..." between ADD and DEL.
  [[nodiscard]] std::string HeldAddresses() const;
  // test_ipam fails "COMMAND", or "COMMAND-IFNAME", from now on; "" ends that.
  void FailIpam(const std::string& command);
  void WriteFabric(const std::string& more = "");
  void Allocate(const std::vector<std::string>& devices, DeviceNodeMode device_nodes = DeviceNodeMode::kCdi,
                NcclConfigPolicy nccl_config = NcclConfigPolicy::kRequired);

  Link PodLink(const std::string& name = "net1", const std::string& ns = {});
  VfSettings Vf(int n, int rail = 0);
  std::string MakePod(const std::string& name);

  [[nodiscard]] std::string Programs() const { return programs_.directory() + "/bin"; }

  // Further permissions of the fabric for all networks of pods: ",...". Set it before WriteFabric().
  std::string permissions_;
  TempRoot programs_;
  TempRoot tree_{TempRoot::Where::kMemory};
  FakeSysfs sysfs_{tree_.directory()};
  FakeKernel kernel_{sysfs_};
  attachment::RailheadPlugin plugin_{sysfs_.root(), kernel_};
  std::vector<std::vector<std::string>> vfs_;
  std::string pod_;
};

}  // namespace railhead::testing
