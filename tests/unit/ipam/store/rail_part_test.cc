// A node's part of a rail after a change: which addresses are given when.
#include "ipam/store/rail_part.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "ipam/store/store.h"
#include "tests/support/ipam/support.h"

namespace railhead::ipam {
namespace {

using testing::At;
using testing::MakePool;
using testing::OwnerNumber;
using testing::Range;
using testing::ScratchRoot;
using testing::StoreAt;

constexpr int kSize = 24;
constexpr std::uint64_t kDelayMs = 600'000;

IpAddress Number(int i) {
  return testing::Ip("10.7.0.0").Plus(static_cast<std::uint64_t>(i));
}

std::vector<IpRange> Any(std::mt19937_64& random) {
  std::vector<IpRange> ranges;
  for (int first = static_cast<int>(random() % 6); first < kSize;
       first += 2 + static_cast<int>(random() % 8)) {
    const int last = std::min(kSize - 1, first + static_cast<int>(random() % 5));
    ranges.push_back({Number(first), Number(last)});
    first = last;
  }
  if (ranges.empty()) ranges.push_back({Number(0), Number(kSize - 1)});
  return ranges;
}

bool Has(const std::vector<IpRange>& ranges, int i) {
  return std::ranges::any_of(ranges, [&](const IpRange& range) { return range.Contains(Number(i)); });
}

// Each address by itself: it may be given once it has been in the part for the delay, or since the first
// part.
class Model {
 public:
  void See(const std::vector<IpRange>& ranges, std::uint64_t now_ms) {
    for (int i = 0; i < kSize; ++i) {
      auto& since = since_[static_cast<std::size_t>(i)];
      if (!Has(ranges, i)) {
        since.reset();
      } else if (!since) {
        since = is_new_ ? 0 : now_ms + kDelayMs;
      }
    }
    is_new_ = false;
  }
  [[nodiscard]] bool MayGive(int i, std::uint64_t now_ms) const {
    const auto& since = since_[static_cast<std::size_t>(i)];
    return since && now_ms >= *since;
  }

 private:
  bool is_new_ = true;
  std::array<std::optional<std::uint64_t>, kSize> since_;
};

TEST(RailPart, GivesNoAddressBeforeItsDelay) {
  int given = 0;
  int withheld = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    std::uint64_t now_ms = 1000;
    std::optional<PartRecord> record;
    Model model;
    std::vector<IpRange> ranges = Any(random);
    for (int step = 0; step < 40; ++step) {
      now_ms += random() % (kDelayMs / 2) * (random() % 4);
      if (random() % 3 == 0) ranges = Any(random);
      record = Advance(record, ranges, now_ms, std::chrono::milliseconds(kDelayMs));
      model.See(ranges, now_ms);
      EXPECT_EQ(record->ranges, ranges);
      for (int i = 0; i < kSize; ++i) {
        const bool settled = Has(record->settled, i);
        // Addresses of two changes settle together: later than each by itself, never earlier.
        ASSERT_TRUE(!settled || model.MayGive(i, now_ms)) << "address " << i << ", seed " << seed;
        ++(settled ? given : withheld);
      }
    }
    now_ms += kDelayMs;
    record = Advance(record, ranges, now_ms, std::chrono::milliseconds(kDelayMs));
    EXPECT_EQ(record->settled, ranges) << "in the end all are given";
  }
  EXPECT_GT(given, 1000);
  EXPECT_GT(withheld, 1000);
}

class RailPartTest : public ::testing::Test {
 protected:
  // The address, or why there is none.
  std::string Add(int owner, const std::string& part, std::int64_t seconds) {
    AddressPool pool = MakePool("10.7.0.0/24", {part}, 600);
    pool.part = RailPart{"rail0", {Range(part)}, std::chrono::seconds(600)};
    auto store = StoreAt::Open(scratch_.root());
    const auto given = store->Allocate(OwnerNumber(owner), pool, At(seconds));
    return given ? given->address.ToString() : given.error().message;
  }

  const ScratchRoot scratch_;
};

TEST_F(RailPartTest, AnotherPartWaits) {
  EXPECT_EQ(Add(1, "10.7.0.16-10.7.0.31", 10), "10.7.0.16") << "the first part is given at once";
  const std::string refused = Add(2, "10.7.0.32-10.7.0.47", 20);
  EXPECT_NE(refused.find("part of rail rail0 has changed, to 10.7.0.32-10.7.0.47"), std::string::npos)
      << refused;
  EXPECT_NE(Add(2, "10.7.0.32-10.7.0.47", 619).find("has changed"), std::string::npos)
      << "a refused ADD does not begin the time again";
  EXPECT_EQ(Add(2, "10.7.0.32-10.7.0.47", 620), "10.7.0.32");
}

TEST_F(RailPartTest, WhatWasItsOwnIsGivenMeanwhile) {
  EXPECT_EQ(Add(1, "10.7.0.16-10.7.0.18", 10), "10.7.0.16");
  EXPECT_EQ(Add(2, "10.7.0.16-10.7.0.63", 20), "10.7.0.17") << "the part has grown";
  EXPECT_EQ(Add(3, "10.7.0.16-10.7.0.63", 21), "10.7.0.18");
  EXPECT_NE(Add(4, "10.7.0.16-10.7.0.63", 22).find("no free address"), std::string::npos);
  EXPECT_EQ(Add(4, "10.7.0.16-10.7.0.63", 620), "10.7.0.19");
  EXPECT_EQ(Add(5, "10.7.0.16-10.7.0.31", 621), "10.7.0.20") << "it has shrunk";
}

TEST_F(RailPartTest, GoingBackWaitsToo) {
  EXPECT_EQ(Add(1, "10.7.0.16-10.7.0.31", 10), "10.7.0.16");
  (void)Add(2, "10.7.0.32-10.7.0.47", 20);
  EXPECT_NE(Add(2, "10.7.0.16-10.7.0.31", 30).find("has changed"), std::string::npos)
      << "another node may have had them";
  EXPECT_EQ(Add(2, "10.7.0.16-10.7.0.31", 630), "10.7.0.17");
}

}  // namespace
}  // namespace railhead::ipam
