// Early reuse, and the events of the store.
#include "ipam/store/events.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ipam/store/store.h"
#include "tests/support/ipam/support.h"

namespace railhead::ipam {
namespace {

using testing::At;
using testing::Ip;
using testing::MakePool;
using testing::OwnerNumber;
using testing::ScratchRoot;
using testing::StoreAt;

constexpr const char* kPool = "10.0.0.0/30";  // .1 and .2

class EventsTest : public ::testing::Test {
 protected:
  EventsTest() { pool_.min_reuse_delay = std::chrono::seconds(20); }
  StoreAt Open() {
    auto store = StoreAt::Open(scratch_.root());
    EXPECT_TRUE(store) << Describe(store.error());
    return std::move(*store);
  }
  std::string Add(int owner, double seconds) {
    const auto given = Open().Allocate(OwnerNumber(owner), pool_, At(seconds));
    return given ? given->address.ToString() : Describe(given.error());
  }
  void Del(int owner, double seconds) {
    ASSERT_EQ(Open().Release(OwnerNumber(owner), At(seconds)).value(), 1U);
  }
  PoolCounters Counters() { return Open().Counters().value()[kPool]; }

  ScratchRoot scratch_;
  AddressPool pool_ = MakePool(kPool, {}, 60);
};

TEST_F(EventsTest, TheOldestIsReusedEarlyWhenNothingElseIsLeft) {
  ASSERT_EQ(Add(1, 0), "10.0.0.1");
  ASSERT_EQ(Add(2, 0), "10.0.0.2");
  Del(2, 10);
  Del(1, 15);
  EXPECT_EQ(
      Add(3, 29.5),
      "no free address in 10.0.0.1-10.0.0.2 of subnet 10.0.0.0/30: size 2, in use 0, cooling down 2; the "
      "next address is free again in 1 s; widen the range or shorten reuseDelaySeconds (60)");
  EXPECT_EQ(Add(3, 30), "10.0.0.2");
  EXPECT_NE(Add(4, 34).find("cooling down 1"), std::string::npos);
  EXPECT_EQ(Add(4, 35), "10.0.0.1");
  EXPECT_EQ(Counters(), (PoolCounters{.allocated = 4, .released = 2, .early_reuses = 2, .exhausted = 2}));
  EXPECT_TRUE(Open().Verify()->empty());
}

TEST_F(EventsTest, AFreeAddressComesFirst) {
  ASSERT_EQ(Add(1, 0), "10.0.0.1");
  Del(1, 1);
  EXPECT_EQ(Add(2, 50), "10.0.0.2");
  EXPECT_EQ(Counters().early_reuses, 0U);
}

// Its own ranges, not the released addresses of other networks of the subnet.
TEST_F(EventsTest, OnlyAddressesThatMayBeGiven) {
  ASSERT_EQ(Add(1, 0), "10.0.0.1");
  ASSERT_EQ(Add(2, 0), "10.0.0.2");
  Del(1, 1);
  Del(2, 5);
  AddressPool second = MakePool(kPool, {"10.0.0.2"}, 60);
  second.min_reuse_delay = std::chrono::seconds(20);
  EXPECT_FALSE(Open().Allocate(OwnerNumber(3), second, At(24)));
  const auto given = Open().Allocate(OwnerNumber(3), second, At(25));
  ASSERT_TRUE(given) << Describe(given.error());
  EXPECT_EQ(given->address, Ip("10.0.0.2"));
}

TEST_F(EventsTest, AnAlternativeComesBeforeAnEarlyReuse) {
  ASSERT_EQ(Add(1, 0), "10.0.0.1");
  ASSERT_EQ(Add(2, 0), "10.0.0.2");
  Del(1, 1);
  const AddressPool other = MakePool("10.0.1.1/32", {}, 60);
  const auto given = Open().Allocate({AddressRequest{OwnerNumber(3), {pool_, other}, {}}}, At(50));
  ASSERT_TRUE(given) << Describe(given.error());
  EXPECT_EQ(given->front().address, Ip("10.0.1.1"));
}

TEST_F(EventsTest, TellWhoWhatAndWhen) {
  ASSERT_EQ(Add(1, 0), "10.0.0.1");
  ASSERT_EQ(Add(2, 0), "10.0.0.2");
  EXPECT_TRUE(Open().Events(0)->empty());
  Del(1, 10);
  for (const double seconds : {11.0, 12.0, 13.0})
    EXPECT_NE(Add(3, seconds).find("no free"), std::string::npos);
  ASSERT_EQ(Add(4, 40), "10.0.0.1");
  const auto events = Open().Events(0).value();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].number, 1U);
  EXPECT_EQ(events[0].kind, AddressEventKind::kExhausted);
  EXPECT_EQ(events[0].pool, kPool);
  EXPECT_EQ(events[0].owner, OwnerNumber(3));
  EXPECT_EQ(events[0].count, 3U);
  EXPECT_EQ(events[0].wall_seconds, At(13).wall_seconds);
  EXPECT_EQ(events[1].number, 2U);
  EXPECT_EQ(events[1].kind, AddressEventKind::kEarlyReuse);
  EXPECT_EQ(events[1].address, Ip("10.0.0.1"));
  EXPECT_EQ(events[1].owner, OwnerNumber(4));
  EXPECT_EQ(events[1].ms, 30'000U);
  EXPECT_EQ(Open().Events(1)->size(), 1U);
  EXPECT_TRUE(Open().Events(2)->empty());
  EXPECT_TRUE(Open().Events(UINT64_MAX)->empty());
}

TEST_F(EventsTest, TryingTellsNothing) {
  ASSERT_EQ(Add(1, 0), "10.0.0.1");
  ASSERT_EQ(Add(2, 0), "10.0.0.2");
  const std::vector<AddressRequest> requests{AddressRequest{OwnerNumber(3), {pool_}, {}}};
  EXPECT_EQ(Open().TryAllocate(requests, At(1)).error().code, ErrorCode::kExhausted);
  Del(1, 1);
  EXPECT_TRUE(Open().TryAllocate(requests, At(30)));
  EXPECT_TRUE(Open().Events(0)->empty());
  EXPECT_EQ(Counters(), (PoolCounters{.allocated = 2, .released = 1}));
}

TEST_F(EventsTest, TheListIsBounded) {
  auto store = Open();
  const AddressPool one = MakePool("10.0.1.1/32", {}, 60);
  const AddressPool two = MakePool("10.0.2.1/32", {}, 60);
  ASSERT_TRUE(store.Allocate(
      {AddressRequest{OwnerNumber(0), {one}, {}}, AddressRequest{OwnerNumber(0), {two}, {}}}, At(0)));
  const int count = static_cast<int>(kMaxEvents) + 10;
  for (int i = 1; i <= count; ++i) {
    ASSERT_FALSE(store.Allocate(OwnerNumber(i), i % 2 == 0 ? one : two, At(i)));
  }
  const auto events = store.Events(0).value();
  ASSERT_EQ(events.size(), kMaxEvents);
  EXPECT_EQ(events.front().number, 11U);
  EXPECT_EQ(events.back().number, kMaxEvents + 10);
  EXPECT_EQ(events.back().owner, OwnerNumber(count));
}

TEST(EventBytes, AreReadAsTheyWereWritten) {
  AddressEvent event;
  event.number = 7;
  event.kind = AddressEventKind::kQuarantined;
  event.pool = "fd00::/64";
  event.address = Ip("fd00::5");
  event.owner = OwnerNumber(3);
  event.count = 4;
  event.ms = 5;
  event.store_ms = 6;
  event.wall_seconds = -7;
  const std::string key = std::string("E") + std::string(7, '\0') + '\7';
  EXPECT_EQ(DecodeEvent(key, Encode(event)).value(), event);
  event.kind = static_cast<AddressEventKind>(5);
  EXPECT_EQ(DecodeEvent(key, Encode(event)).value(), event) << "the next event counts on from it";
  EXPECT_EQ(NameOf(event.kind), "unknown");
  for (const std::string& bytes :
       {std::string(), Encode(event) + "x", std::string(8, '\0') + Encode(event).substr(8)}) {
    const auto damaged = DecodeEvent(key, bytes);
    ASSERT_FALSE(damaged);
    EXPECT_EQ(damaged.error().code, ErrorCode::kIo);
  }
  EXPECT_FALSE(DecodeEvent("E", Encode(event)));
  const PoolCounters counters{1, 2, 3, 4, 5};
  EXPECT_EQ(DecodeCounters(Encode(counters)).value(), counters);
  EXPECT_FALSE(DecodeCounters(Encode(counters).substr(1)));
}

}  // namespace
}  // namespace railhead::ipam
