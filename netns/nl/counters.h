// Counters that the kernel keeps of network and RDMA devices. Each call asks the kernel; nothing is stored.
//
// LinkCounters: one message for a PF and all its VFs. If a driver asks its firmware for each VF, the answer
// takes as long as the firmware does. During that time the kernel holds its lock of network settings (RTNL).
// RdmaCounters: one message per device. In exclusive mode a device is seen in its own namespace only; in
// shared mode from everywhere.
// Counters of a driver (pause, per priority): netns/sys/ethtool_stats.h.
// Source: include/uapi/linux/if_link.h (rtnl_link_stats64, IFLA_VF_STATS), net/core/rtnetlink.c
// (rtnl_fill_vfinfo); include/uapi/rdma/rdma_netlink.h, drivers/infiniband/core/nldev.c
// (stat_get_doit_default_counter).
// Ownership: own a socket, which stays in the network namespace in which it was opened.
// Threads: one at a time. Reading needs no privilege.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "netns/base/result.h"
#include "netns/ns/netns.h"

namespace railhead {

// Counted since the device exists. A PF counts its own traffic, or all traffic of the port; the driver
// decides.
struct Traffic {
  std::uint64_t rx_bytes = 0;
  std::uint64_t tx_bytes = 0;
  std::uint64_t rx_packets = 0;
  std::uint64_t tx_packets = 0;
  std::uint64_t rx_multicast = 0;
  // nullopt: not reported (of VFs, by some drivers).
  std::optional<std::uint64_t> rx_broadcast;
  std::optional<std::uint64_t> rx_dropped;
  std::optional<std::uint64_t> tx_dropped;
  std::optional<std::uint64_t> rx_errors;
  std::optional<std::uint64_t> tx_errors;

  bool operator==(const Traffic&) const = default;
};

struct VfTraffic {
  int vf = 0;
  Traffic traffic;

  bool operator==(const VfTraffic&) const = default;
};

struct PfTraffic {
  Traffic traffic;
  // By index. All zero where the PF's driver does not count for its VFs (igb): the kernel does not say so.
  std::vector<VfTraffic> vfs;
  std::uint64_t carrier_changes = 0;
  bool carrier = false;  // IFF_LOWER_UP

  bool operator==(const PfTraffic&) const = default;
};

class LinkCounters {
 public:
  static Result<LinkCounters> Open(const NetNs& ns);
  LinkCounters(LinkCounters&&) noexcept;
  LinkCounters& operator=(LinkCounters&&) noexcept;
  ~LinkCounters();

  // nullopt: no such device in this namespace. The VFs are absent where the kernel cannot report so many
  // (their attribute ends at 64 KiB: EMSGSIZE).
  Result<std::optional<PfTraffic>> Read(const std::string& netdev);

 private:
  struct State;
  explicit LinkCounters(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Names are the driver's, in its order: "out_of_sequence", "np_cnp_sent".
using NamedCounters = std::vector<std::pair<std::string, std::uint64_t>>;

class RdmaCounters {
 public:
  // kUnsupported when the kernel has no RDMA subsystem.
  static Result<RdmaCounters> Open(const NetNs& ns);
  RdmaCounters(RdmaCounters&&) noexcept;
  RdmaCounters& operator=(RdmaCounters&&) noexcept;
  ~RdmaCounters();

  // Of port 1; nullopt: no such device here, or its driver counts nothing.
  Result<std::optional<NamedCounters>> Read(std::uint32_t device_index);

 private:
  struct State;
  explicit RdmaCounters(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace railhead
