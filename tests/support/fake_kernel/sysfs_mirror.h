// Updates a FakeSysfs from a FakeState: network devices of the host, RDMA devices that the host sees,
// character devices (sysfs and /dev/infiniband), drivers.
// Threads: not thread-safe. The tree must outlive it.
#pragma once

#include <map>
#include <string>

#include "tests/support/fake_kernel/fake_state.h"
#include "tests/support/sysfs/fake_sysfs.h"

namespace railhead::testing {

class SysfsMirror {
 public:
  explicit SysfsMirror(FakeSysfs& sysfs) : sysfs_(sysfs) {}
  void Sync(FakeState& state);

 private:
  // The paths that the tree has to show: files with their content, links with their target.
  struct Tree {
    std::map<std::string, std::string> files;
    std::map<std::string, std::string> links;
    bool operator==(const Tree&) const = default;
  };
  std::string DevicePath(const std::string& bdf);
  void Show(FakeState& state, const FakeNetdev& netdev, Tree& tree);
  void Show(FakeState& state, const FakeRdma& rdma, Tree& tree);
  void RemoveOld(const Tree& wanted);

  FakeSysfs& sysfs_;
  Tree shown_;
  std::map<std::string, std::string> paths_;  // of devices by BDF: resolving one asks for each of its folders
};

}  // namespace railhead::testing
