// Where a NIC's counters come from: one network namespace, as the kernel has it.
//
// Ownership: owns its sockets, which hold the namespace; keep that of a pod for one collection only, or its
// NICs do not come home when it ends. Threads: one at a time. Errors: what is not there is nullopt or empty.
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

namespace railhead {

class CounterSource {
 public:
  CounterSource() = default;
  CounterSource(const CounterSource&) = delete;
  CounterSource& operator=(const CounterSource&) = delete;
  virtual ~CounterSource() = default;

  virtual Result<std::optional<PfTraffic>> Link(const std::string& netdev) = 0;
  virtual Result<std::optional<NamedCounters>> Rdma(std::uint32_t device_index) = 0;
  // As `ethtool -S` shows them; those of `names` that there are.
  virtual Result<std::map<std::string, std::uint64_t>> Driver(const std::string& netdev,
                                                              const std::vector<std::string>& names) = 0;
};

using OpenCounterSource = std::function<Result<std::unique_ptr<CounterSource>>(const NetNs&)>;

// The running kernel's. Sockets are opened when they are needed.
Result<std::unique_ptr<CounterSource>> OpenKernelCounters(const NetNs& ns);

}  // namespace railhead
