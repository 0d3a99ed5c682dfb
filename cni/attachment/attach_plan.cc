#include "cni/attachment/attach_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "cni/attachment/acquire.h"
#include "cni/attachment/devices.h"
#include "cni/attachment/reset.h"
#include "cni/protocol/plugin.h"
#include "cni/state/displaced_names.h"
#include "netns/base/text.h"
#include "netns/sys/rdma_sysfs.h"

namespace railhead::attachment {
namespace {

// What all links of one ADD are resolved against.
struct Facts {
  const Root& root;
  RouteApi& host;
  const PluginConfig& config;
  const std::optional<Fabric>& fabric;
  const CallPermissions& may;
  std::vector<std::string> pfs_in_order;  // only when a rail names its PF by position
};

Result<void> FindPf(const Facts& facts, LinkPlan& link) {
  if (!link.device.is_vf) return {};
  if (!link.device.physfn || !link.device.vf_index) {
    return Fail(ErrorCode::kNotFound, "the PF of VF " + link.bdf + " is not in sysfs");
  }
  link.pf_bdf = link.device.physfn->ToString();
  const auto name = RH_TRY(UplinkNetdev(facts.root, *link.device.physfn));
  const auto pf = name ? RH_TRY(facts.host.FindLink(*name)) : std::nullopt;
  if (!pf) {
    return Fail(ErrorCode::kNotFound,
                "the PF " + link.pf_bdf + " of VF " + link.bdf + " has no network interface on the host",
                "was the PF itself moved into a pod?");
  }
  link.pf_name = pf->name;
  link.pf_index = pf->index;
  link.host_vf = RH_TRY(facts.host.GetVf(pf->index, *link.device.vf_index));
  return {};
}

Result<const Rail*> FindRailNamed(const Facts& facts, const std::string& name) {
  const Rail* rail = facts.fabric ? facts.fabric->FindRail(name) : nullptr;
  if (rail != nullptr) return rail;
  std::vector<std::string> names;
  if (facts.fabric) {
    for (const auto& known : facts.fabric->rails) names.push_back(known.name);
  }
  return Fail(ErrorCode::kInvalid, "network configuration: /rail: there is no rail '" + name + "'",
              facts.fabric ? facts.config.fabric_path + " has " + Join(names, ", ")
                           : "there is no " + facts.config.fabric_path);
}

Result<const Rail*> FindOwnRail(const Facts& facts, const LinkPlan& link) {
  if (!facts.fabric) return nullptr;
  const bool is_vf = link.device.is_vf;
  const std::string& pf = is_vf ? link.pf_bdf : link.bdf;
  // Its rail is that of its own name, whatever it is called meanwhile.
  const std::string name = RH_TRY(OwnNameOf(facts.root, pf, is_vf ? link.pf_name : link.host_link.name));
  return facts.fabric->RailOfPf(name, pf, facts.pfs_in_order);
}

Result<void> FindRailOf(const Facts& facts, LinkPlan& link) {
  const PluginConfig& config = facts.config;
  const Rail* own = RH_TRY(FindOwnRail(facts, link));
  const Rail* rail = config.rail ? RH_TRY(FindRailNamed(facts, *config.rail)) : own;
  if (rail != nullptr) link.rail = *rail;
  const std::string own_name = own == nullptr ? std::string() : own->name;
  if (config.rail && *config.rail != own_name) RH_TRY(facts.may.Require("rail", "/rail"));
  if (config.ipam_rail && *config.ipam_rail != own_name) RH_TRY(facts.may.Require("rail", "/ipam/rail"));
  return {};
}

// The configuration beats the rail; what neither says is not touched.
void MergeVfSettings(const PluginConfig& config, LinkPlan& link) {
  const Rail* rail = link.rail ? &*link.rail : nullptr;
  const auto vlan = config.vlan ? config.vlan : (rail != nullptr ? rail->vlan : std::nullopt);
  if (vlan) {
    const int rail_qos = rail != nullptr && !config.vlan ? rail->vlan_qos : 0;
    link.vf_change.vlan = VfChange::Vlan{*vlan, config.vlan_qos.value_or(rail_qos),
                                         config.vlan_proto.value_or(kVlanProto8021q)};
  }
  link.vf_change.mac = config.mac;
  link.vf_change.spoofchk = config.spoofchk;
  link.vf_change.trust = config.trust;
  link.vf_change.link_state = config.link_state;
  if (config.min_tx_rate || config.max_tx_rate) {
    // As in sriov-cni: the one that is not given is sent as 0, no limit.
    link.vf_change.rate = VfChange::Rate{config.min_tx_rate.value_or(0), config.max_tx_rate.value_or(0)};
  }
  link.mac = config.mac;
  link.mtu = config.mtu ? config.mtu : (rail != nullptr ? rail->mtu : std::nullopt);
}

Result<void> CheckVfSettings(const PluginConfig& config, LinkPlan& link) {
  if (!link.vf_change.vlan) {
    const char* field = config.vlan_qos.value_or(0) != 0 ? "vlanQoS"
                        : config.vlan_proto              ? "vlanProto"
                                                         : nullptr;
    if (field != nullptr) {
      return Fail(ErrorCode::kInvalid, std::string("network configuration: /") + field + ": needs a vlan");
    }
  }
  if (link.device.is_vf) {
    if (!link.vf_change.Empty() && !link.host_vf) {
      return Fail(
          ErrorCode::kUnsupported,
          "PF " + link.pf_name + " reports no settings of VF " + std::to_string(*link.device.vf_index),
          "its driver cannot set vlan, mac, rates and the like");
    }
    return {};
  }
  if (link.user_space) {
    return Fail(
        ErrorCode::kUnsupported,
        "device " + link.bdf + " is a PF bound to " + link.device.driver.value_or("a user-space driver"),
        "only VFs can be given to a pod that way: bind it to its network driver, or use its VFs");
  }
  // A PF has its MAC itself, and nothing has set a VLAN for it that 0 would clear.
  link.vf_change.mac.reset();
  if (link.vf_change.vlan && link.vf_change.vlan->id == 0) link.vf_change.vlan.reset();
  if (link.vf_change.vlan && !config.vlan) {
    return Fail(ErrorCode::kInvalid,
                "device " + link.bdf + " is a PF, and rail '" + link.RailName() + "' has VLAN " +
                    std::to_string(link.vf_change.vlan->id) + ", which can only be set for VFs",
                "use a VF of the rail, or have the switch port tag and remove `vlan` of the rail");
  }
  if (!link.vf_change.Empty()) {
    return Fail(ErrorCode::kInvalid,
                "device " + link.bdf + " is a PF: vlan, rates, trust and spoofchk can only be set for VFs");
  }
  return {};
}

Result<void> PlanRdma(const Facts& facts, LinkPlan& link) {
  if (link.user_space) return {};
  link.soft_roce = facts.config.soft_roce.value_or(link.rail && link.rail->soft_roce);
  const auto devices = RH_TRY(RdmaDevicesOf(facts.root, link.device.address));
  if (link.soft_roce && !devices.empty()) {
    return Fail(ErrorCode::kInvalid,
                "softRoce is set, but device " + link.bdf + " has the RDMA device " + devices.front(),
                "remove softRoce from the rail or the network configuration");
  }
  if (link.soft_roce) {
    // Names of RDMA devices are node-wide.
    link.rdma_device = link.device.is_vf ? "rxe_" + link.pf_name + "v" + std::to_string(*link.device.vf_index)
                                         : "rxe_" + link.host_link.name;
  } else if (!devices.empty()) {
    link.rdma_device = devices.front();
  }
  return {};
}

Result<void> PlanHandoff(const Facts& facts, LinkPlan& link) {
  link.allocation = RH_TRY(ReadAllocation(facts.root, link.slot.empty() ? link.bdf : link.slot));
  const HandoffWish wish = facts.config.handoff;
  const bool by_record = link.allocation && link.allocation->handoff == HandoffPolicy::kRequired;
  link.handoff_required = wish == HandoffWish::kRequired || (wish == HandoffWish::kAuto && by_record);
  const bool wanted =
      wish == HandoffWish::kRequired || (wish == HandoffWish::kAuto && (!link.allocation || by_record));
  link.handoff = wanted && !link.rdma_device.empty();
  if (link.handoff_required && link.rdma_device.empty()) {
    return Fail(ErrorCode::kUnsupported,
                "a handoff is required, but device " + link.bdf + " has no RDMA device",
                "load the NIC's RDMA driver, or set softRoce on the rail, or \"handoff\": \"off\"");
  }
  return {};
}

Result<LinkPlan> PlanLink(const Facts& facts, const DeviceChoice& choice, const PciAddress& address) {
  LinkPlan link;
  link.bdf = address.ToString();
  if (const auto slot = choice.slots.find(address); slot != choice.slots.end()) link.slot = slot->second;
  link.device = RH_TRY(FindNic(facts.root, address));
  link.user_space = IsForUserSpace(link.device);
  if (!link.user_space) {
    link.host_link = RH_TRY(FindHostLink(facts.root, facts.host, link.device));
    RH_TRY(RefuseIfHostUses(facts.root, facts.host, link.host_link, link.bdf));
  } else {
    RH_TRY(RequireNodesClosed(facts.root, link.bdf));
  }
  RH_TRY(FindPf(facts, link));
  RH_TRY(FindRailOf(facts, link));
  MergeVfSettings(facts.config, link);
  RH_TRY(CheckVfSettings(facts.config, link));
  RH_TRY(PlanRdma(facts, link));
  RH_TRY(PlanHandoff(facts, link));
  link.table = facts.config.table.value_or(link.rail ? link.rail->table : 0);
  return link;
}

// What can only be meant for one interface.
Result<void> RefuseForSeveral(const PluginConfig& config, std::size_t count) {
  const char* field = config.mac                         ? "mac"
                      : !config.tuning.alt_names.empty() ? "altNames"
                      : config.table                     ? "table"
                      : config.rail                      ? "rail"
                      : config.gateway                   ? "gateway"
                                                         : nullptr;
  if (count < 2 || field == nullptr) return {};
  return Fail(ErrorCode::kInvalid,
              std::string("network configuration: /") + field + ": cannot be the same for " +
                  std::to_string(count) + " devices",
              "describe the rails in the fabric instead");
}

// rail0, rail1, ...; a second device of a rail is rail0-1; without a rail nic0, ...
Result<void> NameByRail(std::vector<LinkPlan>& links) {
  std::map<std::string, int> used;
  std::set<std::string> names;
  for (auto& link : links) {
    const int number = used[link.RailName()]++;
    link.pod_name = !link.rail   ? "nic" + std::to_string(number)
                    : number > 0 ? link.rail->name + "-" + std::to_string(number)
                                 : link.rail->name;
    if (!IsInterfaceName(link.pod_name) || link.pod_name == "lo") {
      return Fail(ErrorCode::kInvalid,
                  "'" + link.pod_name + "', from rail '" + link.RailName() + "', is no interface name",
                  "interfaces are called after their rails: give the rail a name of at most 13 characters");
    }
    if (!names.insert(link.pod_name).second) {
      return Fail(ErrorCode::kInvalid, "two devices of this pod would both be called '" + link.pod_name + "'",
                  "do not name a rail like the second device of another (rail0-1) or like a NIC without rail "
                  "(nic0)");
    }
  }
  return {};
}

void SortByRail(const std::optional<Fabric>& fabric, std::vector<LinkPlan>& links) {
  const auto position = [&](const LinkPlan& link) {
    std::size_t at = 0;
    while (fabric && link.rail && at < fabric->rails.size() && fabric->rails[at].name != link.rail->name)
      ++at;
    return std::make_tuple(!link.rail, at, link.device.address);
  };
  std::ranges::sort(links, [&](const LinkPlan& a, const LinkPlan& b) { return position(a) < position(b); });
}

std::string IpamTypeOf(const AttachPlan& plan) {
  if (plan.config.ipam_given) return plan.config.ipam_type;
  const bool any_subnet =
      std::ranges::any_of(plan.links, [](const LinkPlan& link) { return link.rail && link.rail->subnet; });
  return any_subnet ? kOwnIpam : "";
}

Result<Facts> GatherFacts(const Root& root, RouteApi& host, const PluginConfig& config,
                          const std::optional<Fabric>& fabric, const CallPermissions& may) {
  Facts facts{root, host, config, fabric, may, {}};
  // Only a rail that names its PF by position makes it necessary to look at every PCI
  // function of the node.
  const bool by_position = fabric && std::ranges::any_of(fabric->rails, [](const Rail& rail) {
                             return rail.position.has_value();
                           });
  if (by_position) {
    for (const auto& pf : RH_TRY(ListRailPfs(root))) facts.pfs_in_order.push_back(pf.address.ToString());
  }
  return facts;
}

}  // namespace

Result<AttachPlan> ResolvePlan(const Root& root, RouteApi& host, const CniRequest& request,
                               const PluginConfig& config, const DeviceChoice& choice,
                               const CallPermissions& may) {
  RH_TRY(RefuseForSeveral(config, choice.devices.size()));
  AttachPlan plan;
  plan.config = config;
  const auto fabric = RH_TRY(ReadFabric(root, config.fabric_path));
  const Facts facts = RH_TRY(GatherFacts(root, host, config, fabric, may));
  for (const auto& address : choice.devices) plan.links.push_back(RH_TRY(PlanLink(facts, choice, address)));
  SortByRail(fabric, plan.links);
  if (choice.named_by_rail) {
    RH_TRY(NameByRail(plan.links));
  } else {
    for (auto& link : plan.links) link.pod_name = request.ifname;
  }
  plan.ipam_type = IpamTypeOf(plan);
  if (fabric) plan.handoff = fabric->handoff_options;
  if (fabric && fabric->rdma_exclusive) {
    plan.rdma_mode = *fabric->rdma_exclusive ? RdmaNetnsMode::kExclusive : RdmaNetnsMode::kShared;
  }
  plan.conflict_probe_ms =
      config.conflict_probe_ms.value_or(fabric ? fabric->conflict_probe_ms : kDefaultConflictProbeMs);
  plan.for_pod = may.is_pods();
  plan.meet_gateways = config.gateway_check;
  RH_TRY(RefuseMacsOfOthers(root, host, plan));
  return plan;
}

}  // namespace railhead::attachment
