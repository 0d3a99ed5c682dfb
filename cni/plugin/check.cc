#include <sys/socket.h>

#include <algorithm>
#include <chrono>

#include "cni/plugin/attach.h"
#include "cni/plugin/ipam_step.h"
#include "cni/plugin/plugin.h"
#include "cni/plugin/rdma_step.h"
#include "cni/state/handoff.h"
#include "netns/base/files.h"
#include "netns/sys/pci.h"

namespace railhead {
namespace {

// Everything that is not as ADD left it, in words.
using Differences = std::vector<std::string>;

void CheckValue(Differences& differences, const std::string& what, const std::string& is,
                const std::string& should) {
  if (is != should) differences.push_back(what + " is " + is + ", should be " + should);
}

void CheckLink(Differences& differences, const Link& now, const AttachedLink& link) {
  if (!now.parent_device.empty())
    CheckValue(differences, link.pod_name + ": device", now.parent_device, link.device);
  if (!now.up) differences.push_back(link.pod_name + " is down");
  if (now.up && !now.carrier) differences.push_back(link.pod_name + " has no carrier");
  const MacAddress mac = link.vf_change.mac.value_or(link.host_mac);
  CheckValue(differences, link.pod_name + ": MTU", std::to_string(now.mtu), std::to_string(link.pod_mtu));
  CheckValue(differences, link.pod_name + ": MAC", now.mac.ToString(), mac.ToString());
}

Result<void> CheckAddresses(Differences& differences, RouteApi& pod, const Link& now,
                            const AttachedLink& link) {
  const auto addresses = RH_TRY(pod.ListAddresses(now.index));
  for (const auto& wanted : link.addresses) {
    if (std::find(addresses.begin(), addresses.end(), wanted) == addresses.end()) {
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
      if (std::find(rules.begin(), rules.end(), wanted) == rules.end()) {
        differences.push_back("rule '" + wanted.ToString() + "' is missing");
      }
    }
  }
  return {};
}

Result<void> CheckRoutes(Differences& differences, RouteApi& pod, const Link& now, const AttachedLink& link) {
  for (const auto& wanted : link.routes) {
    const auto routes = RH_TRY(pod.ListRoutes(wanted.destination.address.Family(), wanted.table));
    const bool there = std::any_of(routes.begin(), routes.end(), [&](const Route& route) {
      return route.destination == wanted.destination && route.gateway == wanted.gateway &&
             route.link == now.index;
    });
    if (!there) differences.push_back("route '" + wanted.ToString() + "' is missing");
  }
  return {};
}

Result<void> CheckVf(Differences& differences, const Root& root, RouteApi& host, const AttachedLink& link) {
  const auto address = PciAddress::Parse(link.pf);
  const auto name = address ? RH_TRY(UplinkNetdev(root, *address)) : std::nullopt;
  const auto pf = name ? RH_TRY(host.FindLink(*name)) : std::nullopt;
  if (!pf) return {};
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

Result<void> CheckRdma(Differences& differences, const Root& root, Kernel& kernel, const NetNs& pod,
                       const JournalEntry& entry, const AttachedLink& link) {
  if (link.rdma_device.empty() || !link.gid_index) return {};
  std::optional<IpAddress> address;
  for (const auto& candidate : link.addresses) {
    if (!address || (address->IsV6() && candidate.address.IsV4())) address = candidate.address;
  }
  const auto ready = WaitRdma(root, kernel, link, pod, *address, std::chrono::steady_clock::now());
  if (!ready) {
    differences.push_back(Describe(ready.error()));
    return {};
  }
  CheckValue(differences, link.rdma_device + ": GID index of " + address->ToString(),
             std::to_string(ready->gid.index), std::to_string(*link.gid_index));
  CheckValue(differences, link.rdma_device + ": uverbs node", ready->uverbs, link.uverbs);
  if (entry.handoff_required && !Exists(HandoffPath(root, entry.key.container_id))) {
    differences.push_back("the handoff file " + HandoffPath(root, entry.key.container_id) + " is missing");
  }
  return {};
}

// What the runtime remembers must be what ADD answered.
Result<void> CheckPrevious(Differences& differences, const std::string& prev_result,
                           const JournalEntry& entry) {
  const CniResult previous = RH_TRY(ParseCniResult(prev_result, "prevResult"));
  for (const auto& link : entry.links) {
    for (const auto& address : link.addresses) {
      const bool known = std::any_of(previous.ips.begin(), previous.ips.end(),
                                     [&](const CniIp& ip) { return ip.address == address; });
      if (!known) differences.push_back("prevResult does not have address " + address.ToString());
    }
  }
  return {};
}

}  // namespace

Result<void> RailheadPlugin::Check(const CniRequest& request) {
  const PluginConfig config = RH_TRY(ReadPluginConfig(request));
  const AttachmentKey key{request.network, request.container_id, request.ifname};
  const auto entry = RH_TRY(journal_.Find(key));
  if (!entry || entry->phase != Phase::kDone) {
    return Fail(ErrorCode::kNotFound, "CHECK: there is no finished attachment " + key.ToString());
  }
  Attachment attachment = RH_TRY(Attachment::Open(root_, kernel_, request));
  Differences differences;
  if (!config.prev_result.empty()) RH_TRY(CheckPrevious(differences, config.prev_result, *entry));
  for (const auto& link : entry->links) {
    const auto now = RH_TRY(attachment.pod().FindLink(link.pod_name));
    if (!now) {
      differences.push_back("interface " + link.pod_name + " is missing in the pod");
      continue;
    }
    CheckLink(differences, *now, link);
    RH_TRY(CheckAddresses(differences, attachment.pod(), *now, link));
    RH_TRY(CheckRules(differences, attachment.pod(), link));
    RH_TRY(CheckRoutes(differences, attachment.pod(), *now, link));
    RH_TRY(CheckVf(differences, root_, attachment.host(), link));
    RH_TRY(CheckRdma(differences, root_, kernel_, attachment.pod_ns(), *entry, link));
  }
  if (!differences.empty()) {
    std::string all;
    for (const auto& difference : differences) all.append(all.empty() ? "" : "; ").append(difference);
    return Fail(ErrorCode::kConflict, "CHECK of " + key.ToString() + ": " + all,
                "delete the pod to attach anew");
  }
  return entry->ipam_type.empty() ? Result<void>()
                                  : IpamCheck(request, entry->ipam_type, entry->links.front().rail);
}

}  // namespace railhead
