// Slots as kubelet sees them: paired with devices, whatever was bound where.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "deviceplugin/node/resources/resource_pool.h"
#include "tests/support/daemon/two_rails.h"

namespace railhead::testing {
namespace {

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

// kubelet's checkpoint keeps the names, so no release may change them. Computed by another program.
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

// A slot of node 0 was bound to a device of node 1: one of node 1's slots is on node 0 now.
TEST_F(SlotsTest, FreeSlotsPerNodeAreFreeDevicesPerNode) {
  const auto devices = Devices();
  const std::string slot = SlotPool(*devices, {})->members.front().function.id;
  const resources::BoundSlots bound = {{slot, vfs1_[2]}};
  const auto slots = SlotPool(*devices, bound);
  ASSERT_EQ(slots->members.size(), 8U);
  EXPECT_EQ(slots->Find(slot)->function.address.ToString(), vfs1_[2]);
  EXPECT_EQ(FreePerNode(*slots, bound), (std::map<int, int>{{0, 4}, {1, 3}}));
}

TEST_F(SlotsTest, ASlotWhoseDeviceIsGoneIsNotTold) {
  const auto devices = Devices();
  const std::string slot = SlotPool(*devices, {})->members.front().function.id;
  const auto slots = SlotPool(*devices, {{slot, "0000:ff:00.1"}});
  EXPECT_EQ(slots->Find(slot), nullptr);
  EXPECT_EQ(slots->members.size(), 7U);
}

// The pool has lost the node that a bound slot has its name of: its device is in a pod all the
// same, and one slot less is free.
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
  // Another resource's slot is none of this pool's.
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
