// The same host part on every rail, against a plain model that walks over all addresses. RapidCheck generates
// and shrinks the steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "ipam/store/aligned.h"
#include "ipam/store/runs.h"
#include "ipam/store/store.h"
#include "tests/support/ipam/support.h"
#include "tests/support/rapidcheck.h"

namespace railhead::ipam {
namespace {

using testing::Ip;
using testing::MakePool;
using testing::OwnerNumber;
using testing::ScratchRoot;
using testing::StoreAt;

constexpr int kOwners = 20;
constexpr std::uint64_t kReuseDelayMs = 20'000;

// One pool: held addresses, released addresses with their time, the address that was allocated last.
struct ModelPool {
  IpAddress base;
  std::vector<IpAddress> order;
  std::map<IpAddress, std::uint64_t> cooling_down;
  std::map<IpAddress, int> held;
  std::optional<IpAddress> last;

  [[nodiscard]] bool Has(int owner) const {
    return std::any_of(held.begin(), held.end(), [&](const auto& one) { return one.second == owner; });
  }
  [[nodiscard]] bool IsFree(const IpAddress& address, std::uint64_t now) const {
    const auto released = cooling_down.find(address);
    return !held.contains(address) &&
           (released == cooling_down.end() || now >= released->second + kReuseDelayMs);
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
  void Assign(const IpAddress& address, int owner) {
    cooling_down.erase(address);
    held[address] = owner;
    last = address;
  }
  void Release(int owner, std::uint64_t now) {
    for (auto it = held.begin(); it != held.end();) {
      if (it->second != owner) {
        ++it;
        continue;
      }
      cooling_down[it->first] = now;
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

// The first position after every pool's last assignment, wrapping around, that is free in each pool.
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

class Fabric {
 public:
  explicit Fabric(std::vector<AddressPool> pools) : pools_(std::move(pools)) {
    for (const AddressPool& pool : pools_) {
      ModelPool model;
      model.base = pool.ranges.subnet().First();
      for (std::uint64_t i = 0; i < pool.ranges.Size(); ++i) model.order.push_back(*pool.ranges.At(i));
      models_.push_back(std::move(model));
      same_size_ = same_size_ && pool.ranges.Size() == pools_.front().ranges.Size();
    }
  }

  void Pass(std::uint64_t ms) { now_ += ms; }
  void Release(int owner) {
    for (ModelPool& model : models_) model.Release(owner, now_);
  }
  // Allocates on one rail alone, which brings the rails out of step.
  std::optional<IpAddress> AllocateOf(std::size_t rail, int owner) {
    const auto address = models_[rail].Next(now_);
    if (address) models_[rail].Assign(*address, owner);
    return address;
  }
  // Allocates on every rail, aligned where possible. Empty if a rail has no free address.
  std::vector<IpAddress> Allocate(int owner) {
    auto addresses = Alike();
    if (!addresses) {
      addresses.emplace();
      for (const ModelPool& model : models_) {
        if (const auto next = model.Next(now_); next) addresses->push_back(*next);
      }
    }
    if (addresses->size() != models_.size()) return {};
    for (std::size_t i = 0; i < models_.size(); ++i) models_[i].Assign((*addresses)[i], owner);
    return *addresses;
  }

  [[nodiscard]] std::optional<std::vector<IpAddress>> Alike() const {
    auto addresses = Common(models_, now_, HostPart);
    if (!addresses && same_size_) addresses = Common(models_, now_, Index);
    return addresses;
  }
  [[nodiscard]] bool Has(int owner) const {
    return std::any_of(models_.begin(), models_.end(), [&](const auto& model) { return model.Has(owner); });
  }
  [[nodiscard]] bool HasOf(std::size_t rail, int owner) const { return models_[rail].Has(owner); }
  [[nodiscard]] const std::vector<AddressPool>& pools() const { return pools_; }
  [[nodiscard]] ClockReading Now() const { return {"boot", now_, 0}; }

 private:
  std::vector<AddressPool> pools_;
  std::vector<ModelPool> models_;
  bool same_size_ = true;
  std::uint64_t now_ = 1'000;
};

// How often each case occurred, in all runs.
struct Met {
  int alike = 0;
  int apart = 0;
};

struct Tested {
  StoreAt& store;
  Met& met;
};

using Step = rc::state::Command<Fabric, Tested>;

AddressRequest RequestOf(const Fabric& fabric, std::size_t rail, int owner) {
  return {LinkOwner(OwnerNumber(owner), "r" + std::to_string(rail)), {fabric.pools()[rail]}, {}, true};
}

struct Pass : Step {
  std::uint64_t ms = *rc::gen::inRange<std::uint64_t>(0, 12'000);
  void apply(Fabric& fabric) const override { fabric.Pass(ms); }
  void show(std::ostream& out) const override { out << ms << " ms pass"; }
};

struct Release : Step {
  int owner = *rc::gen::inRange(0, kOwners);
  void apply(Fabric& fabric) const override { fabric.Release(owner); }
  void run(const Fabric& before, Tested& tested) const override {
    RC_ASSERT(tested.store.Release(OwnerNumber(owner), before.Now()).has_value());
  }
  void show(std::ostream& out) const override { out << "release of " << owner; }
};

struct OneRail : Step {
  explicit OneRail(const Fabric& fabric) : rail(*rc::gen::inRange<std::size_t>(0, fabric.pools().size())) {}
  std::size_t rail;
  int owner = *rc::gen::inRange(0, kOwners);
  void checkPreconditions(const Fabric& fabric) const override { RC_PRE(!fabric.HasOf(rail, owner)); }
  void apply(Fabric& fabric) const override { (void)fabric.AllocateOf(rail, owner); }
  void run(const Fabric& before, Tested& tested) const override {
    const auto wanted = Fabric(before).AllocateOf(rail, owner);
    const auto given = tested.store.Allocate({RequestOf(before, rail, owner)}, before.Now());
    RC_ASSERT(given.has_value() == wanted.has_value());
    if (given) RC_ASSERT(given->front().address.ToString() == wanted->ToString());
  }
  void show(std::ostream& out) const override { out << "allocate of rail " << rail << " for " << owner; }
};

struct AllRails : Step {
  int owner = *rc::gen::inRange(0, kOwners);
  void checkPreconditions(const Fabric& fabric) const override { RC_PRE(!fabric.Has(owner)); }
  void apply(Fabric& fabric) const override { (void)fabric.Allocate(owner); }
  void run(const Fabric& before, Tested& tested) const override {
    ++(before.Alike() ? tested.met.alike : tested.met.apart);
    const auto wanted = Fabric(before).Allocate(owner);
    std::vector<AddressRequest> requests;
    for (std::size_t i = 0; i < before.pools().size(); ++i) requests.push_back(RequestOf(before, i, owner));
    const auto given = tested.store.Allocate(requests, before.Now());
    RC_ASSERT(given.has_value() == !wanted.empty());
    for (std::size_t i = 0; i < wanted.size(); ++i)
      RC_ASSERT((*given)[i].address.ToString() == wanted[i].ToString());
  }
  void show(std::ostream& out) const override { out << "allocate of all rails for " << owner; }
};

struct Look : Step {
  void run(const Fabric& /*before*/, Tested& tested) const override {
    RC_ASSERT(tested.store.Verify().value() == std::vector<std::string>{});
  }
  void show(std::ostream& out) const override { out << "look"; }
};

// The model also keeps reuse delays and the order of each pool. An address in its reuse delay is not free.
// Each pool allocates the addresses after its last one before it wraps.
TEST(AlignedModel, RailsOfManyLayouts) {
  const int delay = static_cast<int>(kReuseDelayMs / 1000);
  const std::vector<std::vector<AddressPool>> fabrics{
      {MakePool("10.0.0.0/28", {}, delay), MakePool("10.1.0.0/28", {}, delay),
       MakePool("10.2.0.0/28", {}, delay)},
      {MakePool("10.0.0.0/24", {"10.0.0.10-10.0.0.29"}, delay, {"10.0.0.15", "10.0.0.20-10.0.0.22"}),
       MakePool("10.1.0.0/24", {"10.1.0.12-10.1.0.33"}, delay)},
      {MakePool("10.0.0.0/24", {"10.0.0.10-10.0.0.24"}, delay),
       MakePool("10.1.0.0/24", {"10.1.0.100-10.1.0.114"}, delay),
       MakePool("10.2.0.0/24", {"10.2.0.50-10.2.0.54", "10.2.0.70-10.2.0.79"}, delay)},
      {MakePool("fd00::/124", {}, delay), MakePool("fd00:1::/124", {}, delay)},
      {MakePool("255.255.255.240/28", {"255.255.255.250-255.255.255.255"}, delay),
       MakePool("10.0.0.0/28", {"10.0.0.8-10.0.0.15"}, delay)},
  };
  int apart = 0;
  for (const auto& pools : fabrics) {
    SCOPED_TRACE(pools.back().ranges.ToString());
    Met met;
    testing::ExpectProperty([&] {
      const ScratchRoot scratch;
      auto store = StoreAt::Open(scratch.root());
      if (!store) RC_FAIL(Describe(store.error()));
      Tested tested{*store, met};
      rc::state::check(Fabric(pools), tested,
                       rc::state::gen::execOneOfWithArgs<Pass, Pass, Release, Release, OneRail, AllRails,
                                                         AllRails, Look>());
    });
    if (HasFatalFailure()) return;
    EXPECT_GT(met.alike, 0);
    apart += met.apart;
  }
  EXPECT_GT(apart, 0) << "no pools ever ran short of common addresses";
}

// Counts the lookups.
class CountedRuns : public RunMap {
 public:
  Result<std::optional<IpRange>> AtOrBefore(const IpAddress& address) override {
    ++looks_;
    auto at = runs_.upper_bound(address);
    if (at == runs_.begin()) return std::nullopt;
    --at;
    return IpRange{at->first, at->second};
  }
  Result<void> Put(const IpRange& run) override {
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

// First a /12 per rail, with all but the last addresses taken. Then two combs whose teeth never coincide: the
// search stops at its bound and answers "none".
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
}  // namespace railhead::ipam
