// A driver's own statistics of a network device, as `ethtool -S` shows them, by name.
//
// Where a name stands in the driver's list is remembered; it is asked for again when the
// list has another length. Names are the driver's: see its documentation.
// Source: include/uapi/linux/ethtool.h (ETHTOOL_GSTATS), net/ethtool/ioctl.c.
// Ownership: owns a socket, which stays in the network namespace in which it was opened.
// Threads: one at a time. Reading needs no privilege.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/unique_fd.h"

namespace railhead {

class EthtoolStats {
 public:
  // In the calling thread's network namespace.
  static Result<EthtoolStats> Open();

  // Those of `names` that the driver has; nothing when it has no statistics, or the
  // device is not in this namespace.
  Result<std::map<std::string, std::uint64_t>> Read(const std::string& netdev,
                                                    const std::vector<std::string>& names);

 private:
  struct Layout {
    std::vector<std::string> names;  // asked for
    std::uint32_t count = 0;
    std::map<std::string, std::size_t> places;  // of those that are there
  };

  explicit EthtoolStats(UniqueFd fd) : fd_(std::move(fd)) {}
  // 0: the driver has no statistics, or the device does not exist.
  [[nodiscard]] Result<std::uint32_t> CountOf(const std::string& netdev) const;
  [[nodiscard]] Result<Layout> ReadLayout(const std::string& netdev, const std::vector<std::string>& names,
                                          std::uint32_t count) const;

  UniqueFd fd_;
  std::map<std::string, Layout> layouts_;
};

}  // namespace railhead
