#include "cni/plugin/plan.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "netns/base/text.h"
#include "netns/sys/netdev_sysfs.h"
#include "netns/sys/rdma_sysfs.h"

namespace railhead {
namespace {

constexpr const char* kUserSpaceDrivers[] = {"vfio-pci", "uio_pci_generic", "igb_uio"};

Result<PciDevice> FindDevice(const Root& root, const PciAddress& address) {
  auto device = RH_TRY(FindPciDevice(root, address));
  if (!device) {
    return Fail(ErrorCode::kNotFound, "device " + address.ToString() + " does not exist on this node",
                "was the VF removed since it was allocated? See /sys/bus/pci/devices");
  }
  if (!device->IsNetwork()) {
    return Fail(ErrorCode::kInvalid, "device " + address.ToString() + " is no network controller");
  }
  if (!device->is_vf && device->sriov_numvfs > 0) {
    return Fail(
        ErrorCode::kInvalid,
        "device " + address.ToString() + " is a PF with " + std::to_string(device->sriov_numvfs) + " VFs",
        "attach one of its VFs, or set its sriov_numvfs to 0 to give the whole PF to a pod");
  }
  for (const char* driver : kUserSpaceDrivers) {
    if (device->driver == driver) {
      return Fail(ErrorCode::kUnsupported, "device " + address.ToString() + " is bound to " + driver,
                  "bind it to its network driver: only network devices are attached");
    }
  }
  return *device;
}

Result<Link> FindHostLink(const Root& root, RouteApi& host, const PciDevice& device) {
  const std::string bdf = device.address.ToString();
  const auto names = RH_TRY(NetdevsOf(root, device.address));
  if (names.empty()) {
    return Fail(device.driver ? ErrorCode::kBusy : ErrorCode::kNotFound,
                "device " + bdf + " has no network interface in the host's namespace",
                device.driver ? "it is in another namespace: a pod that has not ended yet, or one that was "
                                "not attached by Railhead"
                              : "no driver is bound to it");
  }
  auto link = RH_TRY(host.FindLink(names.front()));
  if (!link) {
    return Fail(ErrorCode::kBusy,
                "interface " + names.front() + " of " + bdf + " has just left the host's namespace");
  }
  return *link;
}

// Moving takes addresses and routes away, and DEL cannot bring them back: what
// the host itself uses stays where it is.
Result<void> RefuseIfHostUses(const Root& root, RouteApi& host, const Link& link, const std::string& bdf) {
  const std::string what = "device " + bdf + " (" + link.name + ")";
  if (link.master != 0) {
    return Fail(ErrorCode::kInvalid, what + " belongs to a bond or bridge of the host",
                "take it out of it first");
  }
  // The kernel destroys what is stacked on a device that leaves its namespace.
  if (const auto uppers = RH_TRY(UpperDevicesOf(root, link.name)); !uppers.empty()) {
    return Fail(ErrorCode::kInvalid, what + " has " + Join(uppers, ", ") + " of the host on top of it",
                "remove these interfaces first, or keep the device out of the pool");
  }
  for (const auto& address : RH_TRY(host.ListAddresses(link.index))) {
    if (address.address.IsLinkLocal()) continue;
    return Fail(
        ErrorCode::kInvalid, what + " carries the host's address " + address.ToString(),
        "a device that the host uses is never moved: remove the address, or keep the device out of the pool");
  }
  // The kernel drops the routes of a link that goes down: for most VFs there is no
  // need to read all of the host's.
  if (!link.up) return {};
  for (const int family : {AF_INET, AF_INET6}) {
    for (const auto& route : RH_TRY(host.ListRoutes(family, kTableMain))) {
      const auto& hops = route.multipath;
      const bool leaves_here =
          route.link == link.index || std::find(hops.begin(), hops.end(), link.index) != hops.end();
      if (leaves_here && route.destination.length == 0) {
        return Fail(ErrorCode::kInvalid, what + " carries the host's default route", "it is never moved");
      }
    }
  }
  return {};
}

Result<void> FindPf(const Root& root, RouteApi& host, AttachPlan& plan) {
  if (!plan.device.is_vf) return {};
  if (!plan.device.physfn || !plan.device.vf_index) {
    return Fail(ErrorCode::kNotFound, "the PF of VF " + plan.bdf + " is not in sysfs");
  }
  plan.pf_bdf = plan.device.physfn->ToString();
  const auto name = RH_TRY(UplinkNetdev(root, *plan.device.physfn));
  const auto pf = name ? RH_TRY(host.FindLink(*name)) : std::nullopt;
  if (!pf) {
    return Fail(ErrorCode::kNotFound,
                "the PF " + plan.pf_bdf + " of VF " + plan.bdf + " has no network interface on the host",
                "was the PF itself moved into a pod?");
  }
  plan.pf_name = pf->name;
  plan.pf_index = pf->index;
  plan.host_vf = RH_TRY(host.GetVf(pf->index, *plan.device.vf_index));
  return {};
}

// Only a rail that names its PF by position makes it necessary to look at every PCI
// function of the node.
Result<const Rail*> RailOfDevice(const Root& root, const Fabric& fabric, const std::string& pf_name,
                                 const std::string& pf_bdf) {
  std::vector<std::string> in_order;
  const bool by_position = std::any_of(fabric.rails.begin(), fabric.rails.end(),
                                       [](const Rail& rail) { return rail.position.has_value(); });
  if (by_position) {
    for (const auto& pf : RH_TRY(ListRailPfs(root))) in_order.push_back(pf.address.ToString());
  }
  return fabric.RailOfPf(pf_name, pf_bdf, in_order);
}

Result<void> FindRailOf(const Root& root, AttachPlan& plan) {
  const auto fabric = RH_TRY(ReadFabric(root, plan.config.fabric_path));
  if (!fabric) {
    if (!plan.config.rail) return {};
    return Fail(ErrorCode::kInvalid, "network configuration: /rail: '" + *plan.config.rail +
                                         "' is named, but there is no " + plan.config.fabric_path);
  }
  plan.handoff_env = fabric->handoff_env;
  const Rail* rail = nullptr;
  if (plan.config.rail) {
    rail = fabric->FindRail(*plan.config.rail);
    if (rail == nullptr) {
      std::vector<std::string> names;
      for (const auto& known : fabric->rails) names.push_back(known.name);
      return Fail(ErrorCode::kInvalid,
                  "network configuration: /rail: there is no rail '" + *plan.config.rail + "'",
                  plan.config.fabric_path + " has " + Join(names, ", "));
    }
  } else {
    const bool is_vf = plan.device.is_vf;
    rail = RH_TRY(RailOfDevice(root, *fabric, is_vf ? plan.pf_name : plan.host_link.name,
                               is_vf ? plan.pf_bdf : plan.bdf));
  }
  if (rail != nullptr) plan.rail = *rail;
  return {};
}

// The configuration beats the rail; what neither says is not touched.
void MergeVfSettings(AttachPlan& plan) {
  const PluginConfig& config = plan.config;
  const Rail* rail = plan.rail ? &*plan.rail : nullptr;
  const auto vlan = config.vlan ? config.vlan : (rail != nullptr ? rail->vlan : std::nullopt);
  if (vlan) {
    const int rail_qos = rail != nullptr && !config.vlan ? rail->vlan_qos : 0;
    plan.vf_change.vlan = VfChange::Vlan{*vlan, config.vlan_qos.value_or(rail_qos), 0x8100};
  }
  plan.vf_change.mac = config.mac;
  plan.vf_change.spoofchk = config.spoofchk;
  plan.vf_change.trust = config.trust;
  plan.vf_change.link_state = config.link_state;
  if (config.min_tx_rate || config.max_tx_rate) {
    // One message sets both: the other keeps its value.
    const VfState now = plan.host_vf.value_or(VfState{});
    plan.vf_change.rate = VfChange::Rate{config.min_tx_rate.value_or(now.min_tx_rate.value_or(0)),
                                         config.max_tx_rate.value_or(now.max_tx_rate.value_or(0))};
  }
  plan.mac = config.mac;
  plan.mtu = config.mtu ? config.mtu : (rail != nullptr ? rail->mtu : std::nullopt);
}

Result<void> CheckVfSettings(AttachPlan& plan) {
  if (plan.config.vlan_qos.value_or(0) != 0 && !plan.vf_change.vlan) {
    return Fail(ErrorCode::kInvalid, "network configuration: /vlanQoS: needs a vlan");
  }
  if (const auto& rate = plan.vf_change.rate; rate && rate->max != 0 && rate->min > rate->max) {
    return Fail(ErrorCode::kInvalid,
                "network configuration: min_tx_rate " + std::to_string(rate->min) +
                    " would be above max_tx_rate " + std::to_string(rate->max) + " of " + plan.bdf,
                "set both: the one that is not configured stays as it is on the VF");
  }
  if (plan.device.is_vf) {
    if (!plan.vf_change.Empty() && !plan.host_vf) {
      return Fail(
          ErrorCode::kUnsupported,
          "PF " + plan.pf_name + " reports no settings of VF " + std::to_string(*plan.device.vf_index),
          "its driver cannot set vlan, mac, rates and the like");
    }
    return {};
  }
  // A PF has its MAC itself; the rest is done by the switch.
  plan.vf_change.mac.reset();
  if (plan.config.vlan.value_or(0) == 0) plan.vf_change.vlan.reset();
  if (!plan.vf_change.Empty()) {
    return Fail(ErrorCode::kInvalid,
                "device " + plan.bdf + " is a PF: vlan, rates, trust and spoofchk can only be set for VFs");
  }
  return {};
}

Result<void> PlanRdma(const Root& root, AttachPlan& plan) {
  plan.soft_roce = plan.config.soft_roce.value_or(plan.rail && plan.rail->soft_roce);
  const auto devices = RH_TRY(RdmaDevicesOf(root, plan.device.address));
  if (plan.soft_roce && !devices.empty()) {
    return Fail(ErrorCode::kInvalid,
                "softRoce is set, but device " + plan.bdf + " has the RDMA device " + devices.front(),
                "remove softRoce from the rail or the network configuration");
  }
  if (plan.soft_roce) {
    // Names of RDMA devices are node-wide.
    plan.rdma_device = plan.device.is_vf ? "rxe_" + plan.pf_name + "v" + std::to_string(*plan.device.vf_index)
                                         : "rxe_" + plan.host_link.name;
  } else if (!devices.empty()) {
    plan.rdma_device = devices.front();
  }
  return {};
}

Result<void> PlanHandoff(const Root& root, AttachPlan& plan) {
  plan.allocation = RH_TRY(ReadAllocation(root, plan.bdf));
  const bool by_record = plan.allocation && plan.allocation->handoff == HandoffPolicy::kRequired;
  plan.handoff_required = plan.config.handoff == HandoffWish::kRequired ||
                          (plan.config.handoff == HandoffWish::kAuto && by_record);
  const bool wanted = plan.config.handoff == HandoffWish::kRequired ||
                      (plan.config.handoff == HandoffWish::kAuto && (!plan.allocation || by_record));
  plan.handoff = wanted && !plan.rdma_device.empty();
  if (plan.handoff_required && plan.rdma_device.empty()) {
    return Fail(ErrorCode::kUnsupported,
                "a handoff is required, but device " + plan.bdf + " has no RDMA device",
                "load the NIC's RDMA driver, or set softRoce on the rail, or \"handoff\": \"off\"");
  }
  return {};
}

}  // namespace

Result<AttachPlan> ResolvePlan(const Root& root, RouteApi& host, const PluginConfig& config) {
  AttachPlan plan;
  plan.config = config;
  const PciAddress address = RH_TRY(DeviceOf(config));
  plan.bdf = address.ToString();
  plan.device = RH_TRY(FindDevice(root, address));
  plan.host_link = RH_TRY(FindHostLink(root, host, plan.device));
  RH_TRY(RefuseIfHostUses(root, host, plan.host_link, plan.bdf));
  RH_TRY(FindPf(root, host, plan));
  RH_TRY(FindRailOf(root, plan));
  MergeVfSettings(plan);
  RH_TRY(CheckVfSettings(plan));
  RH_TRY(PlanRdma(root, plan));
  RH_TRY(PlanHandoff(root, plan));
  plan.table = config.table.value_or(plan.rail ? plan.rail->table : 0);
  if (config.ipam_given) {
    plan.ipam_type = config.ipam_type;
  } else if (plan.rail && plan.rail->subnet) {
    plan.ipam_type = kOwnIpam;
  }
  return plan;
}

}  // namespace railhead
