#include "ipam/store/address_record.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "ipam/store/lmdb.h"
#include "tests/support/ipam/support.h"

namespace railhead::ipam {
namespace {

using testing::At;
using testing::Ip;

AddressRecord Example() {
  return {"fd00::/64", Ip("fd00::17"), AddressState::kCoolingDown, {"net0", "abc", "net1"}, "boot-a", 4711,
          -5};
}

TEST(Record, RoundTrips) {
  const AddressRecord record = Example();
  const auto back = DecodeRecord(AddressKey(record.pool, record.address), Encode(record));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, record);
  const auto header = DecodeHeader(Encode(StoreHeader{"boot-a", 1, ~std::uint64_t{0}}));
  ASSERT_TRUE(header);
  EXPECT_EQ(header->boot_id, "boot-a");
  EXPECT_EQ(header->store_ms, ~std::uint64_t{0});
  const auto entry = DecodeQueueKey("10.0.0.0/8", ReuseQueueKey("10.0.0.0/8", 99, Ip("10.1.2.3")));
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->at_ms, 99U);
  EXPECT_EQ(entry->address, Ip("10.1.2.3"));
}

TEST(Record, EveryTruncationAndExtensionIsAnError) {
  const AddressRecord record = Example();
  const std::string key = AddressKey(record.pool, record.address);
  const std::string bytes = Encode(record);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeRecord(key, bytes.substr(0, size))) << size;
  }
  EXPECT_FALSE(DecodeRecord(key, bytes + "x"));
  EXPECT_FALSE(DecodeRecord(key.substr(0, key.size() - 1), bytes));
  std::string unknown_state = bytes;
  unknown_state[7] = 9;
  EXPECT_FALSE(DecodeRecord(key, unknown_state));
  const std::string header = Encode(StoreHeader{"boot-a", 1, 2});
  for (std::size_t size = 0; size < header.size(); ++size) {
    EXPECT_FALSE(DecodeHeader(header.substr(0, size))) << size;
  }
}

TEST(Record, KeysSortAsTheirValues) {
  EXPECT_LT(ReuseQueueKey("p", 255, Ip("10.0.0.9")), ReuseQueueKey("p", 256, Ip("10.0.0.1")));
  EXPECT_LT(ReuseQueueKey("p", 7, Ip("10.0.0.9")), ReuseQueueKey("p", 7, Ip("10.0.1.0")));
  EXPECT_LT(AddressKey("p", Ip("10.0.0.255")), AddressKey("p", Ip("10.0.1.0")));
}

TEST(Record, ANewerFormatIsNamed) {
  std::string header = Encode(StoreHeader{"boot-a", 1, 2});
  header[8 + 13 + 7] = 2;  // length, magic, format
  const auto decoded = DecodeHeader(header);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, ErrorCode::kUnsupported);
}

TEST(Record, OwnersThatCannotBeKeys) {
  EXPECT_TRUE(CheckOwner({"net0", "abc", "net1"}, "10.0.0.0/24"));
  EXPECT_FALSE(CheckOwner({"", "abc", "net1"}, "p"));
  EXPECT_FALSE(CheckOwner({"net0", "", "net1"}, "p"));
  EXPECT_FALSE(CheckOwner({"net0", "abc", ""}, "p"));
  EXPECT_FALSE(CheckOwner({std::string("ne\0t", 4), "abc", "net1"}, "p"));
  // 'O', three NULs and the pool's name are in the key as well.
  const std::size_t room = kMaxKeySize - 4 - 3 - 4 - 1;
  EXPECT_TRUE(CheckOwner({std::string(room, 'n'), "abc", "net1"}, "p"));
  EXPECT_FALSE(CheckOwner({std::string(room + 1, 'n'), "abc", "net1"}, "p"));
}

TEST(StoreTime, AdvancesWithUptimeOnly) {
  const StoreHeader header{"boot-a", 50'000, 1'000'000};
  EXPECT_EQ(header.StoreTime(At(50)), 1'000'000U);
  EXPECT_EQ(header.StoreTime(At(51.5)), 1'001'500U);
  // A clock that went back (another time namespace) does not set it back.
  EXPECT_EQ(header.StoreTime(At(20)), 1'000'000U);
  // After a reboot: as long as the machine has been up; the wall clock says nothing.
  EXPECT_EQ(header.StoreTime(At(7, "boot-b")), 1'007'000U);
}

TEST(LinkOwners, BelongToTheirAttachmentOnly) {
  const AddressOwner attachment{"net0", "abc", "eth1"};
  const AddressOwner link = LinkOwner(attachment, "rail0");
  EXPECT_EQ(link.ifname, "eth1/rail0");
  EXPECT_EQ(LinkOwner(attachment, ""), attachment);
  EXPECT_EQ(AttachmentIfname(link), "eth1");
  EXPECT_EQ(AttachmentIfname(attachment), "eth1");
  EXPECT_EQ(LinkName(link), "rail0");
  EXPECT_EQ(LinkName(attachment), "");
  EXPECT_EQ(OwnerPrefix(link).rfind(LinkOwnersPrefix(attachment), 0), 0U);
  EXPECT_NE(OwnerPrefix(attachment).rfind(LinkOwnersPrefix(attachment), 0), 0U);
  const AddressOwner longer{"net0", "abc", "eth10"};
  EXPECT_NE(OwnerPrefix(LinkOwner(longer, "rail0")).rfind(LinkOwnersPrefix(attachment), 0), 0U);
  EXPECT_NE(OwnerPrefix(longer).rfind(OwnerPrefix(attachment), 0), 0U);
}

}  // namespace
}  // namespace railhead::ipam
