// The same host part on every rail, against a plain model that walks over all of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ipam/alignment.h"
#include "ipam/store.h"
#include "tests/ipam/support.h"

namespace railhead {
namespace {

using testing::Ip;
using testing::MakePool;
using testing::OwnerNumber;
using testing::ScratchRoot;

constexpr int kOwners = 20;
constexpr std::uint64_t kRestMs = 20'000;

// One pool: what is taken, what rests since when, what was given last.
struct ModelPool {
  IpAddress base;
  std::vector<IpAddress> order;
  std::map<IpAddress, std::uint64_t> resting;
  std::map<IpAddress, int> held;
  std::optional<IpAddress> last;

  [[nodiscard]] bool IsFree(const IpAddress& address, std::uint64_t now) const {
    const auto rest = resting.find(address);
    return !held.contains(address) && (rest == resting.end() || now >= rest->second + kRestMs);
  }
  // In the order from behind `last`.
  [[nodiscard]] std::vector<IpAddress> FromLast() const {
    std::vector<IpAddress> all = order;
    const auto start =
        std::find_if(all.begin(), all.end(), [&](const auto& one) { return last && one > *last; });
    std::rotate(all.begin(), start, all.end());
    return all;
  }
  [[nodiscard]] std::optional<IpAddress> Next(std::uint64_t now) const {
    for (const IpAddress& address : FromLast()) {
      if (IsFree(address, now)) return address;
    }
    return std::nullopt;
  }
  void Give(const IpAddress& address, int owner) {
    resting.erase(address);
    held[address] = owner;
    last = address;
  }
  void Release(int owner, std::uint64_t now) {
    for (auto it = held.begin(); it != held.end();) {
      if (it->second != owner) {
        ++it;
        continue;
      }
      resting[it->first] = now;
      it = held.erase(it);
    }
  }
};

using Position = std::uint64_t (*)(const ModelPool&, const IpAddress&);
std::uint64_t HostPart(const ModelPool& pool, const IpAddress& address) {
  return *address.Minus(pool.base);
}
std::uint64_t Index(const ModelPool& pool, const IpAddress& address) {
  return static_cast<std::uint64_t>(std::find(pool.order.begin(), pool.order.end(), address) -
                                    pool.order.begin());
}

// The first position behind all that was given last, wrapping, that is free in each pool.
std::optional<std::vector<IpAddress>> Common(const std::vector<ModelPool>& pools, std::uint64_t now,
                                             Position at) {
  std::uint64_t start = 0;
  for (const ModelPool& pool : pools) {
    if (pool.last) start = std::max(start, at(pool, *pool.last) + 1);
  }
  std::optional<std::vector<IpAddress>> best;
  std::pair<bool, std::uint64_t> best_key;
  for (const IpAddress& first : pools.front().order) {
    const std::uint64_t position = at(pools.front(), first);
    std::vector<IpAddress> all;
    for (const ModelPool& pool : pools) {
      for (const IpAddress& address : pool.order) {
        if (at(pool, address) == position && pool.IsFree(address, now)) all.push_back(address);
      }
    }
    const std::pair<bool, std::uint64_t> key{position < start, position};
    if (all.size() != pools.size() || (best && best_key < key)) continue;
    best = all;
    best_key = key;
  }
  return best;
}

class AlignedComparison {
 public:
  AlignedComparison(std::uint64_t seed, std::vector<AddressPool> pools)
      : random_(seed), pools_(std::move(pools)) {
    for (const AddressPool& pool : pools_) {
      ModelPool model;
      model.base = pool.ranges.subnet().First();
      for (std::uint64_t i = 0; i < pool.ranges.Size(); ++i) model.order.push_back(*pool.ranges.At(i));
      models_.push_back(std::move(model));
      same_size_ = same_size_ && pool.ranges.Size() == pools_.front().ranges.Size();
    }
  }

  void Steps(int count) {
    auto store = AddressStore::Open(scratch_.root());
    ASSERT_TRUE(store) << store.error().message;
    for (int step = 0; step < count; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      now_ += random_() % 4'000;
      const int owner = static_cast<int>(random_() % kOwners);
      if (random_() % 3 == 0) {
        ASSERT_TRUE(store->Release(OwnerNumber(owner), Now()));
        for (ModelPool& model : models_) model.Release(owner, now_);
      } else if (random_() % 3 == 0) {
        Single(*store, owner);
      } else {
        Group(*store, owner);
      }
      if (::testing::Test::HasFatalFailure()) return;
    }
    EXPECT_EQ(store->Verify().value(), std::vector<std::string>{});
  }
  [[nodiscard]] int alike() const { return alike_; }
  [[nodiscard]] int apart() const { return apart_; }

 private:
  [[nodiscard]] ClockReading Now() const { return {"boot", now_, 0}; }
  [[nodiscard]] static bool Has(const ModelPool& model, int owner) {
    return std::any_of(model.held.begin(), model.held.end(),
                       [&](const auto& one) { return one.second == owner; });
  }

  // One rail alone, which brings the rails out of step.
  void Single(AddressStore& store, int owner) {
    const std::size_t i = random_() % pools_.size();
    if (Has(models_[i], owner)) return;
    const auto wanted = models_[i].Next(now_);
    const auto given = store.Allocate(
        {OwnerClaim{LinkOwner(OwnerNumber(owner), "r" + std::to_string(i)), {pools_[i]}, {}, true}}, Now());
    ASSERT_EQ(given.has_value(), wanted.has_value());
    if (!given) return;
    ASSERT_EQ(given->front().address.ToString(), wanted->ToString());
    models_[i].Give(*wanted, owner);
  }

  void Group(AddressStore& store, int owner) {
    for (const ModelPool& model : models_) {
      if (Has(model, owner)) return;
    }
    auto wanted = Common(models_, now_, HostPart);
    if (!wanted && same_size_) wanted = Common(models_, now_, Index);
    ++(wanted ? alike_ : apart_);
    if (!wanted) {
      wanted.emplace();
      for (const ModelPool& model : models_) {
        if (const auto next = model.Next(now_); next) wanted->push_back(*next);
      }
    }
    std::vector<OwnerClaim> claims;
    for (std::size_t i = 0; i < pools_.size(); ++i) {
      claims.push_back({LinkOwner(OwnerNumber(owner), "r" + std::to_string(i)), {pools_[i]}, {}, true});
    }
    const auto given = store.Allocate(claims, Now());
    ASSERT_EQ(given.has_value(), wanted->size() == pools_.size()) << (given ? "" : given.error().message);
    if (!given) return;
    for (std::size_t i = 0; i < pools_.size(); ++i) {
      ASSERT_EQ((*given)[i].address.ToString(), (*wanted)[i].ToString()) << "of rail " << i;
      models_[i].Give((*wanted)[i], owner);
    }
  }

  std::mt19937_64 random_;
  std::vector<AddressPool> pools_;
  std::vector<ModelPool> models_;
  bool same_size_ = true;
  std::uint64_t now_ = 1'000;
  ScratchRoot scratch_;
  int alike_ = 0;
  int apart_ = 0;
};

// Rests and the order of each pool are the model's too: an address that rests is not free in
// it, and none is given that is not behind the last one of its pool but after a wrap.
TEST(AlignedModel, RailsOfManyLayouts) {
  const std::uint64_t seed = testing::Seed();
  const int rest = static_cast<int>(kRestMs / 1000);
  const std::vector<std::vector<AddressPool>> fabrics{
      {MakePool("10.0.0.0/28", {}, rest), MakePool("10.1.0.0/28", {}, rest),
       MakePool("10.2.0.0/28", {}, rest)},
      {MakePool("10.0.0.0/24", {"10.0.0.10-10.0.0.29"}, rest, {"10.0.0.15", "10.0.0.20-10.0.0.22"}),
       MakePool("10.1.0.0/24", {"10.1.0.12-10.1.0.33"}, rest)},
      {MakePool("10.0.0.0/24", {"10.0.0.10-10.0.0.24"}, rest),
       MakePool("10.1.0.0/24", {"10.1.0.100-10.1.0.114"}, rest),
       MakePool("10.2.0.0/24", {"10.2.0.50-10.2.0.54", "10.2.0.70-10.2.0.79"}, rest)},
      {MakePool("fd00::/124", {}, rest), MakePool("fd00:1::/124", {}, rest)},
      {MakePool("255.255.255.240/28", {"255.255.255.250-255.255.255.255"}, rest),
       MakePool("10.0.0.0/28", {"10.0.0.8-10.0.0.15"}, rest)},
  };
  int apart = 0;
  for (const auto& pools : fabrics) {
    SCOPED_TRACE(pools.back().ranges.ToString());
    AlignedComparison run(seed, pools);
    run.Steps(2500);
    if (::testing::Test::HasFatalFailure()) return;
    EXPECT_GT(run.alike(), 0);
    apart += run.apart();
  }
  EXPECT_GT(apart, 0) << "no pools ever ran short of common addresses";
}

// Counts what is asked of it.
class CountedRuns : public RunMap {
 public:
  Result<std::optional<AddressRange>> AtOrBefore(const IpAddress& address) override {
    ++looks_;
    auto at = runs_.upper_bound(address);
    if (at == runs_.begin()) return std::nullopt;
    --at;
    return AddressRange{at->first, at->second};
  }
  Result<void> Put(const AddressRange& run) override {
    runs_[run.first] = run.last;
    return {};
  }
  Result<void> Erase(const IpAddress& first) override {
    runs_.erase(first);
    return {};
  }
  [[nodiscard]] int looks() const { return looks_; }

 private:
  std::map<IpAddress, IpAddress> runs_;
  int looks_ = 0;
};

// A /12 per rail, each with all but the last addresses taken; and two combs, of which no two
// teeth are alike: bounded, and then "none".
TEST(AlignedCost, IsBoundedWhateverIsTaken) {
  const AddressPool a = MakePool("10.0.0.0/12", {}, 0);
  const AddressPool b = MakePool("10.16.0.0/12", {}, 0);
  CountedRuns full_a;
  CountedRuns full_b;
  ASSERT_TRUE(full_a.Put({Ip("10.0.0.1"), Ip("10.15.255.250")}));
  ASSERT_TRUE(full_b.Put({Ip("10.16.0.1"), Ip("10.31.255.252")}));
  const auto found = NextAligned({{&a.ranges, &full_a, {}}, {&b.ranges, &full_b, {}}});
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((**found)[0].ToString(), "10.15.255.253");
  EXPECT_EQ((**found)[1].ToString(), "10.31.255.253");
  EXPECT_LE(full_a.looks() + full_b.looks(), 8);
  CountedRuns odd;
  CountedRuns even;
  for (std::uint64_t i = 1; i < 20'000; i += 2) {
    const IpAddress tooth = Ip("10.0.0.0").Plus(i);
    const IpAddress gap = Ip("10.16.0.0").Plus(i + 1);
    ASSERT_TRUE(odd.Put({tooth, tooth}) && even.Put({gap, gap}));
  }
  const auto none = NextAligned({{&a.ranges, &odd, Ip("10.0.0.7")}, {&b.ranges, &even, Ip("10.16.0.9")}});
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  EXPECT_LE(odd.looks() + even.looks(), 400);
}

}  // namespace
}  // namespace railhead
