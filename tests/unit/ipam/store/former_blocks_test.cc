// Records of leased blocks, which earlier versions have left in the store.
#include "ipam/store/former_blocks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/ipam/support.h"

namespace railhead::ipam {
namespace {

using testing::At;
using testing::MakePool;
using testing::OwnerNumber;
using testing::ScratchRoot;
using testing::TestClock;

constexpr int kReuseDelaySeconds = 600;
constexpr const char* kSubnet = "10.7.0.0/24";
using Pools = std::vector<std::string>;

class FormerBlocksTest : public ::testing::Test {
 protected:
  FormerBlocksTest() { clock_.Set(At(10)); }

  AddressStore Open() {
    auto store = AddressStore::Open(scratch_.root(), clock_.source());
    EXPECT_TRUE(store) << Describe(store.error());
    return *std::move(store);
  }
  Pools InUse() {
    AddressStore store = Open();
    const auto pools = FormerBlocksInUse(store, std::chrono::seconds(kReuseDelaySeconds));
    EXPECT_TRUE(pools) << Describe(pools.error());
    return pools.value_or(Pools{"?"});
  }
  void WriteBlock(const std::string& pool, std::uint64_t index) {
    std::string key = "B" + pool + std::string(1, '\0');
    for (int shift = 56; shift >= 0; shift -= 8)
      key += static_cast<char>(index >> static_cast<unsigned>(shift));
    const auto written = Open().Transact([&](LmdbTxn& txn, const ClockReading& /*now*/) -> Result<bool> {
      RH_TRY(txn.Put(key, "of an earlier version"));
      return true;
    });
    ASSERT_TRUE(written) << Describe(written.error());
  }
  void Give(const std::string& subnet) {
    const auto given = Open().Allocate(OwnerNumber(1), MakePool(subnet, {}, kReuseDelaySeconds));
    ASSERT_TRUE(given) << Describe(given.error());
  }

  const ScratchRoot scratch_;
  TestClock clock_;
};

TEST_F(FormerBlocksTest, AStoreOfThisVersionHasNone) {
  EXPECT_EQ(InUse(), Pools{});
  Give(kSubnet);
  EXPECT_EQ(InUse(), Pools{});
}

TEST_F(FormerBlocksTest, ABlockWithoutAddressesIsNotInUse) {
  WriteBlock(kSubnet, 3);
  EXPECT_EQ(InUse(), Pools{});
}

TEST_F(FormerBlocksTest, AddressesAreInUseUntilTheirReuseDelayIsOver) {
  WriteBlock(kSubnet, 3);
  WriteBlock(kSubnet, 0x0102030405060708);
  Give(kSubnet);
  EXPECT_EQ(InUse(), Pools{kSubnet});
  clock_.Set(At(20));
  ASSERT_TRUE(Open().Release(OwnerNumber(1)));
  EXPECT_EQ(InUse(), Pools{kSubnet}) << "it cools down";
  clock_.Set(At(20 + kReuseDelaySeconds - 1));
  EXPECT_EQ(InUse(), Pools{kSubnet});
  clock_.Set(At(20 + kReuseDelaySeconds + 1));
  EXPECT_EQ(InUse(), Pools{});
}

TEST_F(FormerBlocksTest, AddressesOfAnotherPoolDoNotCount) {
  WriteBlock(kSubnet, 3);
  Give("10.7.0.0/16");
  Give("10.8.0.0/24");
  EXPECT_EQ(InUse(), Pools{});
}

TEST_F(FormerBlocksTest, EachPoolIsNamedOnce) {
  for (const char* subnet : {"fd00::/64", "10.8.0.0/24", kSubnet}) {
    WriteBlock(subnet, 1);
    WriteBlock(subnet, 2);
    Give(subnet);
  }
  EXPECT_EQ(InUse(), (Pools{kSubnet, "10.8.0.0/24", "fd00::/64"}));
}

// Their addresses are released with the boot: the next boot's first change does it.
TEST_F(FormerBlocksTest, ARebootDoesNotFreeThemAtOnce) {
  WriteBlock(kSubnet, 1);
  Give(kSubnet);
  clock_.Set(At(5, "boot-b"));
  ASSERT_TRUE(Open().ReleaseEarlierBoots());
  EXPECT_EQ(InUse(), Pools{kSubnet});
  clock_.Set(At(5 + kReuseDelaySeconds + 1, "boot-b"));
  EXPECT_EQ(InUse(), Pools{});
}

}  // namespace
}  // namespace railhead::ipam
