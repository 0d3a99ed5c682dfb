#include "cni/attachment/verify.h"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "cni/attachment/rdma.h"
#include "cni/attachment/routing.h"
#include "cni/nccl/nccl_config.h"
#include "cni/nccl/stack_files.h"
#include "cni/state/cdi_spec.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/sys/pci.h"

namespace railhead::attachment {
namespace {

void CheckLink(Differences& differences, const Link& now, const AttachedLink& link) {
  if (!link.parentless) {
    CheckValue(differences, link.pod_name + ": device",
               now.parent_device.empty() ? "none" : now.parent_device, link.device);
  }
  if (!now.up) differences.push_back(link.pod_name + " is down");
  if (now.up && !now.carrier) differences.push_back(link.pod_name + " has no carrier");
  const MacAddress mac = link.vf_change.mac.value_or(link.host_mac);
  CheckValue(differences, link.pod_name + ": MTU", std::to_string(now.mtu), std::to_string(link.pod_mtu));
  CheckValue(differences, link.pod_name + ": MAC", now.mac.ToString(), mac.ToString());
}

void CheckTuning(Differences& differences, const Link& now, const AttachedLink& link) {
  const LinkTuning& wanted = link.tuning;
  const std::string& name = link.pod_name;
  auto on_off = [](bool on) { return std::string(on ? "on" : "off"); };
  if (wanted.alias)
    CheckValue(differences, name + ": alias", "'" + now.alias + "'", "'" + *wanted.alias + "'");
  if (wanted.tx_queue_len) {
    CheckValue(differences, name + ": txQLen", std::to_string(now.tx_queue_len),
               std::to_string(*wanted.tx_queue_len));
  }
  if (wanted.promiscuous) {
    CheckValue(differences, name + ": promisc", on_off(now.promiscuous), on_off(*wanted.promiscuous));
  }
  if (wanted.all_multicast) {
    CheckValue(differences, name + ": allmulti", on_off(now.all_multicast), on_off(*wanted.all_multicast));
  }
  for (const auto& alt_name : wanted.alt_names) {
    if (!Contains(now.alt_names, alt_name)) {
      std::string text = name;
      differences.push_back(text.append(" has lost its alternative name ").append(alt_name));
    }
  }
}

// The kernel answers a list of numbers with tabs between them, however it was written.
std::string Words(const std::string& value) {
  std::string words;
  for (const char c : value) words += c == '\t' || c == '\n' ? ' ' : c;
  std::vector<std::string> parts = Split(words, ' ');
  parts.erase(std::remove(parts.begin(), parts.end(), std::string()), parts.end());
  return Join(parts, " ");
}

// Ours, and over them those of the configuration.
Result<void> CheckSysctls(Differences& differences, Kernel& kernel, const NetNs& pod,
                          const AttachedLink& link) {
  const std::string conf = "net/ipv4/conf/" + link.pod_name + "/";
  auto wanted = link.tuning.sysctls;
  for (const auto& [sysctl, value] :
       {std::pair{"arp_ignore", "1"}, {"arp_announce", "2"}, {"rp_filter", "2"}}) {
    const std::string path = conf + sysctl;
    if (!Contains(wanted, path, &Sysctl::path)) wanted.push_back({path, value});
  }
  std::vector<std::string> paths;
  paths.reserve(wanted.size());
  for (const auto& [path, value] : wanted) paths.push_back(path);
  const auto values = RH_TRY(kernel.ReadSysctls(pod, paths));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CheckValue(differences, "sysctl " + paths[i], Words(values[i].value_or("(absent)")),
               Words(wanted[i].value));
  }
  return {};
}

Result<void> CheckAddresses(Differences& differences, RouteApi& pod, const Link& now,
                            const AttachedLink& link) {
  const auto addresses = RH_TRY(pod.ListAddresses(now.index));
  for (const auto& wanted : link.addresses) {
    if (!Contains(addresses, wanted)) {
      differences.push_back("address " + wanted.ToString() + " is missing on " + link.pod_name);
    }
  }
  return {};
}

Result<void> CheckRules(Differences& differences, RouteApi& pod, const AttachedLink& link) {
  if (link.table == 0) return {};
  for (const int family : {AF_INET, AF_INET6}) {
    const auto rules = RH_TRY(pod.ListRules(family));
    for (const auto& wanted : RulesFor(link.addresses, link.pod_name, link.table)) {
      if (wanted.family != family) continue;
      if (!Contains(rules, wanted)) {
        differences.push_back("rule '" + wanted.ToString() + "' is missing");
      }
    }
  }
  return {};
}

// Of an IPv6 route without one, the kernel makes 1024 (IP6_RT_PRIO_USER, include/net/ip6_fib.h).
std::uint32_t MetricOf(const Route& route) {
  static constexpr std::uint32_t kUserPriority = 1024;
  return route.metric == 0 && route.destination.address.IsV6() ? kUserPriority : route.metric;
}

bool IsAsPromised(const Route& route, const Route& wanted, int link) {
  return route.destination == wanted.destination && route.gateway == wanted.gateway && route.link == link &&
         route.source == wanted.source && MetricOf(route) == MetricOf(wanted) && route.mtu == wanted.mtu &&
         route.advmss == wanted.advmss;
}

Result<void> CheckRoutes(Differences& differences, RouteApi& pod, const Link& now, const AttachedLink& link) {
  for (const auto& wanted : link.routes) {
    const auto routes = RH_TRY(pod.ListRoutes(wanted.destination.address.Family(), wanted.table));
    const bool there = std::ranges::any_of(
        routes, [&](const Route& route) { return IsAsPromised(route, wanted, now.index); });
    if (!there) differences.push_back("route '" + wanted.ToString() + "' is missing");
  }
  return {};
}

std::string NameOfProto(std::uint16_t proto) {
  return proto == kVlanProto8021ad ? "802.1ad" : "802.1q";
}

Result<void> CheckVf(Differences& differences, const Root& root, RouteApi& host, const AttachedLink& link) {
  // Nothing was promised; and there are PFs that do not list their VFs (switchdev mode).
  if (link.vf < 0 || link.vf_change.Empty()) return {};
  const auto address = PciAddress::Parse(link.pf);
  const auto name = address ? RH_TRY(UplinkNetdev(root, *address)) : std::nullopt;
  const auto pf = name ? RH_TRY(host.FindLink(*name)) : std::nullopt;
  if (!pf) {
    differences.push_back("the PF " + link.pf + " of " + link.device + " is not on the host");
    return {};
  }
  const auto now = RH_TRY(host.GetVf(pf->index, link.vf));
  if (!now) {
    differences.push_back("VF " + std::to_string(link.vf) + " of " + pf->name + " is gone");
    return {};
  }
  const std::string vf = "VF " + std::to_string(link.vf) + " of " + pf->name;
  const VfChange& wanted = link.vf_change;
  auto on_off = [](bool on) { return std::string(on ? "on" : "off"); };
  if (wanted.mac) CheckValue(differences, vf + ": MAC", now->mac.ToString(), wanted.mac->ToString());
  if (wanted.vlan) {
    CheckValue(differences, vf + ": VLAN", std::to_string(now->vlan), std::to_string(wanted.vlan->id));
    CheckValue(differences, vf + ": VLAN QoS", std::to_string(now->qos), std::to_string(wanted.vlan->qos));
    CheckValue(differences, vf + ": VLAN protocol", NameOfProto(now->vlan_proto),
               NameOfProto(wanted.vlan->proto));
  }
  if (wanted.spoofchk)
    CheckValue(differences, vf + ": spoofchk", on_off(now->spoofchk.value_or(false)),
               on_off(*wanted.spoofchk));
  if (wanted.trust)
    CheckValue(differences, vf + ": trust", on_off(now->trust.value_or(false)), on_off(*wanted.trust));
  if (wanted.rate) {
    CheckValue(differences, vf + ": max_tx_rate", std::to_string(now->max_tx_rate.value_or(0)),
               std::to_string(wanted.rate->max));
    CheckValue(differences, vf + ": min_tx_rate", std::to_string(now->min_tx_rate.value_or(0)),
               std::to_string(wanted.rate->min));
  }
  if (wanted.link_state) {
    CheckValue(differences, vf + ": link_state",
               std::to_string(static_cast<int>(now->link_state.value_or(VfLinkState::kAuto))),
               std::to_string(static_cast<int>(*wanted.link_state)));
  }
  return {};
}

Result<void> CheckAttachedLink(Differences& differences, const Root& root, Kernel& kernel,
                               PodNetwork& network, const AttachedLink& link) {
  RH_TRY(CheckVf(differences, root, *network.host, link));
  if (link.user_space) return {};
  const auto now = RH_TRY(network.pod->FindLink(link.pod_name));
  if (!now) {
    differences.push_back("interface " + link.pod_name + " is missing in the pod");
    return {};
  }
  CheckLink(differences, *now, link);
  CheckTuning(differences, *now, link);
  RH_TRY(CheckSysctls(differences, kernel, network.pod_ns, link));
  RH_TRY(CheckAddresses(differences, *network.pod, *now, link));
  RH_TRY(CheckRules(differences, *network.pod, link));
  RH_TRY(CheckRoutes(differences, *network.pod, *now, link));
  return CheckRdma(differences, root, kernel, network.pod_ns, link);
}

}  // namespace

Result<Differences> FindDifferences(const Root& root, Kernel& kernel, PodNetwork& network,
                                    const JournalEntry& entry) {
  Differences differences;
  if (network.pod_ns.inode() != entry.netns_inode) {
    differences.push_back("CNI_NETNS is another namespace than at ADD (" + entry.netns + ")");
  }
  for (const auto& link : entry.links) {
    RH_TRY(CheckAttachedLink(differences, root, kernel, network, link));
  }
  RH_TRY(CheckHandoff(differences, root, kernel, network.pod_ns, entry));
  return differences;
}

Result<Differences> FindHandoffDrift(const Root& root, Kernel& kernel, PodNetwork& network,
                                     const JournalEntry& entry) {
  Differences differences;
  for (const auto& link : entry.links) {
    if (link.user_space || !link.handoff || !link.gid_index) continue;
    const auto now = RH_TRY(network.pod->FindLink(link.pod_name));
    if (!now) {
      differences.push_back("interface " + link.pod_name + " is missing in the pod");
      continue;
    }
    RH_TRY(CheckAddresses(differences, *network.pod, *now, link));
    RH_TRY(CheckRdma(differences, root, kernel, network.pod_ns, link));
  }
  RH_TRY(CheckHandoff(differences, root, kernel, network.pod_ns, entry));
  return differences;
}

namespace {

bool IsTold(const AttachedLink& link) {
  return link.handoff && link.gid_index;
}

// The files that containers have mounted go to `mounted`.
Result<void> CheckCdi(Differences& differences, const Root& root, const AttachedLink& link,
                      std::set<std::string>& mounted) {
  const std::string path = paths::CdiSpec(root, link.KubeletId());
  const auto spec = RH_TRY(ReadCdiSpec(root, link.KubeletId()));
  if (!spec) {
    differences.push_back("the CDI spec " + path + " is missing");
    return {};
  }
  for (const auto& mount : spec->mounts) mounted.insert(mount.host_path);
  if (link.uverbs.empty()) return {};
  const std::string node = "/dev/infiniband/" + link.uverbs;
  const auto& nodes = spec->device_nodes;
  if (!Contains(nodes, node)) differences.push_back("the CDI spec " + path + " does not name " + node);
  return {};
}

std::string InWords(const std::vector<GidEntry>& table, int index) {
  const auto entry = std::ranges::find(table, index, &GidEntry::index);
  return std::to_string(index) +
         (entry == table.end() ? "" : " (" + AddressOfGid(entry->gid).ToString() + ")");
}

// A GID that has come before the pod's own goes unnoticed until the next connection.
void CheckSearch(Differences& differences, const char* who, const AttachedLink& link,
                 const std::vector<GidEntry>& table, int picked) {
  if (picked == *link.gid_index) return;
  CheckValue(differences, link.rdma_device + ": the GID index that " + who + " finds", InWords(table, picked),
             InWords(table, *link.gid_index));
}

// What the files say of the NICs; "": there is no such file.
struct Told {
  std::string nccl_path;
  std::string nccl;
  std::optional<nccl::GidSelection> gids;
  std::string ucx_path;
  std::string ucx;
};

Result<Told> ReadTold(const Root& root, const JournalEntry& entry, const std::set<std::string>& mounted) {
  Told told;
  told.nccl_path = nccl::HandoffPath(root, entry.key.container_id);
  told.nccl = RH_TRY(ReadFile(told.nccl_path)).value_or("");
  told.gids = nccl::GidsIn(told.nccl);
  told.ucx_path = nccl::HandoffPath(root, entry.key.container_id, nccl::kUcxConfName);
  if (mounted.contains(told.ucx_path)) told.ucx = RH_TRY(ReadFile(told.ucx_path)).value_or("");
  return told;
}

void CheckNccl(Differences& differences, const Told& told, const AttachedLink& link,
               const std::vector<GidEntry>& table) {
  const auto devices = Split(nccl::ValueIn(told.nccl, "NCCL_IB_HCA").value_or(""), ',');
  if (!Contains(devices, link.rdma_device))
    differences.push_back("the handoff file " + told.nccl_path + " does not name " + link.rdma_device);
  if (told.gids && std::holds_alternative<nccl::GidSearch>(*told.gids)) {
    CheckSearch(differences, "NCCL", link, table, NcclPicks(table, std::get<nccl::GidSearch>(*told.gids)));
  } else {
    CheckValue(differences, told.nccl_path + ": NCCL_IB_GID_INDEX",
               nccl::ValueIn(told.nccl, "NCCL_IB_GID_INDEX").value_or("(absent)"),
               std::to_string(*link.gid_index));
  }
}

void CheckUcx(Differences& differences, const Told& told, const AttachedLink& link,
              const std::vector<GidEntry>& table) {
  const auto devices = Split(nccl::ValueIn(told.ucx, "UCX_NET_DEVICES").value_or(""), ',');
  if (!Contains(devices, link.rdma_device + ":1"))
    differences.push_back("the handoff file " + told.ucx_path + " does not name " + link.rdma_device);
  if (const auto index = nccl::ValueIn(told.ucx, "UCX_IB_GID_INDEX")) {
    CheckValue(differences, told.ucx_path + ": UCX_IB_GID_INDEX", *index, std::to_string(*link.gid_index));
  } else if (const auto picked = nccl::UcxPicks(table)) {
    CheckSearch(differences, "UCX", link, table, *picked);
  }
}

Result<void> CheckLinkIsTold(Differences& differences, Kernel& kernel, const NetNs& pod, const Told& told,
                             const AttachedLink& link) {
  const bool searched = told.gids && std::holds_alternative<nccl::GidSearch>(*told.gids);
  std::vector<GidEntry> table;
  if (searched) {
    auto now = RH_TRY(kernel.ReadGids(pod, link.rdma_device));
    if (!now) return {};  // CheckRdma() tells
    table = *std::move(now);
  }
  CheckNccl(differences, told, link, table);
  if (!told.ucx.empty()) CheckUcx(differences, told, link, table);
  return {};
}

}  // namespace

Result<void> CheckRdma(Differences& differences, const Root& root, Kernel& kernel, const NetNs& pod,
                       const AttachedLink& link) {
  if (link.rdma_device.empty()) return {};
  if (!link.gid_index) {  // nothing was promised but the device
    const auto rdma = RH_TRY(kernel.OpenRdma(pod));
    const auto devices = RH_TRY(rdma->ListDevices());
    const bool there = Contains(devices, link.rdma_device, &RdmaDevice::name);
    if (!there) differences.push_back("RDMA device " + link.rdma_device + ": is not visible in the pod");
    return {};
  }
  const IpAddress* address = GidAddressOf(link);
  if (address == nullptr)
    return Fail(ErrorCode::kMalformed, "the journal has a GID of " + link.device + " without an address");
  const auto ready = WaitRdma(root, kernel, link, pod, *address, std::chrono::steady_clock::now());
  if (!ready) {
    differences.push_back(Describe(ready.error()));
    return {};
  }
  CheckValue(differences, link.rdma_device + ": GID index of " + address->ToString(),
             std::to_string(ready->gid.index), std::to_string(*link.gid_index));
  CheckValue(differences, link.rdma_device + ": uverbs node", ready->uverbs, link.uverbs);
  return {};
}

Result<void> CheckHandoff(Differences& differences, const Root& root, Kernel& kernel, const NetNs& pod,
                          const JournalEntry& entry) {
  std::set<std::string> needed;
  for (const auto& link : entry.links) {
    RH_TRY(CheckCdi(differences, root, link, needed));
    if (IsTold(link)) needed.insert(nccl::HandoffPath(root, entry.key.container_id));
  }
  const Told told = RH_TRY(ReadTold(root, entry, needed));
  for (const auto& link : entry.links) {
    if (IsTold(link) && !told.nccl.empty()) RH_TRY(CheckLinkIsTold(differences, kernel, pod, told, link));
  }
  for (const auto& path : needed) {
    if (!Exists(path)) differences.push_back("the handoff file " + path + " is missing");
  }
  return {};
}

}  // namespace railhead::attachment
