#include "cni/attachment/attach_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "cni/attachment/devices.h"
#include "cni/attachment/host_device.h"
#include "cni/attachment/host_state.h"
#include "cni/attachment/ipam_plan.h"
#include "cni/attachment/mac_owners.h"
#include "cni/attachment/refuse_host_use.h"
#include "cni/attachment/require_unused.h"
#include "cni/protocol/cni_request.h"
#include "cni/state/displaced_names.h"
#include "netns/base/text.h"
#include "netns/sys/rdma_sysfs.h"

namespace railhead::attachment {
namespace {

// What the plan of every device needs.
struct Facts {
  const Root& root;
  RouteApi& host;
  const PluginConfig& config;
  const std::optional<Fabric>& fabric;
  const CallPermissions& may;
  std::vector<std::string> pfs_in_order;  // only when a rail names its PF by position
};

Result<void> FindPf(const Facts& facts, DevicePlan& plan) {
  const PciDevice& function = plan.function;
  AttachedDevice& record = plan.record;
  if (!function.is_vf) return {};
  if (!function.physfn || !function.vf_index) {
    return Fail(ErrorCode::kNotFound, "the PF of VF " + record.device + " is not in sysfs");
  }
  record.pf = function.physfn->ToString();
  record.vf = *function.vf_index;
  const auto name = RH_TRY(UplinkNetdev(facts.root, *function.physfn));
  const auto pf = name ? RH_TRY(facts.host.FindLink(*name)) : std::nullopt;
  if (!pf) {
    return Fail(ErrorCode::kNotFound,
                "the PF " + record.pf + " of VF " + record.device + " has no network interface on the host",
                "check whether the PF itself was moved into a pod");
  }
  plan.pf_name = pf->name;
  plan.pf_index = pf->index;
  plan.pf_mtu = pf->mtu;
  record.before.vf = RH_TRY(facts.host.GetVf(pf->index, record.vf));
  return {};
}

Result<const Rail*> FindRailByName(const Facts& facts, const std::string& name) {
  const Rail* rail = facts.fabric ? facts.fabric->FindRail(name) : nullptr;
  if (rail != nullptr) return rail;
  std::vector<std::string> names;
  if (facts.fabric) {
    for (const auto& known : facts.fabric->rails) names.push_back(known.name);
  }
  return Fail(ErrorCode::kInvalid, "network configuration: /rail: rail '" + name + "' does not exist",
              facts.fabric ? facts.config.fabric_path + " has " + Join(names, ", ")
                           : "this node lacks " + facts.config.fabric_path);
}

Result<const Rail*> FindOwnRail(const Facts& facts, const DevicePlan& plan) {
  if (!facts.fabric) return nullptr;
  const bool is_vf = plan.function.is_vf;
  const std::string& pf = is_vf ? plan.record.pf : plan.record.device;
  // A PF under a substitute name keeps its rail: the fabric names its own name.
  const std::string name = RH_TRY(OwnNameOf(facts.root, pf, is_vf ? plan.pf_name : plan.link.name));
  return facts.fabric->RailOfPf(name, pf, facts.pfs_in_order);
}

Result<void> FindRailOf(const Facts& facts, DevicePlan& plan) {
  const PluginConfig& config = facts.config;
  const Rail* own = RH_TRY(FindOwnRail(facts, plan));
  const Rail* rail = config.rail ? RH_TRY(FindRailByName(facts, *config.rail)) : own;
  if (rail != nullptr) {
    plan.rail = *rail;
    plan.record.rail = rail->name;
    plan.record.nccl.traffic_class = rail->traffic_class;
    plan.record.nccl.service_level = rail->service_level;
  }
  const std::string own_name = own == nullptr ? std::string() : own->name;
  if (config.rail && *config.rail != own_name) RH_TRY(facts.may.Require("rail", "/rail"));
  if (config.ipam_rail && *config.ipam_rail != own_name) RH_TRY(facts.may.Require("rail", "/ipam/rail"));
  return {};
}

// The configuration overrides the rail. A setting that neither has stays unchanged.
AttachedDevice::Requested MergeSettings(const PluginConfig& config, const Rail* rail) {
  AttachedDevice::Requested requested = config.requested;
  const auto vlan = config.vlan ? config.vlan : (rail != nullptr ? rail->vlan : std::nullopt);
  if (vlan) {
    const int rail_qos = rail != nullptr && !config.vlan ? rail->vlan_qos : 0;
    requested.vf.vlan =
        VfVlan{*vlan, config.vlan_qos.value_or(rail_qos), config.vlan_proto.value_or(kVlanProto8021q)};
  }
  if (config.min_tx_rate || config.max_tx_rate) {
    // As in sriov-cni: a rate that is not given is sent as 0, no limit.
    requested.vf.rate = VfRate{config.min_tx_rate.value_or(0), config.max_tx_rate.value_or(0)};
  }
  if (!requested.link.mtu && rail != nullptr) requested.link.mtu = rail->mtu;
  return requested;
}

// Where it differs from what the VF has. A VF whose PF has given it no MAC could send nothing on some NICs
// (esw_acl_ingress_lgcy_setup in mlx5/core/esw/acl/ingress_lgcy.c).
void TakeSpoofCheckOfRail(DevicePlan& plan) {
  VfSettings& requested = plan.record.requested.vf;
  const auto& before = plan.record.before.vf;
  if (!plan.rail || requested.spoofchk || !before || !before->spoofchk) return;
  const bool wanted = plan.rail->spoof_check;
  const bool has_mac = !requested.mac.value_or(MacOf(*before)).IsZero();
  if (*before->spoofchk == wanted || (wanted && !has_mac)) return;
  requested.spoofchk = wanted;
  plan.spoof_check_of_rail = true;
}

Result<void> CheckPfSettings(const PluginConfig& config, DevicePlan& plan) {
  const std::string& device = plan.record.device;
  if (plan.record.before.user_space) {
    return Fail(ErrorCode::kUnsupported,
                "device " + device + " is a PF bound to " + plan.record.before.driver,
                "only VFs can be used that way: bind the PF to its network driver, or use its VFs");
  }
  VfSettings& requested = plan.record.requested.vf;
  // VLAN 0 clears a VLAN, and a PF has none.
  if (requested.vlan && requested.vlan->id == 0) requested.vlan.reset();
  if (requested.vlan && !config.vlan) {
    return Fail(ErrorCode::kInvalid,
                "device " + device + " is a PF, and rail '" + plan.record.rail + "' has VLAN " +
                    std::to_string(requested.vlan->id) + ", which can only be set for VFs",
                "use a VF of the rail, or have the switch port tag and remove `vlan` of the rail");
  }
  VfSettings of_vfs = requested;
  of_vfs.mac.reset();  // a PF has its MAC itself
  if (of_vfs.Empty()) return {};
  return Fail(ErrorCode::kInvalid,
              "device " + device + " is a PF: vlan, rates, trust and spoofchk can only be set for VFs");
}

// The port drops longer frames than its PF allows, whatever MTU the VF's driver takes.
Result<void> CheckMtu(const PluginConfig& config, const DevicePlan& plan) {
  const auto& mtu = plan.record.requested.link.mtu;
  if (!mtu || plan.record.before.user_space || !plan.function.is_vf || *mtu <= plan.pf_mtu) return {};
  const std::string whose =
      config.requested.link.mtu ? "network configuration: /mtu: " : "rail '" + plan.record.rail + "': mtu ";
  const std::string is = std::to_string(*mtu);
  return Fail(ErrorCode::kInvalid,
              whose + is + " is above the MTU " + std::to_string(plan.pf_mtu) + " of PF " + plan.pf_name,
              "ip link set " + plan.pf_name + " mtu " + is +
                  ", or \"mtu\" in fabric.json's \"provision\"; the switches need it too. Or lower this mtu");
}

Result<void> PlanSettings(const PluginConfig& config, DevicePlan& plan) {
  AttachedDevice& record = plan.record;
  record.requested = MergeSettings(config, plan.rail ? &*plan.rail : nullptr);
  TakeSpoofCheckOfRail(plan);
  if (!record.requested.vf.vlan) {
    const char* field = config.vlan_qos.value_or(0) != 0 ? "vlanQoS"
                        : config.vlan_proto              ? "vlanProto"
                                                         : nullptr;
    if (field != nullptr) {
      return Fail(ErrorCode::kInvalid, std::string("network configuration: /") + field + ": needs a vlan");
    }
  }
  if (!plan.function.is_vf) RH_TRY(CheckPfSettings(config, plan));
  RH_TRY(CheckMtu(config, plan));
  if (plan.SetsVf() && !record.before.vf) {
    return Fail(ErrorCode::kUnsupported,
                "PF " + plan.pf_name + " reports no settings of VF " + std::to_string(record.vf),
                "its driver cannot set vlan, mac, rates and the like");
  }
  if (record.before.user_space) {  // no interface
    record.requested.link = {};
    record.requested.alt_names.clear();
    record.requested.sysctls.clear();
  } else if (!record.requested.link.mtu) {
    record.requested.link.mtu = plan.link.mtu;  // a rebind would set the driver's default
  }
  return {};
}

// Sets which RDMA device the pod will use, and whether ADD adds it. A request for soft RoCE gives kInvalid if
// the device has a hardware RDMA device.
Result<void> PlanRdma(const Root& root, const PluginConfig& config, DevicePlan& plan) {
  AttachedDevice& record = plan.record;
  if (record.before.user_space) return {};
  record.rdma.soft = config.soft_roce.value_or(plan.rail && plan.rail->soft_roce);
  const auto devices = RH_TRY(RdmaDevicesOf(root, plan.function.address));
  if (record.rdma.soft && !devices.empty()) {
    return Fail(ErrorCode::kInvalid,
                "softRoce is set, but device " + record.device + " has the RDMA device " + devices.front(),
                "remove softRoce from the rail or the network configuration");
  }
  if (record.rdma.soft) {
    // Names of RDMA devices are node-wide.
    record.rdma.device = plan.function.is_vf ? "rxe_" + plan.pf_name + "v" + std::to_string(record.vf)
                                             : "rxe_" + plan.link.name;
  } else if (!devices.empty()) {
    record.rdma.device = devices.front();
  }
  return {};
}

// Sets whether the device will be in nccl.conf. kUnsupported when that is required and it has no RDMA device.
Result<void> PlanNcclConfig(const Root& root, NcclConfigMode mode, DevicePlan& plan) {
  AttachedDevice& record = plan.record;
  plan.allocation = RH_TRY(ReadAllocation(root, record.KubeletId()));
  if (!record.slot.empty() && plan.allocation) record.resource = plan.allocation->resource;
  const bool by_record = plan.allocation && plan.allocation->nccl_config == NcclConfigPolicy::kRequired;
  plan.nccl_config_required =
      mode == NcclConfigMode::kRequired || (mode == NcclConfigMode::kAuto && by_record);
  const bool enabled =
      mode == NcclConfigMode::kRequired || (mode == NcclConfigMode::kAuto && (!plan.allocation || by_record));
  record.nccl.enabled = enabled && !record.rdma.device.empty();
  if (plan.nccl_config_required && record.rdma.device.empty()) {
    return Fail(ErrorCode::kUnsupported,
                "device " + record.device + " has no RDMA device, and its NCCL configuration is required",
                "load the NIC's RDMA driver, or set softRoce on the rail, or \"ncclConfig\": \"off\"");
  }
  return {};
}

Result<DevicePlan> PlanDevice(const Facts& facts, const DeviceChoice& choice, const PciAddress& address) {
  DevicePlan plan;
  AttachedDevice& record = plan.record;
  record.device = address.ToString();
  if (const auto slot = choice.slots.find(address); slot != choice.slots.end()) record.slot = slot->second;
  plan.function = RH_TRY(FindNic(facts.root, address));
  const bool user_space = IsForUserSpace(plan.function);
  if (!user_space) {
    plan.link = RH_TRY(FindHostLink(facts.root, facts.host, plan.function));
    RH_TRY(RefuseIfHostUses(facts.root, facts.host, plan.link, record.device));
  } else {
    RH_TRY(RequireNodesClosed(facts.root, record.device));
  }
  RH_TRY(FindPf(facts, plan));
  RH_TRY(ReadHostState(facts.root, plan));
  RH_TRY(FindRailOf(facts, plan));
  RH_TRY(PlanSettings(facts.config, plan));
  RH_TRY(PlanRdma(facts.root, facts.config, plan));
  RH_TRY(PlanNcclConfig(facts.root, facts.config.nccl_config, plan));
  plan.table = facts.config.table.value_or(plan.rail ? plan.rail->table : 0);
  return plan;
}

// Refuses keys that can only be meant for one interface.
Result<void> RefuseForSeveral(const PluginConfig& config, std::size_t count) {
  const char* field = config.requested.vf.mac               ? "mac"
                      : !config.requested.alt_names.empty() ? "altNames"
                      : config.table                        ? "table"
                      : config.rail                         ? "rail"
                      : config.gateway                      ? "gateway"
                                                            : nullptr;
  if (count < 2 || field == nullptr) return {};
  return Fail(ErrorCode::kInvalid,
              std::string("network configuration: /") + field + ": cannot be the same for " +
                  std::to_string(count) + " devices",
              "describe the rails in the fabric instead");
}

Error NotAName(const std::string& name, const std::string& rail) {
  return {
      ErrorCode::kInvalid, "'" + name + "', from rail '" + rail + "', is not an interface name",
      "interfaces get the names of their rails: give the rail a name of at most 13 characters, such as rail0",
      0};
}

// rail0, rail1, ...; a second device of a rail is rail0-1; without a rail nic0, ...
Result<void> NameByRail(std::vector<DevicePlan>& plans) {
  std::map<std::string, int> used;
  std::set<std::string> names;
  for (DevicePlan& plan : plans) {
    const std::string& rail = plan.record.rail;
    std::string& name = plan.record.pod_name;
    const int number = used[rail]++;
    name = rail.empty() ? "nic" + std::to_string(number)
           : number > 0 ? rail + "-" + std::to_string(number)
                        : rail;
    if (!IsInterfaceName(name) || name == "lo") {
      return Fail(NotAName(name, rail));
    }
    if (!names.insert(name).second) {
      return Fail(ErrorCode::kInvalid, "two devices of this pod would both be called '" + name + "'",
                  "do not name a rail like the second device of another (rail0-1) or like a NIC without rail "
                  "(nic0)");
    }
  }
  return {};
}

// Replaces "IFNAME", which stands for the interface in a configuration.
void NameInSysctls(AttachedDevice& device) {
  for (auto& [path, value] : device.requested.sysctls) {
    auto parts = Split(path, '/');
    std::ranges::replace(parts, std::string("IFNAME"), device.pod_name);
    path = Join(parts, "/");
  }
}

void SortByRail(const std::optional<Fabric>& fabric, std::vector<DevicePlan>& plans) {
  const auto position = [&](const DevicePlan& plan) {
    std::size_t at = 0;
    while (fabric && plan.rail && at < fabric->rails.size() && fabric->rails[at].name != plan.rail->name)
      ++at;
    return std::make_tuple(!plan.rail, at, plan.function.address);
  };
  std::ranges::sort(plans, [&](const auto& a, const auto& b) { return position(a) < position(b); });
}

Result<Facts> GatherFacts(const Root& root, RouteApi& host, const AddCall& call,
                          const std::optional<Fabric>& fabric) {
  Facts facts{root, host, call.config, fabric, call.may, {}};
  // Only a rail that names its PF by position needs every PCI function of the node.
  const bool by_position = fabric && std::ranges::any_of(fabric->rails, [](const Rail& rail) {
                             return rail.position.has_value();
                           });
  if (by_position) {
    for (const auto& pf : RH_TRY(ListRailPfs(root))) facts.pfs_in_order.push_back(pf.address.ToString());
  }
  return facts;
}

}  // namespace

Result<AttachPlan> ResolvePlan(const Root& root, RouteApi& host, const AddCall& call) {
  RH_TRY(RefuseForSeveral(call.config, call.choice.devices.size()));
  AttachPlan plan;
  plan.config = call.config;
  const bool names_another = call.config.fabric_path != kFabricPath;
  const auto fabric = names_another ? RH_TRY(ReadFabric(root, call.config.fabric_path)) : call.node_fabric;
  const Facts facts = RH_TRY(GatherFacts(root, host, call, fabric));
  for (const auto& address : call.choice.devices)
    plan.devices.push_back(RH_TRY(PlanDevice(facts, call.choice, address)));
  SortByRail(fabric, plan.devices);
  if (call.choice.named_by_rail) {
    RH_TRY(NameByRail(plan.devices));
  } else {
    for (DevicePlan& device : plan.devices) device.record.pod_name = call.request.ifname;
  }
  for (DevicePlan& device : plan.devices) NameInSysctls(device.record);
  PlanIpam(call.request, plan);
  if (fabric) plan.nccl_config_options = fabric->nccl_config_options;
  if (fabric && fabric->rdma_exclusive) {
    plan.rdma_mode = *fabric->rdma_exclusive ? RdmaNetnsMode::kExclusive : RdmaNetnsMode::kShared;
  }
  plan.conflict_probe_ms =
      call.config.conflict_probe_ms.value_or(fabric ? fabric->conflict_probe_ms : kDefaultConflictProbeMs);
  plan.for_pod = call.may.is_pods();
  plan.require_gateways = call.config.require_gateway;
  RH_TRY(RefuseMacsOfOthers(root, host, call.node_fabric, plan));
  return plan;
}

}  // namespace railhead::attachment
