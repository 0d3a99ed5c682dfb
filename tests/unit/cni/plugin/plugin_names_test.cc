// Names of NICs, whatever pods call theirs.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "cni/attachment/return_names.h"
#include "cni/plugin/plugin.h"
#include "cni/state/displaced_names.h"
#include "tests/support/fake_kernel/fake_kernel.h"
#include "tests/support/rapidcheck.h"
#include "tests/support/sysfs/fake_sysfs.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

constexpr int kNics = 5;

// A node with some NICs, each with an alternative name as udev gives it, and at most one pod on each.
class NamesNode {
 public:
  NamesNode() {
    nics_ = kernel_.AddPf({.address = "0000:43:00.0", .netdev = "pf0"}, {.count = kNics, .netdev = "eth{n}"});
    for (int n = 0; n < kNics; ++n) {
      (void)kernel_.state().AddAltName(*Netdev(n), "enp67s0v" + std::to_string(n));
      names_.push_back("eth" + std::to_string(n));
      names_.push_back("enp67s0v" + std::to_string(n));
    }
    names_.insert(names_.end(), {"pf0x", "data0", SubstituteName(nics_[0]), SubstituteName(nics_[1])});
    kernel_.Sync();
    first_ = Names();
  }

  [[nodiscard]] bool HasPod(int nic) const { return pods_.contains(nic); }

  // One step; false: it does not fit the state.
  bool Attach(int nic) {
    if (HasPod(nic)) return false;
    const std::string container = "c" + std::to_string(++made_);
    const Pod pod{container, kernel_.AddNamespace(container), true};
    kernel_.state().AddNetdev(pod.netns, "eth0");  // the cluster network's, and the name of a NIC
    const auto added = plugin_.Add(Request("ADD", nic, pod));
    if (!added) RC_FAIL(Describe(added.error()));
    pods_[nic] = pod;
    return true;
  }
  bool Rename(int nic, std::size_t name) {
    FakeNetdev* netdev = InPod(nic);
    if (netdev == nullptr) return false;
    (void)kernel_.state().Change(*netdev, {.up = false});
    return kernel_.state().Change(*netdev, {.name = names_[name % names_.size()]}) == 0;
  }
  bool AddAltName(int nic, std::size_t name) {
    FakeNetdev* netdev = InPod(nic);
    return netdev != nullptr && kernel_.state().AddAltName(*netdev, names_[name % names_.size()]) == 0;
  }
  bool EndNamespace(int nic) {
    if (InPod(nic) == nullptr) return false;
    kernel_.RemoveNamespace(pods_.at(nic).netns);
    pods_.at(nic).lives = false;
    return true;
  }
  bool Detach(int nic) {
    if (!HasPod(nic)) return false;
    const Pod pod = pods_.at(nic);
    kernel_.state().Namespace(kHost)->uevents.clear();
    const auto deleted = plugin_.Del(Request("DEL", nic, pod));
    if (!deleted) RC_FAIL(Describe(deleted.error()));
    if (pod.lives) {
      CheckOneEvent(nic);
      kernel_.RemoveNamespace(pod.netns);
    }
    pods_.erase(nic);
    return true;
  }
  // Somebody on the host makes an interface of that name, or removes it.
  bool ToggleForeignNetdev(std::size_t name) {
    if (foreign_netdev_ != 0) {
      kernel_.state().RemoveNetdev(foreign_netdev_);
      foreign_netdev_ = 0;
    } else if (kernel_.state().Find(kHost, names_[name % names_.size()]) == nullptr) {
      foreign_netdev_ = kernel_.state().AddNetdev(kHost, names_[name % names_.size()]).id;
    } else {
      return false;
    }
    kernel_.Sync();
    return true;
  }
  void Reconcile() {
    const auto host = kernel_.OpenRoute(*kernel_.HostNetns());
    attachment::ReturnFreeNames(sysfs_.root(), **host, {});
  }

  // Removes the foreign interface, then ends all pods in ascending or descending order.
  void EndAll(bool backwards) {
    if (foreign_netdev_ != 0) ToggleForeignNetdev(0);
    for (int n = 0; n < kNics; ++n) Detach(backwards ? kNics - 1 - n : n);
  }
  void CheckAsFirst() {
    RC_ASSERT(Names() == first_);
    RC_ASSERT(ListDisplacedDevices(sysfs_.root())->empty());
  }
  // While a NIC is on the host without its name, a record states the name.
  void CheckNoneIsForgotten() {
    for (int n = 0; n < kNics; ++n) {
      const FakeNetdev* netdev = Netdev(n);
      if (HasPod(n) || netdev->ns != kHost || netdev->link.name == "eth" + std::to_string(n)) continue;
      const auto own = ReadDisplacedNames(sysfs_.root(), nics_[static_cast<std::size_t>(n)]);
      RC_ASSERT(own && *own && (*own)->name == "eth" + std::to_string(n));
    }
  }
  [[nodiscard]] bool HasDisplaced() { return !ListDisplacedDevices(sysfs_.root())->empty(); }

 private:
  struct Pod {
    std::string container;
    std::string netns;
    bool lives = true;
  };

  FakeNetdev* Netdev(int nic) { return kernel_.state().OfFunction(nics_[static_cast<std::size_t>(nic)]); }
  FakeNetdev* InPod(int nic) {
    const auto pod = pods_.find(nic);
    return pod != pods_.end() && pod->second.lives ? Netdev(nic) : nullptr;
  }
  // udev's rules and network managers of the host see the NIC come back once, and never a name of the pod.
  void CheckOneEvent(int nic) {
    std::vector<std::string> events;
    for (const FakeUevent& event : kernel_.state().Namespace(kHost)->uevents) {
      if (event.netdev == Netdev(nic)->id) events.push_back(event.text);
    }
    RC_ASSERT(events == std::vector<std::string>{"add " + Netdev(nic)->link.name});
  }
  CniRequest Request(const std::string& command, int nic, const Pod& pod) {
    CniRequest request;
    request.command = command;
    request.cni_version = "1.0.0";
    request.network = "net";
    request.container_id = pod.container;
    request.ifname = "net1";
    request.netns = pod.netns;
    request.config = R"({"cniVersion":"1.0.0","name":"net","type":"railhead","deviceID":")" +
                     nics_[static_cast<std::size_t>(nic)] +
                     R"(","ncclConfig":"off","ipam":{},"previousDelTimeoutSeconds":0,"conflictProbeMs":0})";
    return request;
  }
  // By device: its name and alternative names, sorted.
  std::map<std::string, std::vector<std::string>> Names() {
    std::map<std::string, std::vector<std::string>> names;
    for (int n = 0; n < kNics; ++n) {
      std::vector<std::string> all = Netdev(n)->link.alt_names;
      std::sort(all.begin(), all.end());
      all.insert(all.begin(), Netdev(n)->link.name);
      names[nics_[static_cast<std::size_t>(n)]] = std::move(all);
    }
    return names;
  }

  TempRoot tree_{TempRoot::Where::kMemory};
  FakeSysfs sysfs_{tree_.directory()};
  FakeKernel kernel_{sysfs_};
  attachment::RailheadPlugin plugin_{sysfs_.root(), kernel_};
  std::vector<std::string> nics_;
  std::vector<std::string> names_;  // that pods and other programs use
  std::map<std::string, std::vector<std::string>> first_;
  std::map<int, Pod> pods_;
  int made_ = 0;
  int foreign_netdev_ = 0;  // its id; 0: none
};

struct Step {
  int what;
  int nic;
  std::size_t name;
};

// RapidCheck prints a step by this.
std::ostream& operator<<(std::ostream& out, const Step& step) {
  return out << "{" << step.what << ", NIC " << step.nic << ", name " << step.name << "}";
}

void Take(NamesNode& node, const Step& step) {
  switch (step.what) {
    case 0:
    case 1:
      node.Attach(step.nic);
      break;
    case 2:
      node.Rename(step.nic, step.name);
      break;
    case 3:
      node.AddAltName(step.nic, step.name);
      break;
    case 4:
      node.EndNamespace(step.nic);
      break;
    case 5:
      node.Detach(step.nic);
      break;
    case 6:
      node.ToggleForeignNetdev(step.name);
      break;
    default:
      node.Reconcile();
      break;
  }
}

// Pods and the host choose any interface names, and pods and namespaces end in any order. In the end every
// NIC has exactly the names that it had at first.
TEST(HostNames, EveryNicGetsItsNamesBack) {
  int displaced = 0;
  EXPECT_TRUE(rc::check([&] {
    const auto steps = *rc::gen::container<std::vector<Step>>(
        rc::gen::build<Step>(rc::gen::set(&Step::what, rc::gen::inRange(0, 8)),
                             rc::gen::set(&Step::nic, rc::gen::inRange(0, kNics)),
                             rc::gen::set(&Step::name, rc::gen::inRange<std::size_t>(0, 14))));
    const bool backwards = *rc::gen::arbitrary<bool>();
    NamesNode node;
    for (int nic = 0; nic < kNics; ++nic) node.Attach(nic);
    for (const Step& step : steps) {
      Take(node, step);
      node.CheckNoneIsForgotten();
      if (node.HasDisplaced()) ++displaced;
    }
    node.EndAll(backwards);
    node.Reconcile();
    node.CheckAsFirst();
  }));
  EXPECT_GT(displaced, 10) << "names have to be in each other's way";
}

}  // namespace
}  // namespace railhead::testing
