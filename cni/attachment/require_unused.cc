#include "cni/attachment/require_unused.h"

#include <set>
#include <utility>

#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/sys/device_nodes.h"
#include "netns/sys/rdma_sysfs.h"

namespace railhead::attachment {
namespace {

constexpr const char* kEndIt = "an earlier pod may have left it: end it; the runtime tries again";

// A namespace that may have an interface on top of the device.
struct Place {
  std::string netns;
  std::string what;
};

bool IsNumber(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

Result<std::vector<Place>> PlacesOnNode(const Root& root, const Journal& journal) {
  std::vector<Place> places;
  const JournalScan scan = RH_TRY(journal.Scan());
  for (const JournalEntry& entry : scan.entries)
    places.push_back({entry.netns, "the pod of container " + entry.key.container_id});
  const std::string named = root.Path("/run/netns/");
  for (const std::string& name : RH_TRY(ListDirectory(named)).value_or(std::vector<std::string>{}))
    places.push_back({named + name, "network namespace " + name});
  const std::string proc = root.Path("/proc/");
  for (const std::string& pid : RH_TRY(ListDirectory(proc)).value_or(std::vector<std::string>{})) {
    if (IsNumber(pid)) places.push_back({proc + pid + "/ns/net", "the namespace of process " + pid});
  }
  return places;
}

Result<void> RequireNoUppers(const Root& root, Kernel& kernel, const Journal& journal,
                             const std::string& device, const Link& on_host) {
  const NetNs host = RH_TRY(kernel.HostNetns());
  std::set<unsigned long long> seen = {host.inode()};
  for (const Place& place : RH_TRY(PlacesOnNode(root, journal))) {
    const auto ns = kernel.OpenNetns(place.netns);
    if (!ns || !seen.insert(ns->inode()).second) continue;  // it has ended
    const auto route = RH_TRY(kernel.OpenRoute(*ns));
    const auto uppers = RH_TRY(route->ListUppers(on_host.index, host));
    if (uppers.empty()) continue;
    return Fail(ErrorCode::kBusy,
                "device " + device + " has interface " + uppers.front().name + " on top, in " + place.what,
                "an earlier pod left it there: remove it");
  }
  return {};
}

}  // namespace

Result<void> RequireNodesClosed(const Root& root, const std::string& device) {
  const auto held = IsVfioGroupHeld(root, device);
  if (held && !*held) return {};
  const auto open = RH_TRY(FindOpenNodes(root));
  const auto nodes = RH_TRY(NodesOf(root, device));
  for (const std::string& node : nodes) {
    const auto found = open.by_path.find(node);
    if (found == open.by_path.end()) continue;
    std::string message = "device " + device + " is used by " + DescribeProcess(root, found->second);
    message.append(" through ").append(node);
    return Fail(ErrorCode::kBusy, std::move(message), kEndIt);
  }
  if (held) {
    return Fail(ErrorCode::kBusy,
                "the VFIO group of device " + device + " is used by a process that /proc does not show",
                kEndIt);
  }
  if (nodes.empty() || open.hidden.empty()) return {};
  return Fail(ErrorCode::kPermission,
              "process " + open.hidden + " does not show whether it uses device " + device,
              "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH show it");
}

Result<void> RequireRdmaUnused(const Root& root, Kernel& kernel, const std::string& device,
                               const std::vector<std::string>& rdma_devices) {
  if (rdma_devices.empty()) return {};
  const NetNs host = RH_TRY(kernel.HostNetns());
  const auto rdma = RH_TRY(kernel.OpenRdma(host));
  for (const std::string& name : rdma_devices) {
    for (const RdmaUser& user : RH_TRY(rdma->ListUsers(name))) {
      std::vector<std::string> kinds;
      for (const auto& [kind, count] : user.resources) kinds.push_back(std::to_string(count) + " " + kind);
      const std::string who = user.pid == 0 ? "a process that /proc does not show"
                                            : DescribeProcess(root, std::to_string(user.pid));
      std::string message = "RDMA device " + name;
      message.append(" of ").append(device).append(" is used by ").append(who).append(": ");
      return Fail(ErrorCode::kBusy, message.append(Join(kinds, ", ")), kEndIt);
    }
  }
  return {};
}

Result<void> RequireUnused(const Root& root, Kernel& kernel, const Journal& journal, const PciDevice& device,
                           const std::optional<Link>& on_host) {
  const std::string bdf = device.address.ToString();
  RH_TRY(RequireNodesClosed(root, bdf));
  if (!on_host) return {};
  auto rdma_devices = RH_TRY(RdmaDevicesOf(root, device.address));
  for (std::string& soft : RH_TRY(RxeDevicesOf(root, on_host->name))) rdma_devices.push_back(std::move(soft));
  RH_TRY(RequireRdmaUnused(root, kernel, bdf, rdma_devices));
  return RequireNoUppers(root, kernel, journal, bdf, *on_host);
}

}  // namespace railhead::attachment
