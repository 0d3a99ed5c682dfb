// Kernel: the only virtual interfaces between Railhead and Linux.
//
// RouteApi is rtnetlink in one network namespace. RdmaApi is RDMA netlink in one. DeviceApi is the settings
// of devices in one. Kernel makes them and does the work that needs more than netlink.
// LinuxKernel (netns/linux_kernel.h) is the real one; tests/support/fake_kernel/ has one that keeps state.
//
// Ownership: handles returned are the caller's. Threads: one object, one thread at a time; several objects
// may be used at once. Errors carry errno and the kernel's extended-ack text ("... : Invalid argument (VLAN
// id out of range)").
// A lookup's absence is nullopt; deleting an absent object returns false.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "netns/base/poll_pause.h"
#include "netns/base/result.h"
#include "netns/gid/gid_table.h"
#include "netns/nl/device_state.h"
#include "netns/nl/link.h"
#include "netns/nl/rdma.h"
#include "netns/nl/route.h"
#include "netns/nl/vf_settings.h"
#include "netns/ns/netns.h"
#include "netns/ns/sysctl.h"
#include "netns/packet/conflict.h"

namespace railhead {

using Deadline = std::chrono::steady_clock::time_point;

class RouteApi {
 public:
  RouteApi() = default;
  RouteApi(const RouteApi&) = delete;
  RouteApi& operator=(const RouteApi&) = delete;
  virtual ~RouteApi() = default;

  virtual Result<std::optional<Link>> FindLink(const std::string& name) = 0;
  virtual Result<std::optional<Link>> FindLink(int index) = 0;
  // By the parent device's bus name (a BDF). Where one parent has several
  // links, the one with the lowest index. Dumps the namespace's links.
  virtual Result<std::optional<Link>> FindLinkOfDevice(const std::string& parent_device) = 0;
  virtual Result<std::vector<Link>> ListLinks() = 0;
  // One message, or two where `up` comes with settings that must be in force
  // before. AddrGenMode::kNone succeeds on a link without IPv6 (ipv6.disable=1, or an
  // MTU below 1280).
  virtual Result<void> ChangeLink(int index, const LinkChange& change) = 0;

  // One message: namespace, name and MTU. Not atomic: the call fails when the name is taken or the MTU
  // refused. The device can then be in `target` already, under its old or its new name. After an error look
  // in both.
  // Moving takes the link down and flushes its addresses (net/core/dev.c).
  virtual Result<void> MoveLink(int index, const NetNs& target, const std::string& name,
                                std::optional<int> mtu) = 0;

  // The devices that are stacked on the link `lower` of the namespace `lower_ns`, and that stay here when
  // `lower` moves elsewhere. They go on sending through it, and can no longer be moved. They are VLANs,
  // macvlans and ipvlans: vlan_device_event and its siblings ignore moves. Other kinds move along or detach
  // by themselves. Such a device in a third namespace is not seen from here. Removing one removes the devices
  // stacked on it.
  virtual Result<std::vector<Link>> ListUppers(int lower, const NetNs& lower_ns) = 0;
  // Whether interfaces of any namespace are stacked on the Ethernet link, also of one that nobody can find:
  // macvlans, ipvlans, a bridge, VLANs with ID 0. Not seen: VLANs with another ID, which get tagged frames
  // only. Makes nothing. `taken`: the name of an interface of `elsewhere` that this namespace does not have
  // (kExists). kUnsupported: a kernel without macvlan.
  virtual Result<bool> HasUppers(int lower, const NetNs& elsewhere, const std::string& taken) = 0;
  virtual Result<bool> DeleteLink(int index) = 0;

  // Alternative names share the namespace's names with the links' first ones; kExists when the name is taken.
  // A move takes them along, and is refused whole (kExists) when the target has one of them. From a namespace
  // that dies, the link returns to the host without the names that are taken there. Source:
  // __dev_change_net_namespace and default_device_exit_net in net/core/dev.c.
  virtual Result<void> AddAltName(int index, const std::string& name) = 0;
  virtual Result<bool> DeleteAltName(int index, const std::string& name) = 0;

  // VF settings, through the PF, in the PF's namespace. SetVf sends one setting
  // after the other and stops at the first that is refused, which the error names:
  // those before it are in force.
  virtual Result<std::optional<VfSettings>> GetVf(int pf_index, int vf) = 0;
  virtual Result<void> SetVf(int pf_index, int vf, const VfSettings& change) = 0;

  // IPv6 without duplicate address detection: usable at once.
  virtual Result<void> AddAddress(int index, const IpPrefix& address) = 0;
  virtual Result<bool> DeleteAddress(int index, const IpPrefix& address) = 0;
  // Of one link; 0: of all.
  virtual Result<std::vector<LinkAddress>> ListAddresses(int index) = 0;

  // Adding what exists is kExists. IPv6 routes without a metric get 1024.
  virtual Result<void> AddRoute(const Route& route) = 0;
  virtual Result<bool> DeleteRoute(const Route& route) = 0;
  // All unicast routes of one family and table; table 0: of all tables. None of a
  // family that the kernel does not have.
  virtual Result<std::vector<Route>> ListRoutes(int family, std::uint32_t table) = 0;

  virtual Result<void> AddRule(const Rule& rule) = 0;
  virtual Result<bool> DeleteRule(const Rule& rule) = 0;
  // Rules with other selectors or actions than Rule has are left out. None of a family
  // that the kernel does not have.
  virtual Result<std::vector<Rule>> ListRules(int family) = 0;

  virtual Result<std::vector<Neighbour>> ListNeighbours(int index) = 0;
  virtual Result<void> SetNeighbour(const Neighbour& neighbour) = 0;
  virtual Result<bool> DeleteNeighbour(const Neighbour& neighbour) = 0;
  // Makes the kernel resolve the address on the link as if there were traffic. Uses NTF_USE, and for IPv6 a
  // solicitation of our own (netns/nl/solicit_neighbour.h). Does not wait.
  virtual Result<void> ResolveNeighbour(int index, const IpAddress& address) = 0;
  // Waits by neighbour events until it is resolved, and asks again every second if ResolveNeighbour has
  // asked. nullopt: not by the deadline.
  virtual Result<std::optional<MacAddress>> WaitNeighbour(int index, const IpAddress& address,
                                                          Deadline deadline) = 0;

  // Waits by link events until the link is up, has carrier and can send. Earlier packets would be dropped
  // silently by the kernel. false: not by the deadline; kNotFound: the link is gone.
  virtual Result<bool> WaitCarrier(int index, Deadline deadline) = 0;
};

class RdmaApi {
 public:
  RdmaApi() = default;
  RdmaApi(const RdmaApi&) = delete;
  RdmaApi& operator=(const RdmaApi&) = delete;
  virtual ~RdmaApi() = default;

  virtual Result<RdmaNetnsMode> NetnsMode() = 0;
  virtual Result<std::vector<RdmaDevice>> ListDevices() = 0;
  // Exclusive mode only. All clients of the device are removed and added again,
  // so its uverbs node can change: hold the node-wide lock and look again.
  virtual Result<void> MoveDevice(const std::string& name, const NetNs& target) = 0;
  // Soft RoCE on a netdev of this namespace. Names are node-wide: one that is
  // taken, also in another namespace, is kExists. The kernel loads rdma_rxe
  // itself; when it cannot the error says so.
  virtual Result<void> AddRxe(const std::string& name, const std::string& netdev) = 0;
  virtual Result<bool> DeleteRxe(const std::string& name) = 0;
  // Processes that have contexts, queue pairs, memory regions and the like of the device; kernel clients are
  // left out. Empty for a device that is not there.
  virtual Result<std::vector<RdmaUser>> ListUsers(const std::string& name) = 0;
};

// Settings that stay on a device when it is moved (netns/nl/device_state.h).
class DeviceApi {
 public:
  DeviceApi() = default;
  DeviceApi(const DeviceApi&) = delete;
  DeviceApi& operator=(const DeviceApi&) = delete;
  virtual ~DeviceApi() = default;

  // All settings that the driver reports; kNotFound: the link is gone.
  virtual Result<DeviceState> Read(const Link& link) = 0;
  // Sets fields of one source, and no other ones. Not atomic if this takes several messages: settings before
  // the refused one stay.
  virtual Result<void> Write(const Link& link, DeviceSource source, const DeviceState& values) = 0;
};

class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;

  virtual Result<NetNs> OpenNetns(const std::string& path) = 0;
  virtual Result<NetNs> HostNetns() = 0;
  virtual Result<std::unique_ptr<RouteApi>> OpenRoute(const NetNs& ns) = 0;
  // kUnsupported when the kernel has no RDMA subsystem.
  virtual Result<std::unique_ptr<RdmaApi>> OpenRdma(const NetNs& ns) = 0;
  virtual Result<std::unique_ptr<DeviceApi>> OpenDevices(const NetNs& ns) = 0;

  // The GID table of port 1 as a process in `ns` sees it; nullopt: no such device.
  virtual Result<std::optional<std::vector<GidEntry>>> ReadGids(const NetNs& ns,
                                                                const std::string& device) = 0;
  // Waits for an entry of that table. nullopt: not there by the deadline, or the device is gone. The kernel
  // fills tables from a work queue without an event, so this polls. This default works by ReadGids;
  // LinuxKernel's reads the likely slots first.
  virtual Result<std::optional<GidEntry>> WaitGid(const NetNs& ns, const std::string& device,
                                                  const GidRequest& request, Deadline deadline) {
    for (PollPause pause;;) {
      const bool last = std::chrono::steady_clock::now() >= deadline;
      const auto table = RH_TRY(ReadGids(ns, device));
      const auto found = table ? FindGid(*table, request) : std::nullopt;
      if (found || last || !table) return found;
      std::this_thread::sleep_for(pause.Next());
    }
  }
  // One gratuitous ARP or unsolicited NA per address. The link must be ready
  // (RouteApi::WaitCarrier).
  virtual Result<void> Announce(const NetNs& ns, const Link& link,
                                const std::vector<IpAddress>& addresses) = 0;
  // Address conflict detection (netns/packet/conflict.h), all targets at once, three probes each. Listens
  // until the budget is over or every target has a conflict; reports at most one of each. Takes some
  // milliseconds to tens of them beyond the budget per address family in use. The links must be ready
  // (RouteApi::WaitCarrier). The addresses may be configured already if the host answers nobody (arp_ignore
  // 8).
  virtual Result<std::vector<AddressConflict>> ProbeAddresses(const NetNs& ns,
                                                              const std::vector<ProbeTarget>& targets,
                                                              std::chrono::milliseconds budget) = 0;
  // sysctls of the namespace, by path below /proc/sys ("net/ipv4/conf/eth0/arp_ignore");
  // only those below net/ belong to one. Values without the final newline; absent:
  // nullopt. Writing an unknown one changes nothing; it stops at the first value that
  // is refused, which the error names.
  virtual Result<std::vector<std::optional<std::string>>> ReadSysctls(
      const NetNs& ns, const std::vector<std::string>& paths) = 0;
  virtual Result<void> WriteSysctls(const NetNs& ns, const std::vector<Sysctl>& values) = 0;
  // Whether any process is in the namespace (one that only holds a descriptor is not).
  virtual Result<bool> HasProcesses(const NetNs& ns) = 0;
  // Unbinds and binds the PCI device's driver; for drivers that read a VF's MAC
  // only when they bind. Its netdev is another one afterwards.
  virtual Result<void> RebindDriver(const std::string& bdf) = 0;
  // Binds a device that no driver is bound to: what a RebindDriver() that was
  // killed half-way left.
  virtual Result<void> BindDriver(const std::string& bdf, const std::string& driver) = 0;
  // Function-level reset, for devices that a program drives. kUnsupported: the kernel knows no way.
  virtual Result<void> ResetFunction(const std::string& bdf) = 0;
};

}  // namespace railhead
