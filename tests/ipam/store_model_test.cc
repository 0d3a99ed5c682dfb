// The store against a plain model: a map of addresses, walked over.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "ipam/store.h"
#include "tests/ipam/support.h"

namespace railhead {
namespace {

using testing::MakePool;
using testing::OwnerNumber;
using testing::ScratchRoot;

constexpr int kOwners = 40;

class Model {
 public:
  explicit Model(const AddressPool& pool) : rest_ms_(static_cast<std::uint64_t>(pool.rest.count()) * 1000) {
    if (pool.min_rest) min_rest_ms_ = static_cast<std::uint64_t>(pool.min_rest->count()) * 1000;
    for (std::uint64_t i = 0; i < pool.ranges.Size(); ++i) order_.push_back(*pool.ranges.At(i));
  }

  // The first to write in a new boot: what was held rests from now on, and only its owner may
  // have it before that is over.
  void EnterBoot(std::uint64_t now) {
    for (const auto& [owner, address] : held_) {
      rest_since_[address] = now;
      had_[owner] = address;
    }
    held_.clear();
    owner_of_.clear();
  }
  std::optional<IpAddress> Allocate(int owner, std::uint64_t now) {
    if (held_.contains(owner)) return held_[owner];
    if (had_.contains(owner) && Rests(had_[owner], now)) return GiveAgain(owner);
    std::size_t start = 0;
    while (last_ && start < order_.size() && order_[start] <= *last_) ++start;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const IpAddress& address = order_[(start + i) % order_.size()];
      if (Rests(address, now) || owner_of_.contains(address)) continue;
      return Give(address, owner);
    }
    return AllocateRested(owner, now);
  }
  // This one or none.
  bool AllocateThis(int owner, const IpAddress& wanted, std::uint64_t now) {
    const auto held = held_.find(owner);
    if (held != held_.end() && held->second == wanted) return true;
    if (held == held_.end() && had_.contains(owner) && had_[owner] == wanted && Rests(wanted, now)) {
      return GiveAgain(owner).has_value();
    }
    if (owner_of_.contains(wanted) || Rests(wanted, now)) return false;
    Release(owner, now);
    Hold(wanted, owner);
    return true;
  }
  bool Release(int owner, std::uint64_t now) {
    const auto held = held_.find(owner);
    if (held == held_.end()) return false;
    rest_since_[held->second] = now;
    owner_of_.erase(held->second);
    held_.erase(held);
    return true;
  }
  [[nodiscard]] std::uint64_t shortened() const { return shortened_; }
  [[nodiscard]] std::optional<IpAddress> HeldBy(int owner) const {
    const auto held = held_.find(owner);
    return held == held_.end() ? std::nullopt : std::optional(held->second);
  }

 private:
  [[nodiscard]] bool Rests(const IpAddress& address, std::uint64_t now) const {
    const auto rest = rest_since_.find(address);
    return rest != rest_since_.end() && now < rest->second + rest_ms_;
  }

  void Hold(const IpAddress& address, int owner) {
    rest_since_.erase(address);
    std::erase_if(had_, [&](const auto& one) { return one.first == owner || one.second == address; });
    owner_of_[address] = owner;
    held_[owner] = address;
  }
  std::optional<IpAddress> Give(const IpAddress& address, int owner) {
    Hold(address, owner);
    last_ = address;
    return address;
  }
  std::optional<IpAddress> GiveAgain(int owner) {
    const IpAddress address = had_[owner];
    Hold(address, owner);
    return address;
  }
  // Nothing is free: what has rested longest, and of several the lowest.
  std::optional<IpAddress> AllocateRested(int owner, std::uint64_t now) {
    std::optional<IpAddress> longest;
    for (const auto& [address, since] : rest_since_) {
      if (!longest || since < rest_since_[*longest]) longest = address;
    }
    if (!longest || !min_rest_ms_ || now - rest_since_[*longest] < *min_rest_ms_) return std::nullopt;
    ++shortened_;
    return Give(*longest, owner);
  }

  std::uint64_t rest_ms_;
  std::optional<std::uint64_t> min_rest_ms_;
  std::uint64_t shortened_ = 0;
  std::vector<IpAddress> order_;
  std::map<int, IpAddress> held_;
  std::map<int, IpAddress> had_;  // before the boot
  std::map<IpAddress, int> owner_of_;
  std::map<IpAddress, std::uint64_t> rest_since_;
  std::optional<IpAddress> last_;
};

// Store time, kept by the test in its own way: it stands still from the last
// commit to a reboot, and goes on with the uptime.
class Clock {
 public:
  void Pass(std::uint64_t ms) {
    boottime_ += ms;
    since_commit_ += ms;
  }
  void Committed() {
    committed_ += since_commit_;
    since_commit_ = 0;
  }
  void Reboot(std::uint64_t uptime_ms, std::int64_t wall) {
    ++boot_;
    boottime_ = uptime_ms;
    since_commit_ = uptime_ms;
    wall_ = wall;
  }
  [[nodiscard]] std::uint64_t store_ms() const { return committed_ + since_commit_; }
  [[nodiscard]] ClockReading Reading() const { return {"boot-" + std::to_string(boot_), boottime_, wall_}; }

 private:
  int boot_ = 0;
  std::uint64_t boottime_ = 5'000;
  std::uint64_t committed_ = 0;
  std::uint64_t since_commit_ = 5'000;
  std::int64_t wall_ = 1'700'000'000;
};

class Comparison {
 public:
  Comparison(std::uint64_t seed, const AddressPool& pool) : random_(seed), pool_(pool), model_(pool) {}

  void Steps(int count) {
    auto store = AddressStore::Open(scratch_.root());
    ASSERT_TRUE(store) << store.error().message;
    for (int step = 0; step < count; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      Step(*store);
      if (::testing::Test::HasFatalFailure()) return;
      if (step % 100 == 0) ExpectSame(*store);
    }
    ExpectSame(*store);
  }

 private:
  void Step(AddressStore& store) {
    clock_.Pass(random_() % 3'000);
    if (random_() % 100 == 0)
      clock_.Reboot(random_() % 9'000, static_cast<std::int64_t>(random_() % 2'000'000'000));
    const int owner = static_cast<int>(random_() % kOwners);
    bool held_in_earlier_boot = false;
    if (const std::string boot = clock_.Reading().boot_id; boot != boot_) {
      boot_ = boot;
      held_in_earlier_boot = model_.HeldBy(owner).has_value();
      model_.EnterBoot(clock_.store_ms());
      clock_.Committed();
    }
    if (random_() % 8 == 0) {
      StepFixed(store, owner);
    } else if (random_() % 5 < 3) {
      const bool had = model_.HeldBy(owner).has_value();
      const auto wanted = model_.Allocate(owner, clock_.store_ms());
      const auto given = store.Allocate(OwnerNumber(owner), pool_, clock_.Reading());
      ASSERT_EQ(given.has_value(), wanted.has_value())
          << (given ? given->address.ToString() : given.error().message);
      if (!given) {
        ASSERT_EQ(given.error().code, ErrorCode::kExhausted);
        ++exhausted_;
        clock_.Committed();
        return;
      }
      ASSERT_EQ(given->address.ToString(), wanted->ToString());
      if (!had) clock_.Committed();
    } else {
      const bool wanted = model_.Release(owner, clock_.store_ms());
      const auto released = store.Release(OwnerNumber(owner), clock_.Reading());
      ASSERT_TRUE(released);
      ASSERT_EQ(*released, wanted || held_in_earlier_boot ? 1U : 0U);
      if (wanted) clock_.Committed();
    }
  }
  void StepFixed(AddressStore& store, int owner) {
    const IpAddress wanted = *pool_.ranges.At(random_() % pool_.ranges.Size());
    const bool had = model_.HeldBy(owner) == wanted;
    const bool able = model_.AllocateThis(owner, wanted, clock_.store_ms());
    const auto given =
        store.Allocate({OwnerClaim{OwnerNumber(owner), {pool_}, wanted, false}}, clock_.Reading());
    ASSERT_EQ(given.has_value(), able) << (given ? wanted.ToString() : given.error().message);
    if (!given) {
      ASSERT_EQ(given.error().code, ErrorCode::kBusy);
      ++refused_;
      return;
    }
    ASSERT_EQ(given->front().address, wanted);
    if (!had) clock_.Committed();
  }
  void ExpectSame(const AddressStore& store) {
    const auto findings = store.Verify();
    ASSERT_TRUE(findings) << findings.error().message;
    ASSERT_EQ(*findings, std::vector<std::string>{});
    const auto counters = store.Counters().value()[pool_.name];
    ASSERT_EQ(counters.rest_shortened, model_.shortened());
    ASSERT_EQ(counters.exhausted, static_cast<std::uint64_t>(exhausted_));
    for (int owner = 0; owner < kOwners; ++owner) {
      const auto found = store.Find(OwnerNumber(owner));
      ASSERT_TRUE(found);
      const auto held = model_.HeldBy(owner);
      ASSERT_EQ(found->size(), held ? 1U : 0U);
      if (held) {
        ASSERT_EQ(found->front().address, *held);
      }
    }
  }

 public:
  [[nodiscard]] int exhausted() const { return exhausted_; }
  [[nodiscard]] int refused() const { return refused_; }
  [[nodiscard]] std::uint64_t shortened() const { return model_.shortened(); }

 private:
  std::mt19937_64 random_;
  AddressPool pool_;
  Model model_;
  Clock clock_;
  std::string boot_ = "boot-0";
  ScratchRoot scratch_;
  int exhausted_ = 0;
  int refused_ = 0;
};

// Pools of at most 32 addresses: the store frees that many rested ones per
// allocation, so its order is exactly the model's.
TEST(StoreModel, SmallPools) {
  const std::uint64_t seed = testing::Seed();
  AddressPool shortened = MakePool("10.0.0.0/28", {}, 60);
  shortened.min_rest = std::chrono::seconds(5);
  const std::vector<AddressPool> pools{
      shortened,
      MakePool("10.0.0.0/27", {}, 20),
      MakePool("10.0.0.0/24", {"10.0.0.3-10.0.0.12", "10.0.0.100-10.0.0.110"}, 7,
               {"10.0.0.5", "10.0.0.104-10.0.0.106"}),
      MakePool("10.0.0.0/31", {}, 3),
      MakePool("10.0.0.9/32", {}, 0),
      MakePool("fd00::/124", {}, 15),
      MakePool("255.255.255.240/28", {"255.255.255.250-255.255.255.255"}, 5),
  };
  int exhausted = 0;
  int refused = 0;
  std::uint64_t rests_shortened = 0;
  for (const AddressPool& pool : pools) {
    SCOPED_TRACE(pool.ranges.ToString());
    Comparison run(seed, pool);
    run.Steps(3000);
    if (HasFatalFailure()) return;
    exhausted += run.exhausted();
    refused += run.refused();
    rests_shortened += run.shortened();
  }
  EXPECT_GT(exhausted, 0) << "the steps never emptied a pool: they show less than they should";
  EXPECT_GT(rests_shortened, 0U) << "no rest was ever shortened";
  EXPECT_GT(refused, 0) << "no address that was asked for was ever taken or resting";
}

// Larger pools, where the order depends on when rested addresses are freed:
// never twice, never too early, and exhausted only when nothing is left.
TEST(StoreModel, LargerPoolKeepsTheRules) {
  std::mt19937_64 random(testing::Seed());
  const AddressPool pool = MakePool("10.0.0.0/24", {}, 60);
  const std::uint64_t size = pool.ranges.Size();
  ScratchRoot scratch;
  auto store = AddressStore::Open(scratch.root());
  ASSERT_TRUE(store);
  std::map<int, IpAddress> held;
  std::map<IpAddress, std::uint64_t> released;
  std::uint64_t now = 1'000;
  int exhausted = 0;
  for (int step = 0; step < 8000; ++step) {
    now += random() % 150;
    const ClockReading reading{"boot", now, 0};
    const int owner = static_cast<int>(random() % 400);
    const bool filling = (step / 1000) % 2 == 0;
    if (random() % 10 < (filling ? 8U : 3U)) {
      const auto given = store->Allocate(OwnerNumber(owner), pool, reading);
      if (!given) {
        ++exhausted;
        std::uint64_t resting = 0;
        for (const auto& [address, since] : released) resting += now < since + 60'000 ? 1 : 0;
        ASSERT_EQ(held.size() + resting, size) << "step " << step << ": " << given.error().message;
        continue;
      }
      if (held.contains(owner)) {
        ASSERT_EQ(held[owner], given->address);
        continue;
      }
      for (const auto& [other, address] : held) ASSERT_NE(address, given->address) << "step " << step;
      if (released.contains(given->address)) {
        ASSERT_GE(now, released[given->address] + 60'000) << "step " << step;
      }
      released.erase(given->address);
      held[owner] = given->address;
    } else if (held.contains(owner)) {
      ASSERT_EQ(store->Release(OwnerNumber(owner), reading).value_or(0), 1U);
      released[held[owner]] = now;
      held.erase(owner);
    }
  }
  EXPECT_GT(exhausted, 0);
  EXPECT_EQ(store->Verify().value(), std::vector<std::string>{});
}

}  // namespace
}  // namespace railhead
