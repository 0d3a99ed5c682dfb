// The store against a plain model: a map of addresses, walked over. RapidCheck makes up the steps,
// and of those that show a difference it prints the fewest.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "ipam/store/store.h"
#include "tests/support/ipam/support.h"
#include "tests/support/rapidcheck.h"
#include "tests/support/seed.h"

namespace railhead::ipam {
namespace {

using testing::MakePool;
using testing::OwnerNumber;
using testing::ScratchRoot;
using testing::StoreAt;

constexpr int kOwners = 40;

// Store time, as the test computes it. At a reboot it continues from the last commit, and then advances with
// the uptime.
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
  [[nodiscard]] int boot() const { return boot_; }
  [[nodiscard]] std::uint64_t store_ms() const { return committed_ + since_commit_; }
  [[nodiscard]] ClockReading Reading() const { return {"boot-" + std::to_string(boot_), boottime_, wall_}; }

 private:
  int boot_ = 0;
  std::uint64_t boottime_ = 5'000;
  std::uint64_t committed_ = 0;
  std::uint64_t since_commit_ = 5'000;
  std::int64_t wall_ = 1'700'000'000;
};

// The store must answer every operation as this model does.
class Model {
 public:
  explicit Model(AddressPool pool) : pool_(std::move(pool)) {
    reuse_delay_ms_ = static_cast<std::uint64_t>(pool_.reuse_delay.count()) * 1000;
    if (pool_.min_reuse_delay)
      min_reuse_delay_ms_ = static_cast<std::uint64_t>(pool_.min_reuse_delay->count()) * 1000;
    for (std::uint64_t i = 0; i < pool_.ranges.Size(); ++i) order_.push_back(*pool_.ranges.At(i));
  }

  void Pass(std::uint64_t ms) { clock_.Pass(ms); }
  void Reboot(std::uint64_t uptime_ms, std::int64_t wall) { clock_.Reboot(uptime_ms, wall); }
  std::optional<IpAddress> Allocate(int owner) {
    EnterBoot();
    if (held_.contains(owner)) return held_[owner];
    clock_.Committed();  // counting a refusal commits, too
    if (had_.contains(owner) && CoolsDown(had_[owner])) return AssignPrevious(owner);
    std::size_t start = 0;
    while (last_ && start < order_.size() && order_[start] <= *last_) ++start;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const IpAddress& address = order_[(start + i) % order_.size()];
      if (!CoolsDown(address) && !owner_of_.contains(address)) return Assign(address, owner);
    }
    return AllocateFromReuseDelay(owner);
  }
  // Allocates this address or none.
  bool AllocateSpecific(int owner, const IpAddress& wanted) {
    EnterBoot();
    const auto held = HeldBy(owner);
    if (held == wanted) return true;
    const bool again = !held && had_.contains(owner) && had_[owner] == wanted && CoolsDown(wanted);
    if (!again && (owner_of_.contains(wanted) || CoolsDown(wanted))) return false;
    if (held) StartReuseDelay(owner);
    clock_.Committed();
    Hold(wanted, owner);
    return true;
  }
  // The number of released addresses. The first write of a new boot also counts the owner's address from an
  // earlier boot.
  std::size_t Release(int owner) {
    const bool held = HeldBy(owner).has_value();
    EnterBoot();
    if (!HeldBy(owner)) return held ? 1 : 0;
    StartReuseDelay(owner);
    clock_.Committed();
    return 1;
  }

  [[nodiscard]] const AddressPool& pool() const { return pool_; }
  [[nodiscard]] ClockReading Now() const { return clock_.Reading(); }
  [[nodiscard]] std::uint64_t early_reuses() const { return early_reuses_; }
  [[nodiscard]] std::uint64_t exhausted() const { return exhausted_; }
  [[nodiscard]] std::optional<IpAddress> HeldBy(int owner) const {
    const auto held = held_.find(owner);
    return held == held_.end() ? std::nullopt : std::optional(held->second);
  }

 private:
  // The first write of a new boot starts the reuse delay of all held addresses. Until the delay ends, only
  // the previous owner gets an address.
  void EnterBoot() {
    if (clock_.boot() == boot_) return;
    boot_ = clock_.boot();
    for (const auto& [owner, address] : held_) {
      released_ms_[address] = clock_.store_ms();
      had_[owner] = address;
    }
    held_.clear();
    owner_of_.clear();
    clock_.Committed();
  }
  [[nodiscard]] bool CoolsDown(const IpAddress& address) const {
    const auto released = released_ms_.find(address);
    return released != released_ms_.end() && clock_.store_ms() < released->second + reuse_delay_ms_;
  }
  void StartReuseDelay(int owner) {
    released_ms_[held_[owner]] = clock_.store_ms();
    owner_of_.erase(held_[owner]);
    held_.erase(owner);
  }
  void Hold(const IpAddress& address, int owner) {
    released_ms_.erase(address);
    std::erase_if(had_, [&](const auto& one) { return one.first == owner || one.second == address; });
    owner_of_[address] = owner;
    held_[owner] = address;
  }
  IpAddress Assign(const IpAddress& address, int owner) {
    Hold(address, owner);
    last_ = address;
    return address;
  }
  IpAddress AssignPrevious(int owner) {
    const IpAddress address = had_[owner];
    Hold(address, owner);
    return address;
  }
  // Without a free address: the address that was released first, and of several the lowest.
  std::optional<IpAddress> AllocateFromReuseDelay(int owner) {
    std::optional<IpAddress> oldest;
    for (const auto& [address, since] : released_ms_) {
      if (!oldest || since < released_ms_[*oldest]) oldest = address;
    }
    if (!oldest || !min_reuse_delay_ms_ || clock_.store_ms() - released_ms_[*oldest] < *min_reuse_delay_ms_) {
      ++exhausted_;
      return std::nullopt;
    }
    ++early_reuses_;
    return Assign(*oldest, owner);
  }

  AddressPool pool_;
  std::uint64_t reuse_delay_ms_;
  std::optional<std::uint64_t> min_reuse_delay_ms_;
  std::vector<IpAddress> order_;
  Clock clock_;
  int boot_ = 0;
  std::uint64_t early_reuses_ = 0;
  std::uint64_t exhausted_ = 0;
  std::map<int, IpAddress> held_;
  std::map<int, IpAddress> had_;  // before the boot
  std::map<IpAddress, int> owner_of_;
  std::map<IpAddress, std::uint64_t> released_ms_;
  std::optional<IpAddress> last_;
};

// Counts over the steps of all runs.
struct Met {
  int exhausted = 0;
  int refused = 0;
  int early_reuses = 0;
};

struct Tested {
  StoreAt& store;
  Met& met;
};

using Step = rc::state::Command<Model, Tested>;

struct Pass : Step {
  std::uint64_t ms = *rc::gen::inRange<std::uint64_t>(0, 9'000);
  void apply(Model& model) const override { model.Pass(ms); }
  void show(std::ostream& out) const override { out << ms << " ms pass"; }
};

struct Reboot : Step {
  std::uint64_t uptime_ms = *rc::gen::inRange<std::uint64_t>(0, 9'000);
  std::int64_t wall = *rc::gen::inRange<std::int64_t>(0, 2'000'000'000);
  void apply(Model& model) const override { model.Reboot(uptime_ms, wall); }
  void show(std::ostream& out) const override {
    out << "reboot, up for " << uptime_ms << " ms at wall clock " << wall;
  }
};

struct Allocate : Step {
  int owner = *rc::gen::inRange(0, kOwners);
  void apply(Model& model) const override { (void)model.Allocate(owner); }
  void run(const Model& before, Tested& tested) const override {
    Model model = before;
    const auto wanted = model.Allocate(owner);
    const auto given = tested.store.Allocate(OwnerNumber(owner), before.pool(), before.Now());
    tested.met.early_reuses += model.early_reuses() > before.early_reuses() ? 1 : 0;
    if (!wanted) {
      RC_ASSERT(!given);
      RC_ASSERT(given.error().code == ErrorCode::kExhausted);
      ++tested.met.exhausted;
      return;
    }
    if (!given) RC_FAIL(Describe(given.error()));
    RC_ASSERT(given->address.ToString() == wanted->ToString());
  }
  void show(std::ostream& out) const override { out << "allocate for " << owner; }
};

struct AllocateSpecific : Step {
  explicit AllocateSpecific(const Model& model)
      : wanted(*model.pool().ranges.At(*rc::gen::inRange<std::uint64_t>(0, model.pool().ranges.Size()))) {}
  int owner = *rc::gen::inRange(0, kOwners);
  IpAddress wanted;
  void apply(Model& model) const override { (void)model.AllocateSpecific(owner, wanted); }
  void run(const Model& before, Tested& tested) const override {
    const bool able = Model(before).AllocateSpecific(owner, wanted);
    const auto given = tested.store.Allocate(
        {AddressRequest{OwnerNumber(owner), {before.pool()}, wanted, false}}, before.Now());
    if (!able) {
      RC_ASSERT(!given);
      RC_ASSERT(given.error().code == ErrorCode::kBusy);
      ++tested.met.refused;
      return;
    }
    if (!given) RC_FAIL(Describe(given.error()));
    RC_ASSERT(given->front().address.ToString() == wanted.ToString());
  }
  void show(std::ostream& out) const override { out << "allocate " << wanted.ToString() << " for " << owner; }
};

struct Release : Step {
  int owner = *rc::gen::inRange(0, kOwners);
  void apply(Model& model) const override { (void)model.Release(owner); }
  void run(const Model& before, Tested& tested) const override {
    const auto released = tested.store.Release(OwnerNumber(owner), before.Now());
    if (!released) RC_FAIL(Describe(released.error()));
    RC_ASSERT(*released == Model(before).Release(owner));
  }
  void show(std::ostream& out) const override { out << "release of " << owner; }
};

struct Look : Step {
  void run(const Model& model, Tested& tested) const override {
    RC_ASSERT(tested.store.Verify().value() == std::vector<std::string>{});
    const auto counters = tested.store.Counters().value()[model.pool().name];
    RC_ASSERT(counters.early_reuses == model.early_reuses());
    RC_ASSERT(counters.exhausted == model.exhausted());
    for (int owner = 0; owner < kOwners; ++owner) {
      const auto found = tested.store.Find(OwnerNumber(owner)).value();
      const auto held = model.HeldBy(owner);
      RC_ASSERT(found.size() == (held ? 1U : 0U));
      if (held) RC_ASSERT(found.front().address.ToString() == held->ToString());
    }
  }
  void show(std::ostream& out) const override { out << "look"; }
};

// Pools of at most 32 addresses: the store frees that many expired ones per
// allocation, so its order is exactly the model's.
TEST(StoreModel, SmallPools) {
  AddressPool with_early_reuse = MakePool("10.0.0.0/28", {}, 60);
  with_early_reuse.min_reuse_delay = std::chrono::seconds(5);
  const std::vector<AddressPool> pools{
      with_early_reuse,
      MakePool("10.0.0.0/27", {}, 20),
      MakePool("10.0.0.0/24", {"10.0.0.3-10.0.0.12", "10.0.0.100-10.0.0.110"}, 7,
               {"10.0.0.5", "10.0.0.104-10.0.0.106"}),
      MakePool("10.0.0.0/31", {}, 3),
      MakePool("10.0.0.9/32", {}, 0),
      MakePool("fd00::/124", {}, 15),
      MakePool("255.255.255.240/28", {"255.255.255.250-255.255.255.255"}, 5),
  };
  Met met;
  for (const AddressPool& pool : pools) {
    SCOPED_TRACE(pool.ranges.ToString());
    testing::ExpectProperty([&] {
      const ScratchRoot scratch;
      auto store = StoreAt::Open(scratch.root());
      if (!store) RC_FAIL(Describe(store.error()));
      Tested tested{*store, met};
      rc::state::check(
          Model(pool), tested,
          rc::state::gen::execOneOfWithArgs<Pass, Pass, Pass, Allocate, Allocate, Allocate, Allocate,
                                            AllocateSpecific, Release, Release, Release, Reboot, Look>());
    });
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(met.exhausted, 0) << "the steps never emptied a pool: they show less than they should";
  EXPECT_GT(met.early_reuses, 0) << "no address was ever reused early";
  EXPECT_GT(met.refused, 0) << "no fixed address was ever held or cooling down";
}

// Larger pools, where the order depends on when expired addresses are freed:
// never twice, never too early, and exhausted only when nothing is left.
TEST(StoreModel, LargerPoolKeepsTheRules) {
  std::mt19937_64 random(testing::Seed());
  const AddressPool pool = MakePool("10.0.0.0/24", {}, 60);
  const std::uint64_t size = pool.ranges.Size();
  ScratchRoot scratch;
  auto store = StoreAt::Open(scratch.root());
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
        std::uint64_t cooling_down = 0;
        for (const auto& [address, since] : released) cooling_down += now < since + 60'000 ? 1 : 0;
        ASSERT_EQ(held.size() + cooling_down, size) << "step " << step << ": " << given.error().message;
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
}  // namespace railhead::ipam
