// A node with two rails, whose PFs have no VFs yet, and the kernel that makes them.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "deviceplugin/services/provision/provisioner.h"
#include "tests/support/fake_kernel/fake_kernel.h"
#include "tests/support/sysfs/fake_sysfs.h"
#include "tests/unit/deviceplugin/services/provision/fake_control.h"

namespace railhead::testing {

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
  // What the PF and the VF's netdev on the host say; "" when there is no netdev.
  [[nodiscard]] std::string AdminMac(const std::string& pf, int vf);
  [[nodiscard]] const FakeNetdev* NetdevOf(const std::string& bdf) { return kernel_.state().OfFunction(bdf); }
  [[nodiscard]] std::string DriverOf(const std::string& bdf) const;
  [[nodiscard]] std::string Autoprobe(const std::string& pf) const;
  [[nodiscard]] std::string File(const std::string& path) const;
  // An attachment of the VF as ADD leaves it in the journal.
  void Attach(const std::string& vf, const std::string& pod);
  // kubelet has given the VF to a pod.
  void GiveOut(const std::string& vf, const std::string& uid);

  FakeSysfs sysfs_;
  Root root_ = sysfs_.root();
  FakeKernel kernel_{sysfs_};
  FakeControl control_{sysfs_, kernel_};
};

}  // namespace railhead::testing
