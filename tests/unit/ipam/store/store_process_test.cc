// Many processes at once; processes killed before every single system call.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ipam/store/store.h"
#include "tests/support/ipam/support.h"
#include "tests/system/crash/tracer.h"

namespace railhead::ipam {
namespace {

using testing::At;
using testing::MakePool;
using testing::OwnerNumber;
using testing::ScratchRoot;
using testing::StoreAt;

constexpr int kProcesses = 64;
constexpr int kRounds = 6;
constexpr int kHeldByEach = 3;

// Takes kRounds addresses one after the other and gives every second one back.
// Answers the number of those that failed.
int Churn(const Root& root, int process, const AddressPool& pool) {
  int failed = 0;
  for (int round = 0; round < kRounds; ++round) {
    const AddressOwner owner = OwnerNumber(process * kRounds + round);
    auto store = StoreAt::Open(root);
    if (!store || !store->Allocate(owner, pool, At(1))) ++failed;
    if (store && round % 2 == 1 && store->Release(owner, At(1)).value_or(0) != 1) ++failed;
  }
  return failed;
}

TEST(StoreProcesses, SixtyFourAtOnceGetNoAddressTwice) {
  const ScratchRoot scratch;
  const AddressPool pool = MakePool("10.0.0.0/23", {}, 600);
  std::array<int, 2> gate{};
  ASSERT_EQ(::pipe(gate.data()), 0);
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      ::close(gate[1]);
      char byte = 0;
      if (::read(gate[0], &byte, 1) != 0) ::_exit(100);  // returns when all are there
      ::_exit(Churn(scratch.root(), process, pool));
    }
    children.push_back(pid);
  }
  ::close(gate[0]);
  ::close(gate[1]);
  for (const pid_t pid : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  const auto store = StoreAt::Open(scratch.root());
  ASSERT_TRUE(store);
  EXPECT_EQ(store->Verify().value(), std::vector<std::string>{});
  std::map<AddressState, std::set<IpAddress>> addresses;
  std::set<std::string> owners;
  const auto records = store->List();
  ASSERT_TRUE(records);
  for (const AddressRecord& record : *records) {
    addresses[record.state].insert(record.address);
    owners.insert(record.owner.container);
  }
  // Every owner's address is on record as its own: none was overwritten.
  EXPECT_EQ(addresses[AddressState::kHeld].size(), std::size_t{kProcesses} * kHeldByEach);
  EXPECT_EQ(addresses[AddressState::kCoolingDown].size(), std::size_t{kProcesses} * (kRounds - kHeldByEach));
  EXPECT_EQ(owners.size(), std::size_t{kProcesses} * kRounds);
}

// Runs `work` in a child that is killed before its `call`-th system call; true when it
// ended by itself before that.
bool RunAndKillAt(int call, const std::function<bool()>& work) {
  crash::Tracing tracing;
  tracing.at = crash::CallPoint{0, call};
  const auto traced = crash::TraceFunction([&] { return work() ? 0 : 1; }, tracing);
  if (!traced) {
    ADD_FAILURE() << Describe(traced.error());
    return true;
  }
  if (traced->reached) return false;
  EXPECT_TRUE(traced->Succeeded()) << "the operation itself failed: " << traced->status;
  return true;
}

class KilledAnywhere : public ::testing::Test {
 protected:
  std::vector<std::string> Held(int owner) {
    const auto store = StoreAt::Open(scratch_.root());
    std::vector<std::string> held;
    if (!store) {
      ADD_FAILURE() << Describe(store.error());
      return held;
    }
    const auto found = store->Find(OwnerNumber(owner));
    if (!found) {
      ADD_FAILURE() << Describe(found.error());
      return held;
    }
    for (const auto& record : *found) held.push_back(record.address.ToString());
    return held;
  }
  void ExpectSound() {
    const auto store = StoreAt::Open(scratch_.root());
    ASSERT_TRUE(store) << Describe(store.error());
    EXPECT_EQ(store->Verify().value(), std::vector<std::string>{});
  }
  [[nodiscard]] std::vector<AddressRequest> Requests(int owner) const {
    std::vector<AddressRequest> requests;
    for (std::size_t i = 0; i < pools_.size(); ++i) {
      const std::string link = pools_.size() == 1 ? "" : "rail" + std::to_string(i);
      requests.push_back({LinkOwner(OwnerNumber(owner), link), {pools_[i]}, {}});
    }
    return requests;
  }
  // In a child: everything it owned is gone before _exit() is counted on.
  std::function<bool()> Add(int owner, double seconds) {
    return [=, this] {
      auto store = StoreAt::Open(scratch_.root());
      return store && store->Allocate(Requests(owner), At(seconds));
    };
  }
  std::function<bool()> Del(int owner, double seconds) {
    return [=, this] {
      auto store = StoreAt::Open(scratch_.root());
      return store && store->Release(OwnerNumber(owner), At(seconds));
    };
  }

  ScratchRoot scratch_;
  std::vector<AddressPool> pools_{MakePool("10.0.0.0/27", {}, 10)};  // 30 addresses
};

// The parameter is the number of links. Each link has a pool of its own.
class KilledWithLinks : public KilledAnywhere, public ::testing::WithParamInterface<std::size_t> {
 protected:
  void SetUp() override {
    for (std::size_t i = 1; i < GetParam(); ++i) {
      pools_.push_back(MakePool("10.0." + std::to_string(i) + ".0/27", {}, 10));
    }
  }
  // None is lost: after the reuse delay every address is free, but for the one that stays.
  void ExpectOneOfEachTaken(double now) {
    auto store = StoreAt::Open(scratch_.root());
    ASSERT_TRUE(store);
    for (int i = 0; i < 29; ++i) ASSERT_TRUE(store->Allocate(Requests(100'000 + i), At(now))) << i;
    for (const AddressPool& pool : pools_) {
      EXPECT_FALSE(store->Allocate(OwnerNumber(200'000), pool, At(now))) << pool.name;
    }
  }
};

TEST_F(KilledAnywhere, MakingTheStore) {
  int stop = 1;
  for (bool done = false; !done; ++stop) {
    ScratchRoot fresh;
    done = RunAndKillAt(stop, [&] {
      auto store = StoreAt::Open(fresh.root());
      return store && store->Allocate(Requests(1), At(0));
    });
    auto store = StoreAt::Open(fresh.root());
    ASSERT_TRUE(store) << "killed at " << stop << ": " << Describe(store.error());
    ASSERT_EQ(store->Verify().value(), std::vector<std::string>{}) << "killed at " << stop;
    // The runtime tries again: the first address, whether it was given before or not.
    const auto again = store->Allocate(Requests(1), At(1));
    ASSERT_TRUE(again);
    ASSERT_EQ(again->front().address.ToString(), "10.0.0.1") << "killed at " << stop;
  }
  // Fewer would mean that the tracing does not reach the store's own calls.
  EXPECT_GT(stop, 20);
}

// The addresses of earlier boots are released all or none, and the next call releases them if none was.
TEST_F(KilledAnywhere, TheFirstWriterOfABoot) {
  int stop = 1;
  int before = 0;
  int between = 0;
  for (bool done = false; !done; ++stop) {
    const std::string where = "killed at " + std::to_string(stop);
    ScratchRoot fresh;
    const auto first = [&](const ClockReading& now) {
      auto store = StoreAt::Open(fresh.root());
      return store && store->Allocate(Requests(9), now);
    };
    ASSERT_TRUE(StoreAt::Open(fresh.root())->Allocate(Requests(1), At(0)));
    ASSERT_TRUE(StoreAt::Open(fresh.root())->Allocate(Requests(2), At(0)));
    done = RunAndKillAt(stop, [&] { return first(At(5, "boot-b")); });
    auto store = StoreAt::Open(fresh.root());
    ASSERT_TRUE(store) << where << ": " << Describe(store.error());
    ASSERT_EQ(store->Verify().value(), std::vector<std::string>{}) << where;
    const std::size_t held = store->Find(OwnerNumber(1))->size() + store->Find(OwnerNumber(2))->size();
    ASSERT_TRUE(held == 0 || held == 2) << where << ": " << held << " addresses";
    const std::size_t given = store->Find(OwnerNumber(9))->size();
    ASSERT_FALSE(held == 2 && given == 1) << where << ": given before earlier boots were seen to";
    before += held == 2 ? 1 : 0;
    between += held == 0 && given == 0 ? 1 : 0;
    ASSERT_EQ(store->Allocate(Requests(9), At(6, "boot-b"))->front().address.ToString(), "10.0.0.3") << where;
    ASSERT_TRUE(store->Find(OwnerNumber(1))->empty()) << where;
    ASSERT_EQ(store->Verify().value(), std::vector<std::string>{}) << where;
  }
  EXPECT_GT(before, 0);
  EXPECT_GT(between, 0) << "no kill came between the two transactions";
}

TEST_F(KilledAnywhere, Quarantining) {
  int stop = 1;
  int held = 0;
  for (bool done = false; !done; ++stop) {
    const std::string where = "killed at " + std::to_string(stop);
    ScratchRoot fresh;
    ASSERT_TRUE(StoreAt::Open(fresh.root())->Allocate(Requests(1), At(0)));
    done = RunAndKillAt(stop, [&] {
      auto store = StoreAt::Open(fresh.root());
      return store && store->Quarantine(OwnerNumber(1), testing::Ip("10.0.0.1"), At(1));
    });
    auto store = StoreAt::Open(fresh.root());
    ASSERT_TRUE(store) << where << ": " << Describe(store.error());
    ASSERT_EQ(store->Verify().value(), std::vector<std::string>{}) << where;
    const auto records = store->List().value();
    ASSERT_EQ(records.size(), 1U) << where;
    const bool apart = records.front().state == AddressState::kQuarantined;
    held += apart ? 0 : 1;
    ASSERT_EQ(store->Events(0)->size(), apart ? 1U : 0U) << where;
    ASSERT_EQ(store->Find(OwnerNumber(1))->size(), apart ? 0U : 1U) << where;
    ASSERT_EQ(apart || !done, true) << where;
  }
  EXPECT_GT(held, 0) << "no kill came before the commit";
}

// All of an attachment's addresses or none of them, killed anywhere.
TEST_P(KilledWithLinks, AddAndDel) {
  const std::size_t links = GetParam();
  double now = 0;
  ASSERT_TRUE(Add(0, now)());  // someone who stays
  const auto kept = Held(0);
  bool add_done = false;
  bool del_done = false;
  int stop = 1;
  int given = 0;
  for (; !add_done || !del_done; ++stop) {
    const std::string where = "killed at " + std::to_string(stop);
    now += 1;
    add_done = RunAndKillAt(stop, Add(stop, now));
    ExpectSound();
    const auto held = Held(stop);
    ASSERT_TRUE(held.empty() || held.size() == links) << where << ": " << held.size() << " addresses";
    if (add_done) {
      ASSERT_EQ(held.size(), links) << where;
    }
    if (!held.empty()) {
      ++given;
      ASSERT_NE(held, kept) << where;
      // The same answer for the same container after the crash.
      ASSERT_TRUE(Add(stop, now)());
      ASSERT_EQ(Held(stop), held) << where;
    } else {
      ASSERT_TRUE(Add(stop, now)()) << where;
    }
    del_done = RunAndKillAt(stop, Del(stop, now));
    ExpectSound();
    const auto left = Held(stop).size();
    ASSERT_TRUE(left == 0 || left == links) << where << ": " << left << " addresses";
    if (del_done) {
      ASSERT_EQ(left, 0U) << where;
    }
    ASSERT_TRUE(Del(stop, now)());
    ASSERT_TRUE(Held(stop).empty()) << where;
  }
  EXPECT_GT(given, 0);
  EXPECT_LT(given, stop) << "no kill came before the commit";
  ExpectOneOfEachTaken(now + 11);
  std::printf("killed at each of %d calls\n", stop - 1);
}

INSTANTIATE_TEST_SUITE_P(Links, KilledWithLinks, ::testing::Values(1, 8));

}  // namespace
}  // namespace railhead::ipam
