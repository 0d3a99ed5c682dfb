// What a port does with priorities: PFC, ETS and the table from DSCP to priority, by DCB netlink.
//
// Source: include/uapi/linux/dcbnl.h (DCB_CMD_IEEE_GET), net/dcb/dcbnl.c. Ports are asked by name, in
// the calling thread's network namespace; drivers answer for PFs, seldom for VFs.
// Ownership: a socket for the time of the call. Threads: thread-safe. Needs no privilege.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "netns/base/result.h"

namespace railhead {

inline constexpr std::size_t kPriorities = 8;

// IEEE 802.1Qaz: how a traffic class is chosen (IEEE_8021QAZ_TSA_*).
inline constexpr std::uint8_t kTsaStrict = 0;
inline constexpr std::uint8_t kTsaEts = 2;

struct DcbEts {
  std::array<std::uint8_t, kPriorities> bandwidth{};        // percent, by traffic class
  std::array<std::uint8_t, kPriorities> selection{};        // kTsa..., by traffic class
  std::array<std::uint8_t, kPriorities> traffic_classes{};  // by priority
  bool operator==(const DcbEts&) const = default;
};

struct DscpEntry {
  int dscp = 0;  // 0..63
  int priority = 0;
  bool operator==(const DscpEntry&) const = default;
};

struct DcbState {
  // A setting that the driver does not report is nullopt.
  std::optional<std::uint8_t> pfc;  // a bit for each priority that is lossless
  std::optional<DcbEts> ets;
  // Empty: the port goes by the VLAN tag's priority.
  std::vector<DscpEntry> dscp;

  bool operator==(const DcbState&) const = default;
};

// nullopt: the driver has no DCB, or the kernel is built without it. kNotFound: the port does not exist.
Result<std::optional<DcbState>> ReadDcb(const std::string& netdev);

}  // namespace railhead
