// Where the pools of a new store begin.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "ipam/store/store.h"
#include "tests/support/ipam/support.h"
#include "tests/support/seed.h"

namespace railhead::ipam {
namespace {

using testing::At;
using testing::MakePool;
using testing::OwnerNumber;
using testing::ScratchRoot;
using testing::StoreAt;

// Of the kernel, with these digits.
void WriteUuid(const ScratchRoot& scratch, std::uint64_t digits) {
  std::array<char, 64> text{};
  (void)std::snprintf(text.data(), text.size(), "%08x-%04x-4000-8000-000000000000\n",
                      static_cast<unsigned>(digits >> 16U), static_cast<unsigned>(digits & 0xffffU));
  scratch.Write("/proc/sys/kernel/random/uuid", text.data());
}

const std::vector<AddressPool>& Shapes() {
  static const std::vector<AddressPool> shapes = {
      MakePool("10.0.0.0/28", {}, 600),
      MakePool("10.0.0.0/16", {"10.0.3.0-10.0.3.4", "10.0.9.7-10.0.9.9"}, 600),
      MakePool("10.0.0.4/30", {}, 600, {"10.0.0.5-10.0.0.5"}), MakePool("fd00::/124", {}, 600)};
  return shapes;
}

// It begins at any of its addresses, and each is given once before one comes again.
TEST(StoreStart, GivesEveryAddressFromAnyOneOn) {
  std::mt19937_64 random(testing::Seed());
  for (const AddressPool& pool : Shapes()) {
    const std::uint64_t size = pool.ranges.Size();
    std::set<IpAddress> firsts;
    for (std::uint64_t i = 0; i < 2 * size; ++i) {
      const ScratchRoot scratch;
      const std::uint64_t digits = (random() << 16U >> 16U) / size * size + i % size;
      WriteUuid(scratch, digits & 0xffff'ffff'ffffU);
      auto store = StoreAt::Open(scratch.root());
      ASSERT_TRUE(store) << Describe(store.error());
      std::set<IpAddress> given;
      for (std::uint64_t n = 0; n < size; ++n) {
        const auto held = store->Allocate(OwnerNumber(static_cast<int>(n)), pool, At(1000));
        ASSERT_TRUE(held) << Describe(held.error());
        EXPECT_EQ(held->address, pool.ranges.At(((digits & 0xffff'ffff'ffffU) + n) % size));
        EXPECT_TRUE(given.insert(held->address).second);
        if (n == 0) firsts.insert(held->address);
      }
      EXPECT_FALSE(store->Allocate(OwnerNumber(static_cast<int>(size)), pool, At(1000)));
    }
    EXPECT_GT(firsts.size(), size / 2) << pool.name;
  }
}

// The pools of rails whose subnets are alike stay alike.
TEST(StoreStart, KeepsRailsAligned) {
  std::mt19937_64 random(testing::Seed());
  for (int i = 0; i < 50; ++i) {
    const ScratchRoot scratch;
    WriteUuid(scratch, random() & 0xffff'ffff'ffffU);
    auto store = StoreAt::Open(scratch.root());
    ASSERT_TRUE(store) << Describe(store.error());
    std::vector<AddressRequest> requests(4);
    for (std::size_t rail = 0; rail < requests.size(); ++rail) {
      requests[rail].owner = OwnerNumber(static_cast<int>(rail));
      requests[rail].pools = {MakePool("10." + std::to_string(rail) + ".0.0/26", {}, 600)};
      requests[rail].aligned = true;
    }
    const auto held = store->Allocate(requests, At(1000));
    ASSERT_TRUE(held) << Describe(held.error());
    for (std::size_t rail = 0; rail < requests.size(); ++rail) {
      EXPECT_EQ((*held)[rail].address.Minus(requests[rail].pools[0].ranges.subnet().First()),
                (*held)[0].address.Minus(requests[0].pools[0].ranges.subnet().First()));
    }
  }
}

// A later pool of an old store, and an old store itself, begin with the first address: nothing of it is
// unknown.
TEST(StoreStart, IsTheFirstAddressWithoutRandomNumbers) {
  for (const std::string odd : {"", "no digits", "-", "ffffffffffffffffffffffffffffffff"}) {
    const ScratchRoot scratch;
    if (!odd.empty()) scratch.Write("/proc/sys/kernel/random/uuid", odd);
    auto store = StoreAt::Open(scratch.root());
    ASSERT_TRUE(store) << Describe(store.error());
    const auto held = store->Allocate(OwnerNumber(1), Shapes()[0], At(1000));
    ASSERT_TRUE(held) << Describe(held.error());
    const std::uint64_t index = odd.starts_with('f') ? 0xffff'ffff'ffffU % Shapes()[0].ranges.Size() : 0;
    EXPECT_EQ(held->address, Shapes()[0].ranges.At(index)) << odd;
  }
}

}  // namespace
}  // namespace railhead::ipam
