// What the tests of ipam/ share: a scratch root, short constructors of values, a clock.
// Threads: none. A failure to set up ends the test program.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ipam/store/store.h"
#include "netns/base/root.h"

namespace railhead::testing {

// A new directory, removed with its content at the end. It is in memory if /dev/shm exists, since the tests
// do not measure a disk.
class ScratchRoot {
 public:
  ScratchRoot();
  ScratchRoot(const ScratchRoot&) = delete;
  ScratchRoot& operator=(const ScratchRoot&) = delete;
  ~ScratchRoot();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] Root root() const { return Root(path_); }
  [[nodiscard]] std::string StorePath() const { return path_ + "/var/lib/railhead/ipam/store.mdb"; }
  // `path` below the root, with its directories.
  void Write(const std::string& path, const std::string& content) const;

 private:
  std::string path_;
};

IpAddress Ip(const std::string& text);
IpPrefix Prefix(const std::string& text);
IpRange Range(const std::string& text);

// A pool over the whole `subnet`, or over the given ranges.
ipam::AddressPool MakePool(const std::string& subnet, const std::vector<std::string>& ranges,
                           int reuse_delay_seconds, const std::vector<std::string>& exclusions = {});

// The owner number `i`.
ipam::AddressOwner OwnerNumber(int i);

// A clock that changes only when it is set.
class TestClock {
 public:
  void Set(const ipam::ClockReading& now) { *now_ = now; }
  [[nodiscard]] ipam::ClockSource source() const {
    return [now = now_] { return *now; };
  }

 private:
  std::shared_ptr<ipam::ClockReading> now_ = std::make_shared<ipam::ClockReading>();
};

// A store whose clock is set by each call.
class StoreAt {
 public:
  static Result<StoreAt> Open(const Root& root) {
    TestClock clock;
    auto store = RH_TRY(ipam::AddressStore::Open(root, clock.source()));
    return StoreAt(std::move(store), clock);
  }

  auto Allocate(const std::vector<ipam::AddressRequest>& requests, const ipam::ClockReading& now) {
    return at(now).Allocate(requests);
  }
  auto Allocate(const ipam::AddressOwner& owner, const ipam::AddressPool& pool,
                const ipam::ClockReading& now) {
    return at(now).Allocate(owner, pool);
  }
  auto TryAllocate(const std::vector<ipam::AddressRequest>& requests, const ipam::ClockReading& now) {
    return at(now).TryAllocate(requests);
  }
  auto ReleaseEarlierBoots(const ipam::ClockReading& now) { return at(now).ReleaseEarlierBoots(); }
  auto Quarantine(const ipam::AddressOwner& owner, const IpAddress& address, const ipam::ClockReading& now,
                  std::chrono::seconds time = ipam::kDefaultQuarantine) {
    return at(now).Quarantine(owner, address, time);
  }
  auto QuarantineWithin(const ipam::AddressPool& pool, const ipam::AddressOwner& owner,
                        const IpAddress& address, const ipam::ClockReading& now, std::chrono::seconds time) {
    return at(now).QuarantineWithin(pool, owner, address, time);
  }
  auto Release(const ipam::AddressOwner& owner, const ipam::ClockReading& now) {
    return at(now).Release(owner);
  }
  auto ReleaseWhere(const ipam::AddressFilter& wanted, const ipam::ClockReading& now) {
    return at(now).ReleaseWhere(wanted);
  }

  [[nodiscard]] auto Find(const ipam::AddressOwner& owner) const { return store_.Find(owner); }
  [[nodiscard]] auto List() const { return store_.List(); }
  [[nodiscard]] auto Counters() const { return store_.Counters(); }
  [[nodiscard]] auto Events(std::uint64_t after) const { return store_.Events(after); }
  [[nodiscard]] auto Verify() const { return store_.Verify(); }

 private:
  ipam::AddressStore& at(const ipam::ClockReading& now) {
    clock_.Set(now);
    return store_;
  }
  StoreAt(ipam::AddressStore store, TestClock clock) : store_(std::move(store)), clock_(std::move(clock)) {}

  ipam::AddressStore store_;
  TestClock clock_;
};

// Makes `call` in a thread while the store's lock is held. Runs `meanwhile` once the call waits for the lock,
// then releases the lock. No other thread of this process may use the store.
void WhileItWaits(const Root& root, const std::function<void()>& call,
                  const std::function<void()>& meanwhile);
// Waits until `count` calls of this process wait for the store's lock, which this process holds.
void AwaitWaiters(const Root& root, int count);
// Whether any process holds the store's lock.
bool IsStoreLocked(const Root& root);

// `seconds` after the boot `boot`.
ipam::ClockReading At(double seconds, const std::string& boot = "boot-a");

}  // namespace railhead::testing
