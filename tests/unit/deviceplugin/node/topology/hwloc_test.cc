// hwloc, which reads PCI trees in its own way (bridges' bus numbers from configuration
// space, locality from local_cpus), finds the same classes on every machine.
#include <gtest/gtest.h>
#include <hwloc.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "deviceplugin/node/topology/topology.h"
#include "tests/support/sysfs/machines.h"

namespace railhead::testing {
namespace {

class Hwloc {
 public:
  explicit Hwloc(const std::string& directory) {
    ::setenv("HWLOC_FSROOT", directory.c_str(), 1);
    ::setenv("HWLOC_COMPONENTS", "linux,stop", 1);
    EXPECT_EQ(::hwloc_topology_init(&topology_), 0);
    ::hwloc_topology_set_io_types_filter(topology_, HWLOC_TYPE_FILTER_KEEP_ALL);
    EXPECT_EQ(::hwloc_topology_load(topology_), 0);
  }
  Hwloc(const Hwloc&) = delete;
  Hwloc& operator=(const Hwloc&) = delete;
  ~Hwloc() { ::hwloc_topology_destroy(topology_); }

  [[nodiscard]] hwloc_obj_t Find(const PciAddress& address) const {
    return ::hwloc_get_pcidev_by_busid(topology_, address.domain, address.bus, address.device,
                                       address.function);
  }

  // By the bridges between the two: a switch is an upstream and a downstream port, and the
  // latter belongs to one side.
  [[nodiscard]] std::optional<PciPath> Between(const PciAddress& a, const PciAddress& b) const {
    hwloc_obj_t left = Find(a);
    hwloc_obj_t right = Find(b);
    if (left == nullptr || right == nullptr) return std::nullopt;
    hwloc_obj_t shared = SharedAncestor(left, right);
    if (shared->type == HWLOC_OBJ_BRIDGE && shared->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST)
      return PciPath::kPhb;
    if (shared->type == HWLOC_OBJ_BRIDGE) {
      const unsigned deeper = std::max(BridgesUpTo(left, shared), BridgesUpTo(right, shared));
      return deeper <= 1 ? PciPath::kPix : PciPath::kPxb;
    }
    hwloc_obj_t near_left = ::hwloc_get_non_io_ancestor_obj(topology_, left);
    hwloc_obj_t near_right = ::hwloc_get_non_io_ancestor_obj(topology_, right);
    const bool same = ::hwloc_bitmap_isequal(near_left->nodeset, near_right->nodeset) != 0;
    return same ? PciPath::kNode : PciPath::kSys;
  }

 private:
  // hwloc_get_common_ancestor_obj() goes by depth, which I/O objects do not have.
  static hwloc_obj_t SharedAncestor(hwloc_obj_t left, hwloc_obj_t right) {
    std::set<hwloc_obj_t> above;
    for (hwloc_obj_t at = left->parent; at != nullptr; at = at->parent) above.insert(at);
    while (!above.contains(right)) right = right->parent;
    return right;
  }

  static unsigned BridgesUpTo(hwloc_obj_t device, hwloc_obj_t ancestor) {
    unsigned bridges = 0;
    for (hwloc_obj_t at = device->parent; at != ancestor; at = at->parent) ++bridges;
    return bridges;
  }

  hwloc_topology_t topology_ = nullptr;
};

class HwlocTest : public ::testing::TestWithParam<MachineKind> {};

TEST_P(HwlocTest, SeesTheSame) {
  FakeSysfs sysfs;
  const FakeMachine machine = GetParam().make(sysfs);
  AddProcessors(sysfs, machine.numa_nodes);
  const auto inventory = inventory::Discover(sysfs.root(), {});
  ASSERT_TRUE(inventory);
  const auto read = topology::Topology::Read(sysfs.root(), **inventory, {});
  ASSERT_TRUE(read);
  const topology::Topology& topology = **read;
  const Hwloc hwloc(sysfs.directory());
  const auto& nics = topology.nics();
  const auto& accelerators = topology.accelerators();
  ASSERT_FALSE(nics.empty());
  ASSERT_FALSE(accelerators.empty());
  for (std::size_t i = 0; i < nics.size(); ++i) {
    for (std::size_t k = 0; k < accelerators.size(); ++k) {
      EXPECT_EQ(hwloc.Between(nics[i].address, accelerators[k].address), topology.NicToAccelerator(i, k))
          << nics[i].address.ToString() << " and " << accelerators[k].address.ToString();
    }
    for (std::size_t k = i + 1; k < nics.size(); ++k) {
      EXPECT_EQ(hwloc.Between(nics[i].address, nics[k].address), topology.NicToNic(i, k))
          << nics[i].address.ToString() << " and " << nics[k].address.ToString();
    }
  }
  for (std::size_t i = 0; i < accelerators.size(); ++i) {
    for (std::size_t k = i + 1; k < accelerators.size(); ++k) {
      EXPECT_EQ(hwloc.Between(accelerators[i].address, accelerators[k].address),
                topology.AcceleratorToAccelerator(i, k))
          << accelerators[i].address.ToString() << " and " << accelerators[k].address.ToString();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, HwlocTest, ::testing::ValuesIn(AllMachines()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace railhead::testing
