// DriverSource: the state that only the driver has, through ioctls and netlink instead of sysfs.
//
// Tests pass a source of their own. A program with a test root has none.
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "netns/base/result.h"

namespace railhead::health {

class DriverSource {
 public:
  DriverSource() = default;
  DriverSource(const DriverSource&) = delete;
  DriverSource& operator=(const DriverSource&) = delete;
  virtual ~DriverSource() = default;

  // The `reporters` (devlink health) of the PCI function that are in state error.
  virtual Result<std::vector<std::string>> FailedReporters(const std::string& address,
                                                           const std::vector<std::string>& reporters) = 0;
  // The ethtool statistics among `names` that the driver has.
  virtual Result<std::map<std::string, std::uint64_t>> Statistics(const std::string& netdev,
                                                                  const std::vector<std::string>& names) = 0;
};

// A source for each PF: the driver of one may hang.
using OpenDriverSource = std::function<std::unique_ptr<DriverSource>()>;

// The running kernel, in the network namespace of the caller. If the kernel lacks the support, no reporter
// counts as failed and the statistics are empty.
std::unique_ptr<DriverSource> MakeKernelDriverSource();

}  // namespace railhead::health
