#include "deviceplugin/node/resources/resource_pool.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "deviceplugin/node/resources/fabric_resources.h"
#include "deviceplugin/node/resources/slots.h"
#include "tests/support/daemon/two_rails.h"

namespace railhead::testing {
namespace {

class PoolsTest : public TwoRails {};

TEST_F(PoolsTest, TheDefaultIsOneResourceOverAllRails) {
  const auto pools = PoolsOf(TwoRailFabric());
  ASSERT_EQ(pools.size(), 1U);
  EXPECT_EQ(pools[0]->spec.resource, "railhead.io/roce");
  EXPECT_EQ(pools[0]->spec.nccl_config, NcclConfigPolicy::kRequired);
  EXPECT_EQ(pools[0]->spec.device_nodes, DeviceNodeMode::kCdi);
  std::vector<std::string> expected = vfs0_;
  expected.insert(expected.end(), vfs1_.begin(), vfs1_.end());
  EXPECT_EQ(IdsOf(*pools[0]), expected);
  EXPECT_EQ(pools[0]->Find(vfs0_[0])->rail, 0);
  EXPECT_EQ(pools[0]->Find(vfs1_[0])->rail, 1);
}

TEST_F(PoolsTest, RailsAreFoundByNameAddressAndPosition) {
  const auto pools = PoolsOf(R"({"version": 1, "rails": [
      {"name": "a", "pf": 1, "subnet": "10.0.0.0/24", "nodeBlock": 26},
      {"name": "b", "pf": ["nothing", "0000:43:00.0", "pf1"], "subnet": "10.0.1.0/24", "nodeBlock": 26}]})");
  ASSERT_EQ(pools.size(), 1U);
  ASSERT_NE(pools[0]->Find(vfs0_[0]), nullptr);
  EXPECT_EQ(pools[0]->Find(vfs0_[0])->rail, 1);
}

TEST_F(PoolsTest, OfAlternativesOnlyTheFirstThatTheNodeHas) {
  const auto pools = PoolsOf(R"({"version": 1, "rails": [
      {"name": "a", "pf": ["pf1", "pf0"], "subnet": "10.0.0.0/24", "nodeBlock": 26}]})");
  ASSERT_EQ(pools.size(), 1U);
  EXPECT_EQ(IdsOf(*pools[0]), vfs1_);
}

TEST_F(PoolsTest, AnAbsentRailIsReportedAndSelectsNothing) {
  const auto fabric = ParseFabric(R"({"version": 1, "rails": [
      {"name": "gone", "pf": "pf9", "subnet": "10.0.0.0/24", "nodeBlock": 26}]})",
                                  "fabric.json");
  ASSERT_TRUE(fabric) << Describe(fabric.error());
  const auto inventory = Discover();
  const auto resources = resources::ResourcesOfFabric(*fabric, *inventory);
  ASSERT_TRUE(resources);
  EXPECT_EQ(resources->absent_rails, std::vector<std::string>{"gone"});
  const auto pools = BuildPools(resources->specs, *inventory);
  ASSERT_EQ(pools.size(), 1U) << "the resource exists, with no device";
  EXPECT_TRUE(pools[0]->members.empty());
}

TEST_F(PoolsTest, MountIsRefusedForSoftRoce) {
  const auto fabric = ParseFabric(R"({"version": 1, "rails": [
      {"name": "a", "pf": "pf0", "subnet": "10.0.0.0/24", "nodeBlock": 26, "softRoce": true}],
      "pools": [{"resource": "railhead.io/roce", "rails": ["a"], "deviceNodes": "mount"}]})",
                                  "fabric.json");
  // Either reader may be the one that refuses.
  if (!fabric) {
    EXPECT_NE(fabric.error().message.find("/pools/0"), std::string::npos) << fabric.error().message;
    return;
  }
  const auto resources = resources::ResourcesOfFabric(*fabric, *Discover());
  ASSERT_FALSE(resources);
  EXPECT_NE(resources.error().message.find("/pools/0/deviceNodes"), std::string::npos);
}

TEST_F(PoolsTest, APfThatTheHostNeedsIsInNoPool) {
  const auto fabric = ParseFabric(TwoRailFabric(), "fabric.json");
  ASSERT_TRUE(fabric);
  const auto inventory = Discover({{{"pf0v1", "carries its address"}}});
  const auto resources = resources::ResourcesOfFabric(*fabric, *inventory);
  ASSERT_TRUE(resources);
  const auto pools = BuildPools(resources->specs, *inventory);
  EXPECT_EQ(pools[0]->Find(vfs0_[1]), nullptr);
  EXPECT_NE(pools[0]->Find(vfs0_[0]), nullptr);
}

class PfPoolsTest : public TwoRails {
 protected:
  PfPoolsTest() : TwoRails(0) {}
};

TEST_F(PfPoolsTest, WholePfsAreGivenOutUnlessTheHostNeedsThemOrTheyHaveVfs) {
  const std::string text = TwoRailFabric(
      R"(, "pools": [{"resource": "railhead.io/pf", "rails": ["rail0", "rail1"], "device": "pf"}])");
  EXPECT_EQ(IdsOf(*PoolsOf(text).front()), (std::vector<std::string>{kPf0, kPf1}));
  const auto fabric = ParseFabric(text, "fabric.json");
  ASSERT_TRUE(fabric);
  const auto inventory = Discover({{{"pf0", "carries its address"}}});
  EXPECT_EQ(
      IdsOf(*BuildPools(resources::ResourcesOfFabric(*fabric, *inventory).value().specs, *inventory).front()),
      (std::vector<std::string>{kPf1}));
  (void)sysfs_.AddVfs(kPf1, 1);
  EXPECT_EQ(IdsOf(*PoolsOf(text).front()), (std::vector<std::string>{kPf0}));
}

TEST(ResourceName, IsWhatKubernetesTakes) {
  for (const char* good : {"railhead.io/roce", "intel.com/sriov_net-A.1", "a/b"}) {
    EXPECT_TRUE(resources::CheckResourceName(good)) << good;
  }
  for (const char* bad :
       {"roce", "/roce", "railhead.io/", "Railhead.io/x", "kubernetes.io/x", "a.kubernetes.io/x",
        "railhead.io/-x", "railhead.io/x_", "railhead..io/x", "railhead.io/a/b", "rail head/x"}) {
    EXPECT_FALSE(resources::CheckResourceName(bad)) << bad;
  }
}

// Slots as kubelet sees them: paired with devices, whatever devices slots were bound to.

class SlotsTest : public TwoRails {
 protected:
  [[nodiscard]] std::shared_ptr<const resources::ResourcePool> Devices() const {
    return Pool(R"(, "binding": "late")");
  }

  // NUMA node -> slots that are not bound.
  static std::map<int, int> FreePerNode(const resources::ResourcePool& slots,
                                        const resources::BoundSlots& bound) {
    std::map<int, int> free;
    for (const resources::PoolMember& member : slots.members) {
      if (!bound.contains(member.function.id)) ++free[member.function.numa_node.value_or(-1)];
    }
    return free;
  }
};

TEST_F(SlotsTest, OneForEachDeviceOnItsNode) {
  const auto devices = Devices();
  ASSERT_TRUE(devices->spec.late);
  const auto slots = SlotPool(*devices, {});
  ASSERT_EQ(slots->members.size(), 8U);
  std::set<std::string> ids;
  for (const resources::PoolMember& member : slots->members) {
    EXPECT_LE(member.function.id.size(), 63U) << "what kubelet takes";
    const std::string node = "-n" + std::to_string(*member.function.numa_node) + "-";
    EXPECT_NE(member.function.id.find(node), std::string::npos) << member.function.id;
    ids.insert(member.function.id);
  }
  EXPECT_EQ(ids.size(), 8U);
  EXPECT_EQ(IdsOf(*SlotPool(*devices, {})), IdsOf(*slots)) << "the same every time";
}

// kubelet's checkpoint keeps the names, so no release may change them. Another program computed these.
TEST_F(SlotsTest, NamesAreThoseOfEarlierReleases) {
  const auto devices = Devices();
  ASSERT_EQ(devices->spec.resource, "railhead.io/roce");
  const auto names = IdsOf(*SlotPool(*devices, {}));
  EXPECT_EQ(names.front(), "slot-78ad8de3-n0-000");
  EXPECT_EQ(names.back(), "slot-78ad8de3-n1-003");
}

TEST_F(SlotsTest, NamesOfTwoResourcesDiffer) {
  const auto pools = PoolsOf(TwoRailFabric(
      R"(, "pools": [{"resource": "a.io/roce", "rails": ["rail0"], "binding": "late"},
                     {"resource": "b.io/roce", "rails": ["rail1"], "binding": "late"}])"));
  ASSERT_EQ(pools.size(), 2U);
  const auto a = IdsOf(*SlotPool(*pools[0], {}));
  for (const std::string& id : IdsOf(*SlotPool(*pools[1], {})))
    EXPECT_EQ(std::count(a.begin(), a.end(), id), 0) << id;
}

// A slot of node 0 was bound to a device of node 1. So one of node 1's slots counts for node 0 now.
TEST_F(SlotsTest, FreeSlotsPerNodeAreFreeDevicesPerNode) {
  const auto devices = Devices();
  const std::string slot = SlotPool(*devices, {})->members.front().function.id;
  const resources::BoundSlots bound = {{slot, vfs1_[2]}};
  const auto slots = SlotPool(*devices, bound);
  ASSERT_EQ(slots->members.size(), 8U);
  EXPECT_EQ(slots->Find(slot)->function.address.ToString(), vfs1_[2]);
  EXPECT_EQ(FreePerNode(*slots, bound), (std::map<int, int>{{0, 4}, {1, 3}}));
}

TEST_F(SlotsTest, ASlotWhoseDeviceIsGoneIsNotListed) {
  const auto devices = Devices();
  const std::string slot = SlotPool(*devices, {})->members.front().function.id;
  const auto slots = SlotPool(*devices, {{slot, "0000:ff:00.1"}});
  EXPECT_EQ(slots->Find(slot), nullptr);
  EXPECT_EQ(slots->members.size(), 7U);
}

// The pool no longer has devices on the NUMA node of a bound slot's name. The slot's device is still in a
// pod, so one slot less is free.
TEST_F(SlotsTest, ABoundSlotThatThePoolWouldNotNameNow) {
  const auto both = Devices();
  const std::string slot = SlotPool(*both, {})->members.front().function.id;
  ASSERT_NE(slot.find("-n0-"), std::string::npos) << slot;
  const auto pools = PoolsOf(TwoRailFabric(
      R"(, "pools": [{"resource": "railhead.io/roce", "rails": ["rail1"], "binding": "late"}])"));
  ASSERT_EQ(pools.at(0)->spec.resource, both->spec.resource);
  const resources::BoundSlots bound = {{slot, vfs1_[0]}};
  const auto slots = SlotPool(*pools[0], bound);
  ASSERT_EQ(slots->members.size(), 4U);
  ASSERT_NE(slots->Find(slot), nullptr);
  EXPECT_EQ(slots->Find(slot)->function.address.ToString(), vfs1_[0]);
  EXPECT_EQ(FreePerNode(*slots, bound), (std::map<int, int>{{1, 3}}));
  // The pool does not take another resource's slot.
  EXPECT_EQ(SlotPool(*pools[0], {{"slot-00000000-n1-000", vfs1_[0]}})->members.size(), 4U);
}

TEST_F(SlotsTest, Properties) {
  std::mt19937 random(7);
  const auto devices = Devices();
  const auto names = IdsOf(*SlotPool(*devices, {}));
  for (int round = 0; round < 500; ++round) {
    auto order = IdsOf(*devices);
    std::shuffle(order.begin(), order.end(), random);
    resources::BoundSlots bound;
    const std::size_t count = random() % (names.size() + 1);
    auto shuffled = names;
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    for (std::size_t i = 0; i < count; ++i) bound[shuffled[i]] = order[i];
    const auto slots = SlotPool(*devices, bound);
    ASSERT_EQ(IdsOf(*slots), names) << "kubelet never sees a slot come or go";
    std::map<int, int> free_devices;
    for (std::size_t i = count; i < order.size(); ++i)
      ++free_devices[*devices->Find(order[i])->function.numa_node];
    ASSERT_EQ(FreePerNode(*slots, bound), free_devices);
    std::set<std::string> paired;
    for (const resources::PoolMember& member : slots->members)
      paired.insert(member.function.address.ToString());
    ASSERT_EQ(paired.size(), names.size()) << "no device twice";
    for (const auto& [slot, device] : bound)
      ASSERT_EQ(slots->Find(slot)->function.address.ToString(), device);
  }
}

}  // namespace
}  // namespace railhead::testing
