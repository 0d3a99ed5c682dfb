// A node of a leasing cluster for tests. It has a real address store in a scratch directory, a leaser on a
// cluster store in memory, and a clock that the test sets.
// Threads: one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "ipam/lease/context.h"
#include "ipam/lease/leaser.h"
#include "ipam/store/store.h"
#include "tests/support/ipam/support.h"
#include "tests/support/lease/memory_store.h"

namespace railhead::testing {

struct TestPools {
  std::vector<std::string> subnets = {"10.7.0.0/24"};
  std::uint64_t block_size = 16;
  std::uint64_t low_water = 8;
  ipam::LeaseTimes times{std::chrono::seconds(60), std::chrono::seconds(1800), std::chrono::seconds(3600),
                         std::chrono::seconds(100)};
};

class TestNode {
 public:
  TestNode(MemoryCluster& cluster, std::string name, TestPools pools, std::uint64_t seed);

  // Starts a new process of the daemon.
  void StartDaemon();
  void KillDaemon() { leaser_.reset(); }
  [[nodiscard]] bool running() const { return leaser_ != nullptr; }
  ipam::Leaser& leaser() { return *leaser_; }
  MemoryStore& store() { return store_; }
  ipam::LeaseStateStore& lease_state() { return *lease_state_; }

  void Reboot();
  void Pass(std::uint64_t ms) {
    now_.boottime_ms += ms;
    PassPaused(ms);
  }
  // Pauses the virtual machine. Its CLOCK_BOOTTIME stops too; the wall clock is right again when it
  // continues.
  void PassPaused(std::uint64_t ms) {
    wall_ms_ += ms;
    now_.wall_seconds = kEpoch + static_cast<std::int64_t>(wall_ms_ / 1000);
  }
  [[nodiscard]] const ipam::ClockReading& now() const { return now_; }
  // Also the store's clocks.
  [[nodiscard]] ipam::ClockSource clocks() const {
    return [this] { return now_; };
  }
  [[nodiscard]] const ScratchRoot& scratch() const { return scratch_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  void Become(std::string machine) { machine_ = std::move(machine); }

  // Steps until the leaser wants to wait. Returns the last outcome with the events of all steps.
  ipam::Leaser::Outcome Settle();
  ipam::Leaser::Outcome Step() { return leaser_->Step(now_); }

  Result<ipam::AddressRecord> Allocate(const std::string& pod, const std::string& subnet);
  Result<std::size_t> Release(const std::string& pod);
  [[nodiscard]] std::vector<ipam::NodeBlock> Blocks();
  [[nodiscard]] std::vector<ipam::NodeBlock> BlocksIn(ipam::BlockState state);

 private:
  static constexpr std::int64_t kEpoch = 1'700'000'000;

  ScratchRoot scratch_;
  MemoryStore store_;
  std::string name_;
  std::string machine_;
  TestPools pools_;
  ipam::ClockReading now_;
  std::uint64_t wall_ms_ = 0;
  int boots_ = 0;
  std::mt19937_64 random_;
  std::unique_ptr<ipam::LeaseStateStore> lease_state_;
  std::unique_ptr<ipam::Leaser> leaser_;
};

}  // namespace railhead::testing
