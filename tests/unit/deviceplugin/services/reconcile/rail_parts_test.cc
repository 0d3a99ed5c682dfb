// A change of the node's part of a rail: its time counts from railheadd's next pass, without any ADD.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "cni/fabric/fabric.h"
#include "ipam/store/ledger.h"
#include "ipam/store/rail_part_of.h"
#include "ipam/store/store.h"
#include "tests/support/daemon/reconciler_fixture.h"

namespace railhead::testing {
namespace {

class RailPartsTest : public ReconcilerFixture {
 protected:
  // The node's fabric, with its index.
  void WriteFabric(int index) {
    sysfs_.Write("/etc/railhead/fabric.json",
                 R"({"version": 1, "addresses": {"reuseDelaySeconds": 600}, "nodes": {"node-a": )" +
                     std::to_string(index) + R"(}, "rails": [
      {"name": "rail0", "pf": "pf0", "subnet": "10.9.0.0/24", "nodeBlock": 28, "gateway": "10.9.0.254"},
      {"name": "bare", "pf": "pf1"}]})");
    sysfs_.Write("/etc/railhead/node-name", "node-a\n");
  }
  // As ADD makes it.
  ipam::AddressRequest Request() {
    const auto fabric = ReadFabric(sysfs_.root());
    const Rail& rail = (*fabric)->rails[0];
    const auto ranges = rail.RangesOf("node-a", (*fabric)->IndexOf("node-a"));
    const auto set =
        ipam::RangeSet::Make({*rail.subnet, ranges, rail.Excluded(), rail.GatewayOf(*rail.subnet)});
    ipam::AddressPool pool{"10.9.0.0/24", *set, std::chrono::seconds(600)};
    pool.part =
        *ipam::RailPartOf(rail.name, {*rail.subnet, ranges, rail.Excluded(), rail.GatewayOf(*rail.subnet)},
                          std::chrono::seconds(600));
    return {{"rails", "c1", "net1"}, {pool}, {}, false};
  }
  std::optional<ErrorCode> Refusal() {
    auto store = ipam::AddressStore::Open(sysfs_.root());
    const auto tried = store->TryAllocate({Request()});
    return tried ? std::nullopt : std::optional(tried.error().code);
  }
  void Wait(std::chrono::seconds time) {
    auto store = ipam::AddressStore::Open(sysfs_.root());
    const auto moved = store->Transact([&](ipam::LmdbTxn& txn, const ipam::ClockReading&) -> Result<bool> {
      ipam::StoreHeader header = RH_TRY(ReadHeader(txn));
      header.store_ms += static_cast<std::uint64_t>(time.count()) * 1000;
      RH_TRY(txn.Put(ipam::HeaderKey(), Encode(header)));
      return true;
    });
    ASSERT_TRUE(moved) << Describe(moved.error());
  }
};

TEST_F(RailPartsTest, AreNotedWithoutAnAdd) {
  WriteFabric(1);
  ASSERT_TRUE(ipam::AddressStore::Open(sysfs_.root())->Allocate({Request()}));
  WriteFabric(2);
  EXPECT_EQ(Did(), "");
  EXPECT_EQ(Refusal(), ErrorCode::kBusy);
  Wait(std::chrono::seconds(599));
  EXPECT_EQ(Did(), "");
  EXPECT_EQ(Refusal(), ErrorCode::kBusy);
  Wait(std::chrono::seconds(2));
  EXPECT_EQ(Refusal(), std::nullopt) << "the delay counts from the first pass";
  WriteFabric(3);
  EXPECT_EQ(Did(), "");
  EXPECT_EQ(Refusal(), ErrorCode::kBusy);
}

TEST_F(RailPartsTest, ThatNobodyHasUsedNeedNoStore) {
  WriteFabric(1);
  EXPECT_EQ(Did(), "");
  EXPECT_FALSE(*ipam::AddressStore::OpenExisting(sysfs_.root()));
}

}  // namespace
}  // namespace railhead::testing
