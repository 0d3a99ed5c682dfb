// Addresses without an owner: railheadd gives them back when they are old enough.
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "cni/state/conflict_log.h"
#include "ipam/store/held_addresses.h"
#include "ipam/store/ledger.h"
#include "ipam/store/store.h"
#include "ipam/store/store_errors.h"
#include "tests/support/daemon/reconciler_fixture.h"

namespace railhead::testing {
namespace {

using std::chrono::seconds;

class AddressTest : public ReconcilerFixture {
 protected:
  void SetUp() override {
    ReconcilerFixture::SetUp();
    std::filesystem::create_directories(Path("/var/lib/cni/results"));
  }
  // An address that was given `age` ago; by the wall clock, `wall_age`.
  void Give(const std::string& container, seconds age, const std::string& network = "rails",
            const std::string& ifname = "net1", std::optional<seconds> wall_age = {}) {
    auto store = ipam::AddressStore::Open(sysfs_.root());
    ASSERT_TRUE(store) << Describe(store.error());
    const auto ranges = ipam::RangeSet::Make({*IpPrefix::Parse("10.0.0.0/24"), {}, {}, {}});
    const ipam::AddressPool pool{"10.0.0.0/24", *ranges, seconds(0)};
    auto given = store->Allocate({network, container, ifname}, pool);
    ASSERT_TRUE(given) << Describe(given.error());
    const auto aged = store->Transact([&](ipam::LmdbTxn& txn, const ipam::ClockReading& now) -> Result<bool> {
      // The store's clock starts at 0: set to a time at which there can be an address so old.
      constexpr std::uint64_t kStartMs = 100'000'000;
      ipam::StoreHeader header = RH_TRY(ReadHeader(txn));
      const std::uint64_t moved_ms = header.store_ms < kStartMs ? kStartMs : 0;
      header.store_ms += moved_ms;
      given->since_ms += moved_ms - static_cast<std::uint64_t>(age.count()) * 1000;
      given->wall_seconds = now.wall_seconds - wall_age.value_or(age).count();
      RH_TRY(txn.Put(ipam::HeaderKey(), Encode(header)));
      RH_TRY(txn.Put(ipam::AddressKey(given->pool, given->address), Encode(*given)));
      return true;
    });
    ASSERT_TRUE(aged) << Describe(aged.error());
  }
  std::string Held() {
    std::string text;
    const auto held = ipam::ListHeld(sysfs_.root());
    if (!held) return Describe(held.error());
    for (const auto& record : held->records) text += record.owner.container + " ";
    return text;
  }
  static constexpr seconds kOld{601};
};

TEST_F(AddressTest, OfNobodyAreReleasedWhenTheyAreOld) {
  Give("c-young", seconds(300));
  Give("c-old", kOld);
  Give("c-old-links", kOld, "rails", "net1/rail0");
  const std::string actions = Did();
  EXPECT_NE(actions.find("of c-old/rails@net1: no attachment has it"), std::string::npos) << actions;
  EXPECT_EQ(Held(), "c-young ");
  EXPECT_EQ(Did(), "");
}

// Each pass reports new hosts whose answers ADDs ignored, and which pod each is.
TEST_F(AddressTest, APassNamesThePodThatAnswersForManyAddresses) {
  ASSERT_TRUE(Add(AllRails()));
  const Journal journal(sysfs_.root());
  auto entry = journal.Find({"rails", "c1", "net1"});
  ASSERT_TRUE(entry && *entry);
  (*entry)->cni_args = {{"K8S_POD_NAMESPACE", "jobs"}, {"K8S_POD_NAME", "liar"}};
  ASSERT_TRUE(journal.Write(**entry));
  reconcile::Reconciler reconciler(sysfs_.root(), kernel_, reconcile::SinglePass());
  ConflictRecord record{{"rails", "c2", "net1"}, Bdf(0, 1), *IpAddress::Parse("10.0.0.9"), {}, {}, {}, true};
  const auto log = [&](const MacAddress& source, int times) {
    for (int i = 0; i < times; ++i) {
      record.source = record.mac = source;
      record.boottime = BoottimeNow() + std::chrono::milliseconds(1 + i);
      LogConflict(sysfs_.root(), record);
    }
  };
  log((*entry)->devices.at(1).before.mac, 2);
  const auto report = reconciler.Run();
  ASSERT_EQ(report.conflict_sources.size(), 1U);
  EXPECT_EQ(report.conflict_sources[0].pod, "jobs/liar");
  EXPECT_EQ(report.conflict_sources[0].answers, 2U);
  EXPECT_TRUE(reconciler.Run().conflict_sources.empty()) << "told already";
  record.ignored = false;
  log(*MacAddress::Parse("02:00:00:00:00:07"), 1);
  EXPECT_TRUE(reconciler.Run().conflict_sources.empty()) << "a conflict is ADD's to tell";
}

// A wall clock that was set does not show how long an ADD has run.
TEST_F(AddressTest, AnAddressIsAsOldAsTheStoresClockSays) {
  constexpr seconds kDay(86'400);
  Give("c-young", seconds(300), "rails", "net1", kDay);
  Give("c-old", kOld, "rails", "net1", -kDay);
  Did();
  EXPECT_EQ(Held(), "c-young ");
}

TEST_F(AddressTest, OfAttachmentsStay) {
  ASSERT_TRUE(Add(AllRails()));
  Give("c1", kOld, "rails", "net1/rail0");
  Give("c1", kOld, "another-network");
  Did();
  EXPECT_EQ(Held(), "c1 ") << "the network counts too";
}

// railhead-ipam below another main plugin: the runtime's cache shows which containers live.
TEST_F(AddressTest, OfContainersThatARuntimeRemembersStay) {
  Give("c-results", kOld);
  Give("c-older-libcni", kOld);
  Give("c-multus", kOld);
  Give("c-multus-delegate", kOld);
  Give("c-forgotten", kOld);
  WriteFileAt(Path("/var/lib/cni/results/macvlan-c-results-eth1"), "{}");
  WriteFileAt(Path("/var/lib/cni/cache/results/rails-c-older-libcni-net1"), "{}");
  WriteFileAt(Path("/var/lib/cni/multus/c-multus"), "[]");
  WriteFileAt(Path("/var/lib/cni/multus/results/rails-c-multus-delegate-net1"), "{}");
  Did();
  EXPECT_EQ(Held(), "c-results c-older-libcni c-multus c-multus-delegate ");
}

TEST_F(AddressTest, WithoutAnyCacheNothingIsKnown) {
  Remove("/var/lib/cni");
  Give("c-old", kOld);
  EXPECT_EQ(Did(), "");
  EXPECT_EQ(Held(), "c-old ");
}

// An unreadable entry protects the addresses of its own container, and no others.
TEST_F(AddressTest, ADamagedEntryMayBeTheOwner) {
  Give("c-old", kOld);
  Give("c5", kOld);
  WriteFileAt(Path("/run/railhead/attachments/c5/rails@net1.json"), "{");
  EXPECT_TRUE(Once().Failed());
  EXPECT_EQ(Held(), "c5 ");
}

TEST_F(AddressTest, OfEarlierBootsAreReleasedByTheFirstPass) {
  Remove("/var/lib/cni");
  Give("c-before", seconds(0));
  WriteFileAt(Path("/proc/sys/kernel/random/boot_id"), "3333-4444\n");
  EXPECT_NE(Did().find("of c-before/rails@net1: is of an earlier boot"), std::string::npos);
  EXPECT_EQ(Held(), "");
}

// The first request for an address in a boot releases those of earlier boots, too.
TEST_F(AddressTest, OfEarlierBootsAreGoneBeforeAnyPass) {
  Remove("/var/lib/cni");
  Give("c-before", seconds(0));
  WriteFileAt(Path("/proc/sys/kernel/random/boot_id"), "3333-4444\n");
  Give("c-now", seconds(0));
  EXPECT_EQ(Held(), "c-now ");
  EXPECT_EQ(Did(), "");
  EXPECT_EQ(Held(), "c-now ");
}

TEST_F(AddressTest, ADamagedStoreIsReported) {
  WriteFileAt(Path("/var/lib/railhead/ipam/store.mdb"), std::string(9000, 'x'));
  const auto report = Once();
  EXPECT_TRUE(report.Failed());
  EXPECT_NE(ListActions(report).find("store.mdb"), std::string::npos) << ListActions(report);
}

}  // namespace
}  // namespace railhead::testing
