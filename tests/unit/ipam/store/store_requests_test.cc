// Several addresses in one transaction, and releases of more than one owner.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ipam/store/store.h"
#include "tests/support/ipam/store_pages.h"
#include "tests/support/ipam/support.h"

namespace railhead::ipam {
namespace {

using testing::At;
using testing::MakePool;
using testing::OwnerNumber;
using testing::ScratchRoot;
using testing::StoreAt;
using testing::StoreBytes;

class RequestsTest : public ::testing::Test {
 protected:
  StoreAt Open() {
    auto store = StoreAt::Open(scratch_.root());
    EXPECT_TRUE(store) << Describe(store.error());
    return std::move(*store);
  }
  static std::vector<AddressRequest> Requests(const AddressOwner& owner,
                                              const std::vector<AddressPool>& pools) {
    std::vector<AddressRequest> requests;
    requests.reserve(pools.size());
    for (const AddressPool& pool : pools) {
      requests.push_back({LinkOwner(owner, "rail" + std::to_string(requests.size())), {pool}, {}, false});
    }
    return requests;
  }
  static std::string Text(const Result<std::vector<AddressRecord>>& records) {
    if (!records) return Describe(records.error());
    std::string text;
    for (const AddressRecord& record : *records) {
      text += record.owner.container + " " + record.owner.ifname + " " + record.address.ToString() + "\n";
    }
    return text;
  }
  std::string Held() {
    auto records = Open().List();
    std::erase_if(*records, [](const auto& record) { return record.state != AddressState::kHeld; });
    return Text(records);
  }
  void ExpectSound() { EXPECT_EQ(Open().Verify().value(), std::vector<std::string>{}); }

  ScratchRoot scratch_;
  const AddressPool a_ = MakePool("10.0.0.0/29", {}, 60);
  const AddressPool b_ = MakePool("10.0.1.0/29", {}, 60);
  const AddressPool tiny_ = MakePool("10.0.2.1/32", {}, 60);
};

TEST_F(RequestsTest, OneOfEachInOrderAndTheSameAgain) {
  const auto requests = Requests(OwnerNumber(1), {b_, a_, tiny_});
  const std::string wanted =
      "container-1 net1/rail0 10.0.1.1\ncontainer-1 net1/rail1 10.0.0.1\ncontainer-1 net1/rail2 10.0.2.1\n";
  EXPECT_EQ(Text(Open().Allocate(requests, At(0))), wanted);
  const std::string before = StoreBytes(scratch_.StorePath());
  EXPECT_EQ(Text(Open().Allocate(requests, At(5))), wanted);
  EXPECT_EQ(StoreBytes(scratch_.StorePath()), before) << "the second time there was nothing to write";
  ExpectSound();
}

TEST_F(RequestsTest, OnePoolForTwoLinks) {
  EXPECT_EQ(Text(Open().Allocate(Requests(OwnerNumber(1), {a_, a_}), At(0))),
            "container-1 net1/rail0 10.0.0.1\ncontainer-1 net1/rail1 10.0.0.2\n");
  ExpectSound();
}

TEST_F(RequestsTest, NoneWhenOnePoolIsExhausted) {
  ASSERT_TRUE(Open().Allocate(OwnerNumber(9), tiny_, At(0)));
  const auto given = Open().Allocate(Requests(OwnerNumber(1), {a_, b_, tiny_}), At(1));
  ASSERT_FALSE(given);
  EXPECT_EQ(given.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(given.error().message.rfind("rail2: no free address in 10.0.2.1 ", 0), 0U)
      << given.error().message;
  EXPECT_EQ(Held(), "container-9 net1 10.0.2.1\n");
  EXPECT_EQ(Open().Counters()->count(a_.name), 0U) << "only that the pool was exhausted is kept";
  EXPECT_EQ(Open().Allocate(OwnerNumber(2), a_, At(1))->address.ToString(), "10.0.0.1");
  ExpectSound();
}

// The address that a request left because of new ranges is back, too.
TEST_F(RequestsTest, NoneMovedWhenOnePoolIsExhausted) {
  ASSERT_TRUE(Open().Allocate(Requests(OwnerNumber(1), {a_}), At(0)));
  ASSERT_TRUE(Open().Allocate(OwnerNumber(9), tiny_, At(0)));
  const AddressPool moved = MakePool("10.0.0.0/29", {"10.0.0.4-10.0.0.6"}, 60);
  EXPECT_FALSE(Open().Allocate(Requests(OwnerNumber(1), {moved, tiny_}), At(1)));
  EXPECT_EQ(Text(Open().Find(OwnerNumber(1))), "container-1 net1/rail0 10.0.0.1\n");
  EXPECT_EQ(Text(Open().Allocate(Requests(OwnerNumber(1), {moved, b_}), At(1))),
            "container-1 net1/rail0 10.0.0.4\ncontainer-1 net1/rail1 10.0.1.1\n");
  ExpectSound();
}

TEST_F(RequestsTest, NamesThatAreTooLongTakeNothing) {
  auto requests = Requests(OwnerNumber(1), {a_, b_});
  requests[1].owner.network = std::string(500, 'n');
  EXPECT_EQ(Open().Allocate(requests, At(0)).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(Held(), "");
}

TEST_F(RequestsTest, TryingGivesAndWritesNothing) {
  ASSERT_TRUE(Open().Allocate(OwnerNumber(1), a_, At(0)));
  ASSERT_EQ(Open().Release(OwnerNumber(1), At(1)).value(), 1U);
  const std::string before = StoreBytes(scratch_.StorePath());
  EXPECT_TRUE(Open().TryAllocate(Requests(OwnerNumber(2), {a_, b_, tiny_}), At(1000)));
  EXPECT_TRUE(Open().TryAllocate({}, At(1000)));
  EXPECT_EQ(Open().TryAllocate(Requests(OwnerNumber(2), {a_, tiny_, tiny_}), At(1000)).error().code,
            ErrorCode::kExhausted);
  EXPECT_EQ(StoreBytes(scratch_.StorePath()), before);
}

// With one cooling down, one more is free only once its reuse delay is over.
TEST_F(RequestsTest, TryAllocateCountsAddressesThatCoolDown) {
  ASSERT_TRUE(Open().Allocate(OwnerNumber(1), tiny_, At(0)));
  ASSERT_TRUE(Open().Release(OwnerNumber(1), At(1)));
  EXPECT_FALSE(Open().TryAllocate(Requests(OwnerNumber(2), {tiny_}), At(60)));
  EXPECT_TRUE(Open().TryAllocate(Requests(OwnerNumber(2), {tiny_}), At(61)));
}

TEST_F(RequestsTest, ReleaseTakesTheLinksOfThisAttachmentOnly) {
  const AddressPool pool = MakePool("10.0.0.0/24", {}, 60);
  const AddressOwner eth1{"net0", "abc", "eth1"};
  const std::vector<AddressOwner> others{{"net0", "abc", "eth10"}, {"net0", "abc", "eth"},
                                         {"net0", "abcd", "eth1"}, {"net0", "ab", "eth1"},
                                         {"net", "abc", "eth1"},   {"net00", "abc", "eth1"}};
  for (const AddressOwner& owner : others) {
    ASSERT_TRUE(Open().Allocate(owner, pool, At(0)));
    ASSERT_TRUE(Open().Allocate(Requests(owner, {pool, pool}), At(0)));
  }
  const std::string before = Held();
  ASSERT_TRUE(Open().Allocate(eth1, pool, At(0)));
  ASSERT_TRUE(Open().Allocate(Requests(eth1, {pool, b_, pool}), At(0)));
  EXPECT_EQ(Open().Find(eth1)->size(), 4U);
  EXPECT_EQ(Open().Release(eth1, At(1)).value(), 4U);
  EXPECT_EQ(Held(), before);
  EXPECT_EQ(Open().Release(eth1, At(1)).value(), 0U);
  ExpectSound();
}

TEST_F(RequestsTest, ReleaseWhereTellsWhatItReleased) {
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Open().Allocate(OwnerNumber(i), a_, At(0)));
  ASSERT_TRUE(Open().Release(OwnerNumber(0), At(1)));
  std::vector<std::string> asked;
  const auto released = Open().ReleaseWhere(
      [&](const AddressRecord& held) {
        asked.push_back(held.owner.container);
        return held.owner.container != "container-2";
      },
      At(2));
  EXPECT_EQ(Text(released), "container-1 net1 10.0.0.2\ncontainer-3 net1 10.0.0.4\n");
  EXPECT_EQ(asked, (std::vector<std::string>{"container-1", "container-2", "container-3"}))
      << "only what is held is asked about";
  EXPECT_EQ(Held(), "container-2 net1 10.0.0.3\n");
  ExpectSound();
  const std::string before = StoreBytes(scratch_.StorePath());
  EXPECT_EQ(Text(Open().ReleaseWhere([](const AddressRecord&) { return false; }, At(3))), "");
  EXPECT_EQ(StoreBytes(scratch_.StorePath()), before);
}

class QuarantineTest : public RequestsTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Open().Allocate(Requests(OwnerNumber(1), {a_, b_}), At(0)));
    ASSERT_TRUE(Open().Quarantine(OwnerNumber(1), testing::Ip("10.0.1.1"), At(10)));
  }
};

TEST_F(QuarantineTest, TheAddressIsOutOfUseAndTheNextOneIsGiven) {
  EXPECT_EQ(Held(), "container-1 net1/rail0 10.0.0.1\n");
  EXPECT_EQ(Text(Open().Allocate(Requests(OwnerNumber(1), {a_, b_}), At(11))),
            "container-1 net1/rail0 10.0.0.1\ncontainer-1 net1/rail1 10.0.1.2\n");
  EXPECT_EQ(Open().Release(OwnerNumber(1), At(12)).value(), 2U) << "it is not its owner's any more";
  ExpectSound();
}

TEST_F(QuarantineTest, TheListTheCountersAndAnEventReportIt) {
  auto records = Open().List().value();
  std::erase_if(records, [](const auto& record) { return record.state != AddressState::kQuarantined; });
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].address.ToString(), "10.0.1.1");
  EXPECT_EQ(records[0].owner.ifname, "net1/rail1") << "who had it";
  EXPECT_EQ(records[0].until_ms - records[0].since_ms, 3'600'000U);
  EXPECT_EQ(Open().Counters().value()[b_.name].quarantined, 1U);
  const auto events = Open().Events(0).value();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, AddressEventKind::kQuarantined);
  EXPECT_EQ(events[0].address, testing::Ip("10.0.1.1"));
  EXPECT_EQ(events[0].ms, 3'600'000U);
}

// Whatever the pool's reuse delay: neither it nor a short pool frees the address earlier.
TEST_F(QuarantineTest, NothingButItsTimeEndsIt) {
  AddressPool only = MakePool(b_.name, {"10.0.1.1"}, 0);
  only.min_reuse_delay = std::chrono::seconds(0);
  const AddressRequest next{OwnerNumber(2), {only}, {}};
  const AddressRequest wanted{OwnerNumber(2), {only}, testing::Ip("10.0.1.1")};
  const auto refused = Open().Allocate({next}, At(3609));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("in use 0, cooling down 0, in quarantine 1"), std::string::npos)
      << refused.error().message;
  const auto busy = Open().Allocate({wanted}, At(3609));
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, ErrorCode::kBusy);
  EXPECT_NE(busy.error().message.find("is in quarantine for another 1 s: it was found in use at "),
            std::string::npos)
      << busy.error().message;
  ASSERT_TRUE(Open().Allocate({wanted}, At(3610)));
  ExpectSound();
  EXPECT_TRUE(Open().Quarantine(OwnerNumber(2), testing::Ip("10.0.1.1"), At(3611), std::chrono::seconds(5)));
  EXPECT_FALSE(Open().Allocate({next}, At(3615)));
  EXPECT_TRUE(Open().Allocate({next}, At(3616)));
  ExpectSound();
}

// Requests can quarantine at most a quarter of a pool, whatever its size.
TEST_F(RequestsTest, AQuarterOfAPoolIsInQuarantineAtMost) {
  for (int size = 1; size <= 40; size += 1 + size / 8) {
    SCOPED_TRACE(size);
    const std::string subnet = "10.7." + std::to_string(size) + ".";
    const AddressPool pool = MakePool(subnet + "0/24", {subnet + "1-" + subnet + std::to_string(size)}, 0);
    const auto quarantine_all = [&](std::uint64_t at) {
      int taken = 0;
      for (int i = 0; i < size; ++i) {
        const auto held = Open().Allocate(OwnerNumber(i), pool, At(at));
        if (!held) break;
        const auto put =
            Open().QuarantineWithin(pool, OwnerNumber(i), held->address, At(at), kFirstQuarantine);
        EXPECT_TRUE(put);
        taken += put.value_or(false) ? 1 : 0;
        EXPECT_TRUE(Open().Release(OwnerNumber(i), At(at)));
      }
      return taken;
    };
    const auto begin = static_cast<std::uint64_t>(size) * 10'000;
    EXPECT_EQ(quarantine_all(begin), size / 4);
    EXPECT_EQ(quarantine_all(begin + 1), 0) << "they are there still";
    EXPECT_EQ(quarantine_all(begin + 1 + kFirstQuarantine.count()), size / 4);
  }
  ExpectSound();
}

TEST_F(QuarantineTest, OnlyWhatTheOwnerHolds) {
  const std::string before = StoreBytes(scratch_.StorePath());
  for (const char* address : {"10.0.1.1", "10.0.0.2"}) {
    const auto again = Open().Quarantine(OwnerNumber(1), testing::Ip(address), At(11));
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, ErrorCode::kNotFound);
  }
  EXPECT_EQ(Open().Quarantine(OwnerNumber(7), testing::Ip("10.0.0.1"), At(11)).error().code,
            ErrorCode::kNotFound);
  EXPECT_EQ(StoreBytes(scratch_.StorePath()), before);
}

// The most that a node holds: one transaction, and nothing for those that come after it.
TEST_F(RequestsTest, ANewBootWithThousandsHeld) {
  const AddressPool pool = MakePool("10.8.0.0/16", {}, 60);
  auto store = Open();
  std::vector<AddressRequest> requests;
  for (int i = 0; i < 4096; ++i) requests.push_back({OwnerNumber(i), {pool}, {}});
  ASSERT_TRUE(store.Allocate(requests, At(0)));
  ASSERT_EQ(store.Release(OwnerNumber(9999), At(1, "boot-b")).value(), 0U);
  const auto after = store.List().value();
  EXPECT_EQ(std::count_if(after.begin(), after.end(),
                          [](const auto& record) { return record.state == AddressState::kCoolingDown; }),
            4096);
  EXPECT_TRUE(store.ReleaseEarlierBoots(At(2, "boot-b"))->empty());
  EXPECT_EQ(store.Allocate(OwnerNumber(17), pool, At(2, "boot-b"))->address.ToString(), "10.8.0.18");
  EXPECT_EQ(store.Allocate(OwnerNumber(5000), pool, At(2, "boot-b"))->address.ToString(), "10.8.16.1");
  EXPECT_EQ(store.Verify().value(), std::vector<std::string>{});
}

}  // namespace
}  // namespace railhead::ipam
