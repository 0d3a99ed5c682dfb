// The store's clock advances with the machine's, whichever call waits for which.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "ipam/plugin/ipam_plugin.h"
#include "ipam/store/ledger.h"
#include "ipam/store/store.h"
#include "tests/support/ipam/support.h"
#include "tests/support/rapidcheck.h"

namespace railhead::ipam {
namespace {

using testing::IsStoreLocked;
using testing::MakePool;
using testing::OwnerNumber;
using testing::ScratchRoot;
using testing::WhileItWaits;

constexpr std::uint64_t kReuseDelayMs = 20'000;

struct Operation {
  enum class Kind : std::uint8_t {
    kAllocate,
    kRelease,
    kQuarantine,
    kReleaseSome,
    kTry,
    kReleaseEarlierBoots,
    kWriteOther,
    kReboot,
    kSetWallClock,
  };
  Kind kind = Kind::kAllocate;
  int owner = 0;
  std::uint64_t before_ms = 0;  // that pass before it
  bool waits = false;           // for the lock, while `wait_ms` pass
  std::uint64_t wait_ms = 0;
  std::int64_t wall_seconds = 0;
};

std::ostream& operator<<(std::ostream& out, const Operation& operation) {
  return out << "{kind " << static_cast<int>(operation.kind) << ", owner " << operation.owner << ", after "
             << operation.before_ms << " ms, waits "
             << (operation.waits ? std::to_string(operation.wait_ms) + " ms" : "not") << "}";
}

rc::Gen<Operation> AnyOperation() {
  using Kind = Operation::Kind;
  return rc::gen::build<Operation>(
      rc::gen::set(&Operation::kind, rc::gen::weightedElement<Kind>({{8, Kind::kAllocate},
                                                                     {6, Kind::kRelease},
                                                                     {2, Kind::kQuarantine},
                                                                     {1, Kind::kReleaseSome},
                                                                     {1, Kind::kTry},
                                                                     {1, Kind::kReleaseEarlierBoots},
                                                                     {2, Kind::kWriteOther},
                                                                     {1, Kind::kReboot},
                                                                     {2, Kind::kSetWallClock}})),
      rc::gen::set(&Operation::owner, rc::gen::inRange(0, 6)),
      rc::gen::set(&Operation::before_ms, rc::gen::inRange<std::uint64_t>(0, 9'000)),
      rc::gen::set(&Operation::waits, rc::gen::arbitrary<bool>()),
      rc::gen::set(&Operation::wait_ms, rc::gen::inRange<std::uint64_t>(0, 9'000)),
      rc::gen::set(&Operation::wall_seconds, rc::gen::inRange<std::int64_t>(0, 2'000'000'000)));
}

// The machine: its clocks, the operations on the store, and the answers that the clocks require.
class Machine {
 public:
  Machine() { (void)Open(); }

  void Do(const Operation& operation) {
    using Kind = Operation::Kind;
    boottime_ms_ += operation.before_ms;
    if (operation.kind == Kind::kReboot) return Reboot(operation);
    if (operation.kind == Kind::kSetWallClock) {
      wall_seconds_ = operation.wall_seconds;
      return;
    }
    Run(operation, [&] { Call(operation); });
    Judge();
    Look();
  }
  [[nodiscard]] int given() const { return given_; }

 private:
  struct Moment {
    int boot = 0;
    std::uint64_t ms = 0;
  };

  ClockSource Clocks() {
    return [this]() -> Result<ClockReading> {
      if (!IsStoreLocked(scratch_.root())) read_unlocked_ = true;
      return ClockReading{BootName(), boottime_ms_, wall_seconds_};
    };
  }
  [[nodiscard]] std::string BootName() const { return "boot-" + std::to_string(boot_); }
  AddressStore Open() {
    auto store = AddressStore::Open(scratch_.root(), Clocks());
    if (!store) RC_FAIL(Describe(store.error()));
    return std::move(*store);
  }
  void Run(const Operation& operation, const std::function<void()>& call) {
    if (!operation.waits) return call();
    WhileItWaits(scratch_.root(), call, [&] { boottime_ms_ += operation.wait_ms; });
  }

  // In a thread of its own: the answer is judged later.
  void Call(const Operation& operation) {
    using Kind = Operation::Kind;
    record_.reset();
    error_.reset();
    released_.clear();
    auto store = AddressStore::Open(scratch_.root(), Clocks());
    if (!store) {
      error_ = store.error();
      return;
    }
    const AddressOwner owner = OwnerNumber(operation.owner);
    switch (operation.kind) {
      case Kind::kAllocate:
        return Keep(store->Allocate(owner, pool_));
      case Kind::kQuarantine: {
        const auto held = store->Find(owner);
        if (held && !held->empty())
          (void)store->Quarantine(owner, held->front().address, std::chrono::seconds(30));
        return;
      }
      case Kind::kRelease:
        NoteHeld(*store, owner);
        error_ = ErrorOf(store->Release(owner));
        return;
      case Kind::kReleaseSome:
        for (int i = 0; i < 3; ++i) NoteHeld(*store, OwnerNumber(i));
        error_ = ErrorOf(store->ReleaseWhere([](const AddressRecord& record) {
          return record.owner == OwnerNumber(0) || record.owner == OwnerNumber(1) ||
                 record.owner == OwnerNumber(2);
        }));
        return;
      case Kind::kTry:
        (void)store->TryAllocate({AddressRequest{owner, {pool_}, {}}});
        return;
      case Kind::kReleaseEarlierBoots:
        error_ = ErrorOf(store->ReleaseEarlierBoots());
        return;
      default:
        error_ = ErrorOf(store->Transact([](LmdbTxn& txn, const ClockReading& /*now*/) -> Result<bool> {
          RH_TRY(txn.Put("?a record of another kind", "x"));
          return true;
        }));
    }
  }
  template <typename T>
  static std::optional<Error> ErrorOf(const Result<T>& result) {
    return result ? std::nullopt : std::optional(result.error());
  }
  void Keep(Result<AddressRecord> given) {
    if (given) {
      record_ = *given;
    } else {
      error_ = given.error();
    }
  }
  void NoteHeld(const AddressStore& store, const AddressOwner& owner) {
    const auto held = store.Find(owner);
    if (!held) return;
    for (const AddressRecord& record : *held) {
      // If the address is of an earlier boot, its owner may have it again at once.
      if (record.boot_id == BootName()) released_.push_back(record.address);
    }
  }

  void Judge() {
    for (const IpAddress& address : released_) released_at_[address] = {boot_, boottime_ms_};
    if (error_) RC_ASSERT(error_->code == ErrorCode::kExhausted || error_->code == ErrorCode::kBusy);
    if (!record_) return;
    const auto released = released_at_.find(record_->address);
    if (released == released_at_.end() || released->second.boot != boot_) return;
    RC_ASSERT(boottime_ms_ - released->second.ms >= kReuseDelayMs);
    released_at_.erase(released);
    ++given_;
  }

  // Store time goes with the boot's time, exactly. Over a boot it stands still from some moment
  // between the last change and the last look.
  void Look() {
    const AddressStore store = Open();
    const auto now = store.Now();
    if (!now) RC_FAIL(Describe(now.error()));
    RC_ASSERT_FALSE(read_unlocked_);
    const auto ahead_ms = static_cast<std::int64_t>(now->store_ms) - static_cast<std::int64_t>(boottime_ms_);
    if (!ahead_ms_.has_value()) {
      RC_ASSERT(ahead_ms >= static_cast<std::int64_t>(changed_ms_));
      RC_ASSERT(ahead_ms <= static_cast<std::int64_t>(looked_ms_));
    } else {
      RC_ASSERT(ahead_ms == *ahead_ms_);
    }
    ahead_ms_ = ahead_ms;
    looked_ms_ = now->store_ms;
    if (!record_ || record_->boot_id != now->clocks.boot_id) return;
    // Held already, or given now, at the time that it is.
    if (!since_.contains(record_->address) || since_[record_->address] != record_->since_ms) {
      RC_ASSERT(record_->since_ms == now->store_ms);
      RC_ASSERT(record_->wall_seconds == wall_seconds_);
      changed_ms_ = now->store_ms;
    }
    since_[record_->address] = record_->since_ms;
  }

  void Reboot(const Operation& operation) {
    ++boot_;
    boottime_ms_ = operation.before_ms;
    ahead_ms_.reset();
    since_.clear();
  }

  const ScratchRoot scratch_;
  const AddressPool pool_ = MakePool("10.0.0.0/29", {}, static_cast<int>(kReuseDelayMs / 1000));
  int boot_ = 1;
  std::atomic<std::uint64_t> boottime_ms_ = 5'000;
  std::int64_t wall_seconds_ = 1'700'000'000;
  std::atomic<bool> read_unlocked_ = false;

  std::optional<AddressRecord> record_;
  std::optional<Error> error_;
  std::vector<IpAddress> released_;

  std::map<IpAddress, Moment> released_at_;
  std::map<IpAddress, std::uint64_t> since_;
  std::optional<std::int64_t> ahead_ms_ = -5'000;  // a new store begins at 0
  std::uint64_t changed_ms_ = 0;
  std::uint64_t looked_ms_ = 0;
  int given_ = 0;
};

TEST(StoreClock, AdvancesExactlyWithTheBootsTime) {
  int given_again = 0;
  testing::ExpectProperty([&] {
    const auto operations = *rc::gen::container<std::vector<Operation>>(AnyOperation());
    Machine machine;
    for (const Operation& operation : operations) machine.Do(operation);
    given_again += machine.given();
  });
  EXPECT_GT(given_again, 0);
}

// The real plugin and the real clock: an ADD that came before the lock was free follows a DEL that
// read a later time.
TEST(StoreClock, CountsNoWaitingTwiceBelowThePlugin) {
  const ScratchRoot scratch;
  const auto call = [&](const std::string& container, bool add) {
    IpamPlugin plugin(scratch.root());
    CniRequest request;
    request.container_id = container;
    request.ifname = "eth1";
    request.network = "net";
    request.cni_version = "1.0.0";
    request.config = R"({"cniVersion": "1.0.0", "name": "net", "type": "none",
      "ipam": {"type": "railhead-ipam", "subnet": "10.0.0.0/20"}})";
    if (add) {
      const auto added = plugin.Add(request);
      EXPECT_TRUE(added) << Describe(added.error());
      return;
    }
    const auto deleted = plugin.Del(request);
    EXPECT_TRUE(deleted) << Describe(deleted.error());
  };
  const auto ahead_ms = [&] {
    const auto env = LmdbEnv::Open(scratch.StorePath(), LmdbEnv::Mode::kExisting);
    const auto txn = LmdbTxn::Begin(env.value(), LmdbTxn::Mode::kRead);
    const StoreHeader header = ReadHeader(txn.value()).value();
    return static_cast<std::int64_t>(header.store_ms) - static_cast<std::int64_t>(header.boottime_ms);
  };
  const auto boottime_ms = [&] { return ReadClocks(scratch.root()).value().boottime_ms; };
  call("first", true);
  const std::int64_t before_ms = ahead_ms();
  for (int i = 0; i < 20; ++i) {
    const std::string container = "pod" + std::to_string(i);
    call(container, true);
    std::thread late;
    // The waiters get the lock in their order: first DEL, then ADD.
    WhileItWaits(
        scratch.root(), [&] { call(container, false); },
        [&] {
          late = std::thread([&] { call("late" + std::to_string(i), true); });
          testing::AwaitWaiters(scratch.root(), 2);
          for (const std::uint64_t start = boottime_ms(); boottime_ms() < start + 10;)
            std::this_thread::yield();
        });
    late.join();
    EXPECT_EQ(ahead_ms(), before_ms) << "round " << i;
  }
}

}  // namespace
}  // namespace railhead::ipam
