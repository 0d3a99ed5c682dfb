// What only the driver tells, through ioctls and netlink instead of sysfs.
//
// DriverSource is the seam: tests give their own, and below a test root there is none.
// Ownership: the watch owns its source. Threads: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "netns/base/result.h"

namespace railhead {

class DriverSource {
 public:
  DriverSource() = default;
  DriverSource(const DriverSource&) = delete;
  DriverSource& operator=(const DriverSource&) = delete;
  virtual ~DriverSource() = default;

  // Those of `reporters` (devlink health) of the PCI function that are in state error.
  virtual Result<std::vector<std::string>> FailedReporters(const std::string& address,
                                                           const std::vector<std::string>& reporters) = 0;
  // Those ethtool statistics of `names` that the driver has.
  virtual Result<std::map<std::string, std::uint64_t>> Statistics(const std::string& netdev,
                                                                  const std::vector<std::string>& names) = 0;
};

// The running kernel, in the network namespace of the caller. What the kernel does not
// have is simply not told: no reporter has failed, there are no statistics.
std::unique_ptr<DriverSource> MakeKernelDriverSource();

}  // namespace railhead
