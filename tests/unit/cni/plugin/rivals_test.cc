// Which answers to address probes are conflicts, and what of them stays on record.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "cni/attachment/acquire.h"
#include "cni/state/attach_log.h"
#include "netns/base/files.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

using std::chrono::milliseconds;

MacAddress MacNumber(int number) {
  return MacAddress{{2, 0, 0, 0, 0, static_cast<std::uint8_t>(number)}};
}
IpAddress AddressNumber(int number, bool v4) {
  return IpAddress::Parse((v4 ? "10.0.0." : "fd00::") + std::to_string(number)).value();
}

struct Model {
  std::vector<RivalClaim> log;

  [[nodiscard]] std::set<IpAddress> ClaimedBy(const MacAddress& source, bool v4, milliseconds now) const {
    std::set<IpAddress> claimed;
    for (const RivalClaim& one : log) {
      const bool counts = one.boottime <= now && now - one.boottime <= attachment::kClaimCounts;
      if (counts && one.source == source && one.address.IsV4() == v4) claimed.insert(one.address);
    }
    return claimed;
  }
  [[nodiscard]] bool Heard(const AddressConflict& one, milliseconds now) const {
    for (const RivalClaim& claim : log) {
      const auto age = now - claim.boottime;
      if (claim.source == one.source && claim.address == one.claim.address &&
          age >= attachment::kClaimConfirms && age <= attachment::kClaimCounts)
        return true;
    }
    return false;
  }
};

// Random stations and times against the rule in words: ignored from the third address of a family on.
TEST(RivalsTest, AsTheRuleSays) {
  std::mt19937 random(6);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same choices in every run
  Model model;
  milliseconds now = std::chrono::hours(5);
  std::map<std::string, int> seen;
  for (int add = 0; add < 3000; ++add) {
    now += std::chrono::seconds(random() % 120);
    std::vector<AddressConflict> found;
    for (std::size_t i = 0; i < 1 + random() % 3; ++i) {
      const bool v4 = random() % 3 != 0;
      const MacAddress source = MacNumber(static_cast<int>(random() % 60));
      found.push_back(
          {{1, MacNumber(200), AddressNumber(static_cast<int>(1 + random() % 9), v4)}, source, source});
    }
    const auto verdict = attachment::JudgeConflicts(found, model.log, now);
    ASSERT_EQ(verdict.conflicts.size() + verdict.ignored.size(), found.size());
    Model with = model;
    for (const AddressConflict& one : found)
      with.log.push_back({{}, "", one.claim.address, one.other, one.source, now, false});
    for (const AddressConflict& one : verdict.ignored) {
      ASSERT_GT(with.ClaimedBy(one.source, one.claim.address.IsV4(), now).size(), 2U);
      ++seen["ignored"];
    }
    for (const AddressConflict& one : verdict.conflicts) {
      ASSERT_LE(with.ClaimedBy(one.source, one.claim.address.IsV4(), now).size(), 2U);
      const auto confirmed =
          std::count(verdict.confirmed.begin(), verdict.confirmed.end(), one.claim.address);
      if (model.Heard(one, now)) {
        ASSERT_GE(confirmed, 1);
        ++seen["confirmed"];
      }
      ++seen["conflict"];
    }
    model = std::move(with);
    if (model.log.size() > 400) model.log.erase(model.log.begin(), model.log.begin() + 100);
  }
  for (const char* what : {"ignored", "confirmed", "conflict"}) EXPECT_GT(seen[what], 50) << what;
}

TEST(RivalsTest, TheLogKeepsThemBesideTimings) {
  const TempRoot root;
  RivalClaim claim{{"rails", "c1", "net1"},
                   "0000:43:00.2",
                   AddressNumber(7, true),
                   MacNumber(1),
                   MacNumber(2),
                   milliseconds(12345),
                   true};
  ASSERT_TRUE(MakeDirectories(root.root().Path("/run/railhead")));
  LogRivalClaim(root.root(), claim);
  LogAttachTiming(root.root(), {{"rails", "c1", "net1"}, 1, "", {{"move", std::chrono::microseconds(5)}}});
  AppendToAttachLog(root.root(), R"({"claimed":"10.0.0.300","by":"02:00:00:00:00:01"})"
                                 "\n");
  EXPECT_EQ(ReadRivalClaims(root.root()).value(), std::vector<RivalClaim>{claim});
  EXPECT_EQ(ReadAttachTimings(root.root())->size(), 1U);
  const auto claimants = ListClaimants(root.root(), milliseconds(12344));
  ASSERT_TRUE(claimants && claimants->size() == 1);
  EXPECT_EQ(claimants->front().source, MacNumber(2));
  EXPECT_TRUE(ListClaimants(root.root(), milliseconds(12345))->empty());
}

}  // namespace
}  // namespace railhead::testing
