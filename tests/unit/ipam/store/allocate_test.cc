// What the reconciler may release.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "ipam/store/held_addresses.h"
#include "ipam/store/store.h"
#include "ipam/store/store_errors.h"
#include "tests/support/ipam/support.h"

namespace railhead::ipam {
namespace {

using testing::MakePool;
using testing::ScratchRoot;

class ReclaimTest : public ::testing::Test {
 protected:
  void Boot(const std::string& id) { scratch_.Write("/proc/sys/kernel/random/boot_id", id + "\n"); }
  void Add(const AddressOwner& owner) {
    auto store = AddressStore::Open(scratch_.root());
    ASSERT_TRUE(store) << Describe(store.error());
    ASSERT_TRUE(store->Allocate(owner, pool_));
  }
  Result<std::size_t> Release(const AddressOwner& owner) {
    return AddressStore::Open(scratch_.root())->Release(owner);
  }
  std::string Held() {
    const auto held = ListHeld(scratch_.root());
    if (!held) return Describe(held.error());
    std::string text = held->now.clocks.boot_id + ":";
    for (const AddressRecord& record : held->records) {
      text += " " + record.owner.container + "/" + record.owner.ifname + "@" + record.boot_id;
    }
    return text;
  }

  ScratchRoot scratch_;
  const AddressPool pool_ = MakePool("10.0.0.0/24", {}, 60);
};

TEST_F(ReclaimTest, WithoutAStoreNothingIsMade) {
  EXPECT_TRUE(ListHeld(scratch_.root())->records.empty());
  EXPECT_TRUE(ReleaseEarlierBoots(scratch_.root())->empty());
  EXPECT_TRUE(std::filesystem::is_empty(scratch_.path()));
}

TEST_F(ReclaimTest, EarlierBootsAreReleasedAndThisOneIsNot) {
  Boot("one");
  Add({"net", "a", "eth0"});
  Add(LinkOwner({"net", "b", "eth0"}, "rail0"));
  EXPECT_TRUE(ReleaseEarlierBoots(scratch_.root())->empty());
  EXPECT_EQ(Held(), "one: a/eth0@one b/eth0/rail0@one");
  Boot("two");
  const auto released = ReleaseEarlierBoots(scratch_.root());
  ASSERT_TRUE(released) << Describe(released.error());
  ASSERT_EQ(released->size(), 2U);
  EXPECT_EQ(released->front().owner.container, "a");
  EXPECT_EQ(released->front().boot_id, "one");
  EXPECT_TRUE(ReleaseEarlierBoots(scratch_.root())->empty());
  // They have a reuse delay like any others, so the next owner gets the next address.
  Add({"net", "d", "eth0"});
  EXPECT_EQ(Held(), "two: d/eth0@two");
  const auto store = AddressStore::Open(scratch_.root());
  EXPECT_EQ(store->Find({"net", "d", "eth0"})->front().address.ToString(), "10.0.0.3");
  EXPECT_EQ(store->Verify().value(), std::vector<std::string>{});
}

// Without the reconciler: the first write of a boot, by any call, releases the addresses of earlier boots.
TEST_F(ReclaimTest, TheFirstWriterOfABootReleasesWhatEarlierOnesHeld) {
  Boot("one");
  for (const char* container : {"a", "b", "c"}) Add({"net", container, "eth0"});
  Boot("two");
  EXPECT_EQ(Held(), "two: a/eth0@one b/eth0@one c/eth0@one") << "reading writes nothing";
  Add({"net", "d", "eth0"});
  EXPECT_EQ(Held(), "two: d/eth0@two");
  EXPECT_TRUE(ReleaseEarlierBoots(scratch_.root())->empty());
  Boot("three");
  EXPECT_EQ(Release({"net", "unknown", "eth0"}).value(), 0U);
  EXPECT_EQ(Held(), "three:");
  EXPECT_EQ(Release({"net", "d", "eth0"}).value(), 0U);
  const auto store = AddressStore::Open(scratch_.root());
  const auto events = store->Events(0).value();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].kind, AddressEventKind::kNewBoot);
  EXPECT_EQ(events[0].count, 3U);
  EXPECT_EQ(events[1].count, 1U);
  EXPECT_EQ(store->Verify().value(), std::vector<std::string>{});
}

// Some runtimes start the same containers again after a reboot, with the same IDs.
TEST_F(ReclaimTest, WhoAsksAgainAfterTheRebootKeepsItsAddress) {
  Boot("one");
  Add({"net", "a", "eth0"});
  Add({"net", "b", "eth0"});
  Boot("two");
  EXPECT_EQ(ReleaseEarlierBoots(scratch_.root())->size(), 2U);
  Add({"net", "a", "eth0"});
  ASSERT_EQ(Held(), "two: a/eth0@two");
  EXPECT_EQ(ListHeld(scratch_.root())->records.front().address.ToString(), "10.0.0.1");
  EXPECT_EQ(AddressStore::Open(scratch_.root())->Verify().value(), std::vector<std::string>{});
  // An address that the owner released itself is not kept for it.
  EXPECT_EQ(Release({"net", "a", "eth0"}).value(), 1U);
  Add({"net", "a", "eth0"});
  EXPECT_EQ(ListHeld(scratch_.root())->records.front().address.ToString(), "10.0.0.3");
}

// The first call of a boot releases an owner of an earlier boot. It reports the addresses that the owner
// held.
TEST_F(ReclaimTest, ReleasingWhatAnEarlierBootHeld) {
  Boot("one");
  for (const char* link : {"", "rail0"}) Add(LinkOwner({"net", "a", "eth1"}, link));
  Add({"net", "b", "eth1"});
  Boot("two");
  EXPECT_EQ(Release({"net", "a", "eth1"}).value(), 2U);
  EXPECT_EQ(Held(), "two:");
}

TEST_F(ReclaimTest, AnOwnerWithItsLinks) {
  Boot("one");
  for (const char* link : {"", "rail0", "rail1"}) Add(LinkOwner({"net", "a", "eth1"}, link));
  Add(LinkOwner({"net", "a", "eth10"}, "rail0"));
  EXPECT_EQ(Release({"net", "a", "eth1"}).value(), 3U);
  EXPECT_EQ(Held(), "one: a/eth10/rail0@one");
  EXPECT_EQ(Release({"net", "a", "eth1"}).value(), 0U);
}

TEST_F(ReclaimTest, ADamagedStoreIsAnError) {
  scratch_.Write("/var/lib/railhead/ipam/store.mdb", std::string(9000, 'x'));
  EXPECT_EQ(ListHeld(scratch_.root()).error().code, ErrorCode::kIo);
  EXPECT_EQ(ReleaseEarlierBoots(scratch_.root()).error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace railhead::ipam
