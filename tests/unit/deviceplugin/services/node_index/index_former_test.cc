// Indices that a node has used before: kept while pods may have their addresses.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "deviceplugin/services/node_index/index_claim.h"
#include "deviceplugin/services/node_index/index_service.h"
#include "ipam/store/range.h"
#include "ipam/store/store.h"
#include "netns/base/addresses.h"
#include "tests/support/temp_root.h"
#include "tests/unit/deviceplugin/services/node_index/index_support.h"

namespace railhead::node_index {
namespace {

using testing::HasEvent;
using testing::IndexClaimTest;
using testing::kHourMs;
using testing::TestNode;
using Kind = IndexEvent::Kind;
using Holders = std::map<int, std::string>;

TEST_F(IndexClaimTest, AnIndexThatPodsUseIsKeptAfterAnotherIsListed) {
  a_.needs.listed = 6;
  a_.Step();
  a_.Hold();
  a_.needs.listed = 2;
  EXPECT_FALSE(HasEvent(a_.Pass(100 * kHourMs), Kind::kReleased)) << "a pod has its address";
  EXPECT_EQ(cluster_.Holders(), (Holders{{2, "a"}, {6, "a"}}));
  b_.needs.listed = 6;
  EXPECT_TRUE(b_.Step().problem) << "no other node gets it";
  a_.held_ms = {a_.now_ms};  // the pod ends, another one starts
  EXPECT_TRUE(HasEvent(a_.Pass(kHourMs), Kind::kReleased));
  EXPECT_EQ(cluster_.Holders(), (Holders{{2, "a"}}));
}

TEST_F(IndexClaimTest, AFormerIndexIsKeptForTheReuseDelay) {
  a_.needs.listed = 6;
  a_.needs.reuse_delay = std::chrono::hours(5);
  a_.Step();
  a_.Hold();
  a_.needs.listed = 2;
  a_.Pass(10 * kHourMs);
  a_.held_ms.clear();
  EXPECT_FALSE(HasEvent(a_.Pass(4 * kHourMs), Kind::kReleased));
  EXPECT_TRUE(HasEvent(a_.Pass(2 * kHourMs), Kind::kReleased));
}

// The ADD has read the former index, and allocates after the new one is claimed.
TEST_F(IndexClaimTest, AnAddThatRunsDuringTheChangeKeepsTheFormerIndex) {
  a_.needs.listed = 6;
  a_.Step();
  a_.needs.listed = 2;
  a_.Step();
  a_.now_ms += 60'000;
  a_.Hold();
  EXPECT_FALSE(HasEvent(a_.Pass(100 * kHourMs), Kind::kReleased));
}

TEST_F(IndexClaimTest, ARestartKeepsFormerIndices) {
  a_.needs.listed = 6;
  a_.Step();
  a_.Hold();
  a_.needs.listed = 2;
  a_.Step();
  a_.Restart();
  EXPECT_FALSE(HasEvent(a_.Pass(30 * kHourMs), Kind::kReleased));
  a_.disk.reset();
  a_.Restart();
  EXPECT_FALSE(HasEvent(a_.Pass(30 * kHourMs), Kind::kReleased)) << "the file is lost, the pod runs on";
  a_.held_ms.clear();
  EXPECT_TRUE(HasEvent(a_.Pass(2 * kHourMs), Kind::kReleased));
  EXPECT_EQ(cluster_.Holders(), (Holders{{2, "a"}}));
}

// Its claim names the Node object that is gone: the neighbors would remove it.
TEST_F(IndexClaimTest, AFormerIndexOutlivesTheNodeObject) {
  a_.needs.listed = 6;
  a_.Step();
  b_.Step();
  a_.Hold();
  a_.needs.listed = 2;
  a_.Step();
  cluster_.nodes["a"].uid = "new";
  a_.Step();
  EXPECT_EQ(RecordOf(6), (IndexRecord{"a", "new", ""}));
  EXPECT_FALSE(HasEvent(b_.Pass(40 * kHourMs), Kind::kFreed));
}

TEST_F(IndexClaimTest, AnAddressStoreThatCannotBeReadKeepsFormerIndices) {
  a_.needs.listed = 6;
  a_.Step();
  a_.needs.listed = 2;
  a_.unreadable = true;
  const auto passed = a_.Pass(30 * kHourMs);
  ASSERT_TRUE(passed.problem);
  EXPECT_NE(passed.problem->message.find("former index"), std::string::npos) << passed.problem->message;
  EXPECT_EQ(cluster_.Holders(), (Holders{{2, "a"}, {6, "a"}}));
}

TEST(HeldAddressesTest, AreThoseOfTheAddressStore) {
  testing::TempRoot scratch;
  ASSERT_TRUE(ReadHeldAddresses(scratch.root()));
  EXPECT_FALSE(ReadHeldAddresses(scratch.root())->oldest_ms) << "there is no store yet";
  scratch.Write("/proc/sys/kernel/random/boot_id", "boot\n");
  ipam::RangeSpec spec;
  spec.subnet = *IpPrefix::Parse("10.0.0.0/24");
  const ipam::AddressPool pool{"10.0.0.0/24", *ipam::RangeSet::Make(spec), std::chrono::seconds(600)};
  const auto open = [&] {
    auto store = ipam::AddressStore::Open(scratch.root());
    EXPECT_TRUE(store) << Describe(store.error());
    return *std::move(store);
  };
  for (const char* container : {"first", "second"})
    ASSERT_TRUE(open().Allocate({"net", container, "eth1"}, pool));
  const auto since = [&](const char* container) {
    return open().Find({"net", container, "eth1"}).value().at(0).since_ms;
  };
  EXPECT_EQ(ReadHeldAddresses(scratch.root())->oldest_ms, since("first"));
  EXPECT_GE(ReadHeldAddresses(scratch.root())->now_ms, since("second"));
  ASSERT_TRUE(open().Release({"net", "first", "eth1"}));
  EXPECT_EQ(ReadHeldAddresses(scratch.root())->oldest_ms, since("second"))
      << "one that cools down is released";
  ASSERT_TRUE(open().Release({"net", "second", "eth1"}));
  EXPECT_FALSE(ReadHeldAddresses(scratch.root())->oldest_ms);
}

TEST_F(IndexClaimTest, SurplusClaimsGo) {
  Write(2, {"a", "earlier", ""});
  Write(4, {"a", "uid-of-a", ""});
  Write(5, {"a", "uid-of-a", ""});
  a_.Pass(2 * kHourMs);
  EXPECT_EQ(cluster_.Holders(), (Holders{{4, "a"}}));
  Write(6, {"a", "uid-of-a", ""});
  a_.Restart();
  a_.Pass(2 * kHourMs);
  EXPECT_EQ(cluster_.Holders(), (Holders{{4, "a"}}));
}

TEST_F(IndexClaimTest, AnIndexThatFitsNoLongerIsReplacedAndKept) {
  b_.Step();
  a_.Step();
  ASSERT_EQ(a_.Index(), 1);
  a_.Hold();
  a_.needs.fits = [](int index) { return index == 0 || index == 4; };
  const auto changed = a_.Step();
  EXPECT_TRUE(HasEvent(changed, Kind::kUnfit));
  EXPECT_EQ(a_.Index(), 4);
  EXPECT_FALSE(HasEvent(a_.Pass(100 * kHourMs), Kind::kReleased)) << "a pod has its address";
  EXPECT_EQ(cluster_.Holders(), (Holders{{0, "b"}, {1, "a"}, {4, "a"}}));
  a_.held_ms.clear();
  EXPECT_TRUE(HasEvent(a_.Pass(kHourMs), Kind::kReleased));
  EXPECT_EQ(cluster_.Holders(), (Holders{{0, "b"}, {4, "a"}}));
}

TEST_F(IndexClaimTest, WithoutAFittingIndexTheFormerOneIsKept) {
  a_.Step();
  b_.Step();
  a_.needs.fits = [](int /*index*/) { return false; };
  const auto passed = a_.Pass(3 * kHourMs);
  ASSERT_TRUE(passed.problem);
  EXPECT_EQ(passed.problem->code, ErrorCode::kExhausted);
  cluster_.nodes["a"].uid = "new";
  a_.Step();
  EXPECT_FALSE(HasEvent(b_.Pass(40 * kHourMs), Kind::kFreed));
  EXPECT_EQ(cluster_.Holders(), (Holders{{0, "a"}, {1, "b"}}));
  a_.needs.fits = [](int index) { return index < 8; };
  EXPECT_FALSE(a_.Step().problem);
  EXPECT_EQ(a_.Index(), 0) << "the fabric is as before";
}

}  // namespace
}  // namespace railhead::node_index
