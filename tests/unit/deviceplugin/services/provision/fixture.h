// A node with two rails, whose PFs have no VFs yet, and the kernel that makes them.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/services/provision/provisioner.h"
#include "deviceplugin/services/provision/vf_control.h"
#include "tests/support/fake_kernel/fake_kernel.h"
#include "tests/support/sysfs/fake_sysfs.h"

namespace railhead::testing {

// A VfControl that plays the kernel: VFs come and go in a FakeSysfs and a FakeKernel.
//
// The rules are sriov_numvfs_store in drivers/pci/iov.c (EBUSY to another count while there are VFs, ERANGE
// beyond totalvfs), pci_device_can_probe and driver_override. Without autoprobe only a VF with
// driver_override is bound. A VF's netdev takes the MAC that the PF has for it when the VF is bound.
// Nothing takes time: AwaitChange() performs one deferred change. Without one it reports that the deadline
// has passed.
// Threads: one. Both must outlive it.
class FakeControl final : public provision::VfControl {
 public:
  FakeControl(FakeSysfs& sysfs, FakeKernel& kernel) : sysfs_(sysfs), kernel_(kernel) {}

  // Gives the PF the attributes that FakeSysfs does not have.
  void AddPf(const std::string& pf, bool autoprobe = true);
  void AddDriver(const std::string& name) { sysfs_.Write("/sys/bus/pci/drivers/" + name + "/bind", ""); }
  // As if someone had bound it by hand.
  void BindTo(const std::string& vf, const std::string& driver);

  // Calls of that name ("SetVfCount") whose log line contains `text` fail, `times` of them.
  void Fail(const std::string& call, int error, const std::string& text = {}, int times = 1) {
    faults_[call] = {error, text, times};
  }
  void MakeAtMost(int vfs) { at_most_ = vfs; }
  // No driver takes this VF.
  void Refuse(int vf) { refused_.insert(vf); }
  // Bound VFs get their netdevs only while someone waits.
  void PutOff() { put_off_ = true; }
  // Is called before each call, with its log line.
  std::function<void(const std::string&)> before;

  [[nodiscard]] const std::vector<std::string>& log() const { return log_; }
  // The latest deadline that a caller has waited for.
  [[nodiscard]] Deadline latest_deadline() const { return latest_deadline_; }

  Result<void> SetVfCount(const PciAddress& pf, int count) override;
  Result<void> SetAutoprobe(const PciAddress& pf, bool on) override;
  Result<void> SetDriverOverride(const PciAddress& function, const std::string& driver) override;
  Result<void> Unbind(const PciAddress& function, const std::string& driver) override;
  Result<void> Probe(const PciAddress& function) override;
  bool AwaitChange(Deadline deadline) override;

 private:
  struct Fault {
    int error;
    std::string text;
    int times;
  };
  Result<void> Begin(const std::string& call, const std::string& what);
  [[nodiscard]] bool Autoprobe(const std::string& pf) const;
  void MakeVfs(const std::string& pf, int count);
  void RemoveVfs(const std::string& pf);
  void Bind(const std::string& vf);

  FakeSysfs& sysfs_;
  FakeKernel& kernel_;
  std::map<std::string, std::string> overrides_;
  std::map<std::string, Fault> faults_;
  std::set<int> refused_;
  std::vector<std::string> waiting_;
  std::vector<std::string> log_;
  int at_most_ = 65535;
  bool put_off_ = false;
  Deadline latest_deadline_;
};

inline constexpr const char* kPf0 = "0000:43:00.0";
inline constexpr const char* kPf1 = "0000:83:00.0";

class ProvisionFixture : public ::testing::Test {
 protected:
  void SetUp() override;

  // fabric.json with this object; both rails, rail1 with MTU 4200.
  [[nodiscard]] static provision::Provision Of(const std::string& provision);
  provision::VfsPlan Plan(const std::string& provision);
  // Waits for nothing: FakeControl has no time.
  provision::VfsOutcome Apply(const std::string& provision);
  // The outcome for rail0 alone.
  provision::PfOutcome Apply0(const std::string& provision);

  [[nodiscard]] std::vector<std::string> VfsOf(const std::string& pf) const;
  // The VF's MAC according to the PF and to its netdev on the host. "" without a netdev.
  [[nodiscard]] std::string AdminMac(const std::string& pf, int vf);
  [[nodiscard]] const FakeNetdev* NetdevOf(const std::string& bdf) { return kernel_.state().OfFunction(bdf); }
  [[nodiscard]] std::string DriverOf(const std::string& bdf) const;
  [[nodiscard]] std::string Autoprobe(const std::string& pf) const;
  [[nodiscard]] std::string File(const std::string& path) const;
  // The journal entry that ADD writes for an attachment of the VF.
  void Attach(const std::string& vf, const std::string& pod);
  // kubelet has given the VF to a pod.
  void GiveOut(const std::string& vf, const std::string& uid);

  FakeSysfs sysfs_;
  Root root_ = sysfs_.root();
  FakeKernel kernel_{sysfs_};
  FakeControl control_{sysfs_, kernel_};
};

}  // namespace railhead::testing
