#include "ipam/store/store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "ipam/store/lmdb.h"
#include "tests/support/ipam/store_pages.h"
#include "tests/support/ipam/support.h"

namespace railhead::ipam {
namespace {

namespace fs = std::filesystem;
using testing::At;
using testing::MakePool;
using testing::OwnerNumber;
using testing::ScratchRoot;
using testing::StoreAt;
using testing::StoreBytes;

class StoreTest : public ::testing::Test {
 protected:
  // The address, or the error.
  std::string Add(int owner, const AddressPool& pool, double seconds, const std::string& boot = "boot-a") {
    auto store = StoreAt::Open(scratch_.root());
    if (!store) return "open: " + store.error().message;
    const auto given = store->Allocate(OwnerNumber(owner), pool, At(seconds, boot));
    if (!given) return Describe(given.error());
    return given->address.ToString();
  }
  std::string Del(int owner, double seconds) {
    auto store = StoreAt::Open(scratch_.root());
    if (!store) return "open: " + store.error().message;
    const auto released = store->Release(OwnerNumber(owner), At(seconds));
    return released ? std::to_string(*released) : released.error().message;
  }
  void ExpectSound() {
    const auto store = StoreAt::Open(scratch_.root());
    ASSERT_TRUE(store);
    const auto findings = store->Verify();
    ASSERT_TRUE(findings);
    EXPECT_EQ(*findings, std::vector<std::string>{});
  }
  std::string OpenError() {
    const auto store = StoreAt::Open(scratch_.root());
    return store ? "none" : Describe(store.error());
  }

  ScratchRoot scratch_;
  // .1 to .6
  const AddressPool small_ = MakePool("10.0.0.0/29", {}, 60);
};

TEST_F(StoreTest, IncrementsAndGivesTheSameOwnerTheSameAddress) {
  EXPECT_EQ(Add(1, small_, 0), "10.0.0.1");
  EXPECT_EQ(Add(2, small_, 0), "10.0.0.2");
  EXPECT_EQ(Add(1, small_, 1), "10.0.0.1");
  EXPECT_EQ(Add(3, small_, 1), "10.0.0.3");
  ExpectSound();
}

TEST_F(StoreTest, ReleasedAddressesComeBackLastAfterTheReuseDelay) {
  EXPECT_EQ(Add(1, small_, 0), "10.0.0.1");
  EXPECT_EQ(Del(1, 10), "1");
  for (int i = 2; i <= 6; ++i) EXPECT_EQ(Add(i, small_, 11), "10.0.0." + std::to_string(i));
  EXPECT_EQ(Add(7, small_, 69.5),
            "no free address in 10.0.0.1-10.0.0.6 of subnet 10.0.0.0/29: size 6, in use 5, cooling down 1; "
            "the next "
            "address is free again in 1 s; widen the range or shorten reuseDelaySeconds (60)");
  EXPECT_EQ(Add(7, small_, 70), "10.0.0.1");
  EXPECT_EQ(
      Add(8, small_, 70),
      "no free address in 10.0.0.1-10.0.0.6 of subnet 10.0.0.0/29: size 6, in use 6, cooling down 0; delete "
      "pods or "
      "widen the range");
  ExpectSound();
}

TEST_F(StoreTest, NeverLowestFirst) {
  EXPECT_EQ(Add(1, small_, 0), "10.0.0.1");
  EXPECT_EQ(Add(2, small_, 0), "10.0.0.2");
  EXPECT_EQ(Del(1, 0), "1");
  EXPECT_EQ(Del(2, 0), "1");
  EXPECT_EQ(Add(3, small_, 1000), "10.0.0.3");
  EXPECT_EQ(Add(4, small_, 1000), "10.0.0.4");
}

TEST_F(StoreTest, AnErrorChangesNothing) {
  for (int i = 1; i <= 6; ++i) Add(i, small_, 0);
  const auto before = StoreAt::Open(scratch_.root())->List();
  EXPECT_NE(Add(7, small_, 0).find("no free address"), std::string::npos);
  EXPECT_EQ(*StoreAt::Open(scratch_.root())->List(), *before);
}

TEST_F(StoreTest, ReleaseOfTheUnknownIsNoErrorAndWritesNothing) {
  Add(1, small_, 0);
  const std::string before = StoreBytes(scratch_.StorePath());
  EXPECT_EQ(Del(99, 5), "0");
  EXPECT_EQ(StoreBytes(scratch_.StorePath()), before);
  EXPECT_EQ(Del(1, 5), "1");
  const std::string after = StoreBytes(scratch_.StorePath());
  EXPECT_NE(after, before);
  EXPECT_EQ(Del(1, 6), "0");
  EXPECT_EQ(StoreBytes(scratch_.StorePath()), after);
  ExpectSound();
}

TEST_F(StoreTest, WithoutAStoreNothingIsHeldAndNothingMade) {
  const auto store = AddressStore::OpenExisting(scratch_.root());
  ASSERT_TRUE(store);
  EXPECT_FALSE(store->has_value());
  EXPECT_TRUE(fs::is_empty(scratch_.path()));
}

TEST_F(StoreTest, RecordsSayWhoSinceWhenAndInWhichBoot) {
  Add(1, small_, 12);
  const auto store = StoreAt::Open(scratch_.root());
  const auto found = store->Find(OwnerNumber(1));
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().owner, OwnerNumber(1));
  EXPECT_EQ(found->front().pool, "10.0.0.0/29");
  EXPECT_EQ(found->front().boot_id, "boot-a");
  EXPECT_EQ(found->front().wall_seconds, At(12).wall_seconds);
  EXPECT_TRUE(store->Find(OwnerNumber(2))->empty());
}

TEST_F(StoreTest, ReuseDelayLastsOverAReboot) {
  Add(1, small_, 1000);
  Del(1, 1000);
  for (int i = 2; i <= 6; ++i) Add(i, small_, 1010);
  // 10 s passed before the reboot, 49 s since: 1 s is missing. The boot time
  // clock starts at 0 again, and the wall clock may say anything.
  EXPECT_NE(Add(7, small_, 49, "boot-b").find("free again in 1 s"), std::string::npos);
  EXPECT_EQ(Add(7, small_, 50, "boot-b"), "10.0.0.1");
}

TEST_F(StoreTest, AnAddressOutsideOfTheRangesIsReplaced) {
  EXPECT_EQ(Add(1, small_, 0), "10.0.0.1");
  const AddressPool moved = MakePool("10.0.0.0/29", {"10.0.0.4-10.0.0.6"}, 60);
  EXPECT_EQ(Add(1, moved, 1), "10.0.0.4");
  EXPECT_EQ(Del(1, 2), "1");
  ExpectSound();
}

TEST_F(StoreTest, PoolsAreApartAndOneReleaseFreesAll) {
  const AddressPool other = MakePool("10.0.1.0/29", {}, 0);
  const AddressPool six = MakePool("fd00::/125", {}, 0);
  EXPECT_EQ(Add(1, small_, 0), "10.0.0.1");
  EXPECT_EQ(Add(1, other, 0), "10.0.1.1");
  EXPECT_EQ(Add(1, six, 0), "fd00::1");
  EXPECT_EQ(Add(2, six, 0), "fd00::2");
  ExpectSound();
  EXPECT_EQ(Del(1, 1), "3");
  EXPECT_EQ(Del(2, 1), "1");
  ExpectSound();
}

TEST_F(StoreTest, AMassDeletionIsFreedWhenItIsNeeded) {
  const AddressPool pool = MakePool("10.0.0.0/24", {}, 10);
  auto store = StoreAt::Open(scratch_.root());
  ASSERT_TRUE(store);
  for (int i = 0; i < 254; ++i) ASSERT_TRUE(store->Allocate(OwnerNumber(i), pool, At(0)));
  for (int i = 0; i < 254; ++i) ASSERT_TRUE(store->Release(OwnerNumber(i), At(1)));
  for (int i = 0; i < 254; ++i) ASSERT_TRUE(store->Allocate(OwnerNumber(1000 + i), pool, At(11))) << i;
  EXPECT_FALSE(store->Allocate(OwnerNumber(2000), pool, At(11)));
  EXPECT_TRUE(store->Verify()->empty());
}

TEST_F(StoreTest, NamesThatCannotBeKeysAreRefused) {
  auto store = StoreAt::Open(scratch_.root());
  ASSERT_TRUE(store);
  const AddressOwner endless{std::string(600, 'n'), "c", "i"};
  const auto given = store->Allocate(endless, small_, At(0));
  ASSERT_FALSE(given);
  EXPECT_EQ(given.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(store->Release(endless, At(0)).value_or(77), 0U);
  EXPECT_TRUE(store->Find(endless)->empty());
}

TEST_F(StoreTest, DamagedAndForeignFilesAreNamedWithTheWayOut) {
  const std::string path = "/var/lib/railhead/ipam/store.mdb";
  for (const std::string& content :
       {std::string(), std::string("{}"), std::string(20000, 'x'), std::string(20000, '\0')}) {
    scratch_.Write(path, content);
    const std::string error = OpenError();
    EXPECT_NE(error.find(scratch_.StorePath()), std::string::npos) << error;
    EXPECT_NE(error.find("move it away"), std::string::npos) << error;
  }
  fs::remove(scratch_.StorePath());
  fs::create_directories(scratch_.StorePath());
  EXPECT_NE(OpenError().find("not a regular file"), std::string::npos);
}

TEST_F(StoreTest, ATruncatedStoreIsAnErrorNotACrash) {
  for (int i = 1; i <= 6; ++i) Add(i, small_, 0);
  fs::resize_file(scratch_.StorePath(), 8192);
  EXPECT_NE(OpenError().find("8192 bytes long"), std::string::npos) << OpenError();
}

TEST_F(StoreTest, AnLmdbFileOfSomeoneElseIsNoStore) {
  fs::create_directories(fs::path(scratch_.StorePath()).parent_path());
  {
    const auto env = LmdbEnv::Open(scratch_.StorePath(), LmdbEnv::Mode::kCreate);
    ASSERT_TRUE(env);
    auto txn = LmdbTxn::Begin(*env, LmdbTxn::Mode::kWrite);
    ASSERT_TRUE(txn);
    ASSERT_TRUE(txn->Put("key", "value"));
    ASSERT_TRUE(txn->Commit());
  }
  EXPECT_NE(Add(1, small_, 0).find("not of railhead-ipam"), std::string::npos) << Add(1, small_, 0);
}

TEST_F(StoreTest, AHalfMadeStoreIsMadeAgain) {
  scratch_.Write("/var/lib/railhead/ipam/store.mdb.new", "half");
  EXPECT_EQ(Add(1, small_, 0), "10.0.0.1");
  EXPECT_FALSE(fs::exists(scratch_.StorePath() + ".new"));
}

TEST_F(StoreTest, OnlyRootReadsIt) {
  Add(1, small_, 0);
  struct stat status {};
  ASSERT_EQ(::stat(scratch_.StorePath().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

}  // namespace
}  // namespace railhead::ipam
