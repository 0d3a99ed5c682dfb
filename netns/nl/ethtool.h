// Settings of network devices that old kernels have no netlink messages for: receive-side scaling, filter
// rules, tunables, timestamps. Internal to netns/nl.
//
// Source: include/uapi/linux/ethtool.h, include/uapi/linux/net_tstamp.h, net/ethtool/ioctl.c.
// Ownership: owns a socket, which stays in the network namespace in which it was opened. Threads: one at a
// time. Devices are asked by name: a device that was renamed in between is kNotFound.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/unique_fd.h"
#include "netns/nl/device_state.h"
#include "netns/nl/socket.h"

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

// Generic netlink messages of the family "ethtool": bytes only. Internal to netns/nl.
//
// One pair of commands for each setting, with the same attributes in the answer to the one and in the other.
// Source: include/uapi/linux/ethtool_netlink.h, Documentation/networking/ethtool-netlink.rst,
// net/ethtool/*.c. Threads: pure functions. Parsers take any bytes.

// Those that have commands.
std::span<const DeviceSource> EthtoolSources();

Message GetEthtoolFamilyMessage();
// What the kernel calls the family at this boot; nullopt: no answer to it.
std::optional<std::uint16_t> ParseEthtoolFamily(const Received& received);

Message GetEthtoolMessage(std::uint16_t family, DeviceSource source, int index);
// Stores what the answer has of the source's fields.
void ParseEthtool(const Received& received, DeviceSource source, DeviceState& state);
// Of an answer about features: those that may be changed, as a value of "features.wanted".
std::string ParseChangeableFeatures(const Received& received);

// Sets these fields, all of the one source. `mask`: as PutField(); for features it is needed, since the
// kernel refuses a set that has features which nobody can change.
Message SetEthtoolMessage(std::uint16_t family, DeviceSource source, int index, const DeviceState& values,
                          std::string_view mask = {});

}  // namespace railhead::nl
