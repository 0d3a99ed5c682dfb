// Updates a FakeSysfs from a FakeState: network devices of the host, RDMA devices that the host sees,
// character devices (sysfs and /dev/infiniband), drivers.
// Threads: not thread-safe. The tree must outlive it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/fake_kernel/fake_state.h"
#include "tests/support/sysfs/fake_sysfs.h"

namespace railhead::testing {

class SysfsMirror {
 public:
  explicit SysfsMirror(FakeSysfs& sysfs) : sysfs_(sysfs) {}
  void Sync(FakeState& state);

 private:
  // What of the state shows. Most calls of a kernel change nothing of it.
  struct Facts {
    struct Netdev {
      std::string name, bdf;
      int index = 0;
      int mtu = 0;
      MacAddress mac;
      bool carrier = false;
      bool operator==(const Netdev&) const = default;
    };
    struct Rdma {
      std::string name, netdev, bdf;
      int uverbs = 0;
      bool rxe = false, visible = false, active = false;
      bool operator==(const Rdma&) const = default;
    };
    struct Driver {
      std::string bdf, name;
      bool operator==(const Driver&) const = default;
    };
    std::vector<Netdev> netdevs;
    std::vector<Rdma> rdmas;
    std::vector<Driver> drivers;
    bool operator==(const Facts&) const = default;
  };
  // The paths that the tree has to show: files with their content, links with their target.
  struct Tree {
    std::map<std::string, std::string> files;
    std::map<std::string, std::string> links;
  };
  static Facts FactsOf(FakeState& state);
  std::string DevicePath(const std::string& bdf);
  void Show(const Facts::Netdev& netdev, Tree& tree);
  void Show(const Facts::Rdma& rdma, Tree& tree);
  void RemoveOld(const Tree& wanted);

  FakeSysfs& sysfs_;
  Facts facts_;
  Tree shown_;
  std::map<std::string, std::string> paths_;  // of devices by BDF: resolving one asks for each of its folders
};

}  // namespace railhead::testing
