// The address store of a node over years: boots, rails, pods that come and go, addresses found in use. Each
// operation opens the store again, as the plugin does. Its result is compared with a plain model: which pod
// holds which address, and until when an address must stay unused.
//
// Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ipam/store/store.h"
#include "netns/base/result.h"
#include "tests/support/ipam/support.h"

namespace railhead::testing {

class NodeHistory {
 public:
  NodeHistory(Root root, std::uint64_t seed, std::size_t rails, std::size_t pods);

  // A boot: the node's pods start, a few of them as the same containers as before, and `operations` follow.
  // Errors: the store's; kConflict: the result differs from the model.
  Result<void> Boot(int operations);
  [[nodiscard]] int operations() const { return operations_; }

 private:
  using Holding = std::vector<IpAddress>;  // of a pod: one for each rail
  using Place = std::pair<std::size_t, IpAddress>;

  Result<void> Step(const std::function<Result<void>(StoreAt&)>& operation);
  Result<void> Operate(StoreAt& store);
  Result<void> Add(StoreAt& store, int pod);
  Result<void> Delete(StoreAt& store, int pod, bool in_use);
  Result<void> Collect(StoreAt& store);
  [[nodiscard]] Result<void> CheckNew(int pod, const Holding& given) const;
  [[nodiscard]] Result<void> Compare() const;
  void EnterBoot();
  void StartReuseDelay(int pod, std::uint64_t ms);
  int NewPod();
  int AnyPod();
  [[nodiscard]] ipam::AddressOwner OwnerOf(int pod, std::size_t rail) const;
  [[nodiscard]] ipam::ClockReading Now() const;
  // Advances with the uptime, from the time of the last commit before this boot.
  [[nodiscard]] std::uint64_t store_ms() const { return before_boot_ms_ + uptime_ms_; }
  void Committed() { committed_ms_ = store_ms(); }
  std::uint64_t Below(std::uint64_t limit) { return random_() % limit; }

  const Root root_;
  const std::size_t pods_;
  std::mt19937_64 random_;
  std::vector<ipam::AddressPool> rails_;
  int operations_ = 0;

  int boot_ = 0;
  int entered_ = 0;  // the boot of the last change
  std::uint64_t uptime_ms_ = 0;
  std::uint64_t before_boot_ms_ = 0;
  std::uint64_t committed_ms_ = 0;

  std::vector<std::string> containers_;  // of each pod that there ever was
  std::map<int, Holding> held_;
  std::map<int, Holding> had_;  // before the boot
  std::map<Place, std::uint64_t> until_ms_;
};

}  // namespace railhead::testing
