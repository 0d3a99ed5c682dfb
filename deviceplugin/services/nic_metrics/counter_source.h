// Where a NIC's counters come from: one network namespace, as the kernel has it.
//
// Ownership: owns its sockets, which keep the namespace alive. Keep a pod's source for one collection only:
// otherwise its NICs are not restored when the pod ends. Threads: one at a time. Errors: a missing counter is
// nullopt or empty.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/nl/counters.h"
#include "netns/ns/netns.h"

namespace railhead::nic_metrics {

class CounterSource {
 public:
  CounterSource() = default;
  CounterSource(const CounterSource&) = delete;
  CounterSource& operator=(const CounterSource&) = delete;
  virtual ~CounterSource() = default;

  virtual Result<std::optional<PfTraffic>> Link(const std::string& netdev) = 0;
  virtual Result<std::optional<NamedCounters>> Rdma(std::uint32_t device_index) = 0;
  // The counters among `names` that `ethtool -S` shows.
  virtual Result<std::map<std::string, std::uint64_t>> Driver(const std::string& netdev,
                                                              const std::vector<std::string>& names) = 0;
};

using OpenCounterSource = std::function<Result<std::unique_ptr<CounterSource>>(const NetNs&)>;

// The running kernel's. Sockets are opened when they are needed.
Result<std::unique_ptr<CounterSource>> OpenKernelCounters(const NetNs& ns);

}  // namespace railhead::nic_metrics
