// Settings of network devices that old kernels have no netlink messages for: receive-side scaling, filter
// rules, tunables, timestamps. Internal to netns/nl.
//
// Source: include/uapi/linux/ethtool.h, include/uapi/linux/net_tstamp.h, net/ethtool/ioctl.c.
// Ownership: owns a socket, which stays in the network namespace in which it was opened. Threads: one at a
// time. Devices are asked by name: a device that was renamed in between is kNotFound.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/unique_fd.h"
#include "netns/nl/device_state.h"

namespace railhead::nl {

// What the driver calls its device (bus_info of ETHTOOL_GDRVINFO), a BDF for PCI: empty if it names none.
// Any kind of socket asks in the namespace in which it was opened.
std::string BusInfo(int socket, const std::string& netdev);

class EthtoolIoctl {
 public:
  // In the calling thread's network namespace.
  static Result<EthtoolIoctl> Open();

  // The settings that the driver reports; the others are absent.
  void Read(const std::string& netdev, DeviceState& state) const;
  // Fields of one source. Stops at the first refused one.
  [[nodiscard]] Result<void> WriteRss(const std::string& netdev, const DeviceState& values) const;
  [[nodiscard]] Result<void> WriteRules(const std::string& netdev, const std::string& wanted) const;
  [[nodiscard]] Result<void> WriteTunables(const std::string& netdev, const DeviceState& values) const;
  [[nodiscard]] Result<void> WriteTimestamps(const std::string& netdev, const std::string& config) const;

 private:
  explicit EthtoolIoctl(UniqueFd fd) : fd_(std::move(fd)) {}

  [[nodiscard]] Result<void> Call(const std::string& netdev, unsigned long request, void* data) const;
  [[nodiscard]] Result<std::uint64_t> CountQueues(const std::string& netdev) const;
  void ReadRss(const std::string& netdev, DeviceState& state) const;
  [[nodiscard]] Result<std::string> ReadRules(const std::string& netdev) const;
  void ReadTunables(const std::string& netdev, DeviceState& state) const;
  [[nodiscard]] Result<void> WriteRssTable(const std::string& netdev, const DeviceState& values) const;
  [[nodiscard]] Result<void> SendRss(const std::string& netdev, std::vector<std::uint8_t> command,
                                     const std::vector<std::uint8_t>& config) const;
  [[nodiscard]] Result<void> InsertRule(const std::string& netdev, const std::string& element) const;

  UniqueFd fd_;
};

}  // namespace railhead::nl
