#include "cni/attachment/attach.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "cni/attachment/call_during_reset.h"
#include "cni/attachment/host_device.h"
#include "cni/attachment/rdma.h"
#include "cni/attachment/rebind.h"
#include "cni/state/conflict_log.h"
#include "cni/state/tenants.h"
#include "netns/base/text.h"
#include "netns/sys/mac_at_bind.h"
#include "netns/sys/pci.h"
#include "netns/sys/rdma_sysfs.h"

namespace railhead::attachment {
namespace {

constexpr const char* kHasUppers = "another network namespace has interfaces on top of it";
constexpr int kAnswerOwn = 1;  // arp_ignore: only for addresses of the asked interface
constexpr int kAnswerNone = 8;

// "rail0 (0000:43:10.0)"
std::string InWords(const AttachedDevice& device) {
  return device.pod_name + " (" + device.device + ")";
}

}  // namespace

Attachment::Attachment(const Root& root, Kernel& kernel, PodNetwork& network, const AttachPlan& plan,
                       const std::vector<Addressing>& addressing, JournalEntry& entry)
    : root_(root), kernel_(kernel), network_(network), plan_(plan), key_(entry.key) {
  for (std::size_t i = 0; i < plan.devices.size(); ++i) {
    const DevicePlan& device = plan.devices[i];
    work_.push_back({&device, &addressing[i], &entry.devices[i], device.link.index, {}});
  }
}

std::vector<Attachment::Work*> Attachment::Netdevs() {
  std::vector<Work*> netdevs;
  for (auto& work : work_) {
    if (!work.device->before.user_space) netdevs.push_back(&work);
  }
  return netdevs;
}

// Whether it is the name that one of the devices gets in the pod.
bool Attachment::IsPodName(const std::string& name) const {
  return std::ranges::any_of(work_, [&](const Work& work) { return work.device->pod_name == name; });
}

namespace {

// How drivers say that they cannot do it, or not in this mode of the NIC's switch.
bool IsRefusal(const Error& error) {
  return error.code == ErrorCode::kUnsupported || error.code == ErrorCode::kInvalid ||
         error.code == ErrorCode::kPermission;
}

}  // namespace

Result<void> Attachment::ConfigureVfs() {
  for (auto& work : work_) RH_TRY(ConfigureVf(work));
  return {};
}

Result<void> Attachment::SetVf(const Work& work, const VfSettings& settings) const {
  return WithContext(network_.host->SetVf(work.plan->pf_index, work.device->vf, settings),
                     "setting VF " + std::to_string(work.device->vf) + " of " + work.plan->pf_name);
}

Result<void> Attachment::ConfigureVf(Work& work) {
  const DevicePlan& plan = *work.plan;
  AttachedDevice& device = *work.device;
  VfSettings required = device.requested.vf;
  if (plan.spoof_check_of_rail) required.spoofchk.reset();
  if (plan.SetsVf() && !required.Empty()) RH_TRY(SetVf(work, required));
  if (plan.spoof_check_of_rail) {
    auto set = SetVf(work, {.spoofchk = device.requested.vf.spoofchk});
    if (!set && !IsRefusal(set.error())) return set;
    if (!set) device.requested.vf.spoofchk.reset();  // else CHECK misses it
  }
  // A user-space driver reads the MAC that was set through the PF.
  return device.requested.vf.mac && !device.before.user_space ? SetMac(work) : Result<void>();
}

Result<void> Attachment::SetMac(Work& work) {
  const PciDevice& function = work.plan->function;
  const AttachedDevice& device = *work.device;
  if (!function.is_vf || !TakesMacAtBind(device.before.driver)) {
    const auto change = [&] {
      return network_.host->ChangeLink(work.host_index, {.mac = device.requested.vf.mac});
    };
    return WithContext(function.is_vf ? CallDuringReset(change) : change(),
                       "setting the MAC of " + device.device);
  }
  work.host_index = RH_TRY(RebindAndAwait(root_, kernel_, *network_.host, function.address)).index;
  return {};
}

Result<void> Attachment::MoveIntoPod() {
  for (Work* work : Netdevs()) RH_TRY(Move(*work));
  return {};
}

Result<void> Attachment::Move(Work& work) const {
  const AttachedDevice& device = *work.device;
  const int mtu = *device.requested.link.mtu;
  // The kernel refuses the move if another interface of the pod has the alternative name. It refuses the
  // renaming if the device itself has it. DEL restores the name.
  for (const auto& name : work.plan->link.alt_names) {
    if (!IsPodName(name) && !RH_TRY(network_.pod->FindLink(name))) continue;
    RH_TRY_WRAP(network_.host->DeleteAltName(work.host_index, name),
                "removing the alternative name " + name + " of " + device.device);
  }
  RH_TRY_WRAP(network_.host->MoveLink(work.host_index, network_.pod_ns, device.pod_name, mtu),
              "moving " + device.device + " into " + network_.pod_ns.path() + " as " + device.pod_name +
                  " with MTU " + std::to_string(mtu));
  auto found = RH_TRY(network_.pod->FindLink(device.pod_name));
  if (!found) {
    return Fail(ErrorCode::kConflict, "interface " + device.pod_name + " has left " + network_.pod_ns.path());
  }
  work.pod_link = std::move(*found);
  return {};
}

// Of an interface. Mostly a PF has it.
Result<std::string> Attachment::NameOfHostOnly() const {
  for (const auto& work : work_) {
    const std::string& name = work.plan->pf_name;
    if (!name.empty() && !RH_TRY(network_.pod->FindLink(name))) return name;
  }
  for (const Link& link : RH_TRY(network_.host->ListLinks())) {
    if (!RH_TRY(network_.pod->FindLink(link.name))) return link.name;
  }
  return Fail(ErrorCode::kExists, "the pod has an interface of each name that the host has");
}

// While a device is on the host, a pod with CAP_NET_ADMIN can stack interfaces on it through the netnsid of
// its own eth0's peer (IFLA_LINK_NETNSID), and an earlier pod can have left some. Now the device is out of
// their reach, and still down.
Result<void> Attachment::RefuseUppers() {
  std::string names;
  std::optional<std::string> taken;
  for (const Work* work : Netdevs()) {
    if (work->pod_link.mac.IsZero()) continue;  // InfiniBand, which cannot have them
    if (!taken) taken = RH_TRY(NameOfHostOnly());
    const auto found = network_.pod->HasUppers(work->pod_link.index, network_.host_ns, *taken);
    if (!found && found.error().code == ErrorCode::kUnsupported) return {};  // docs/SECURITY.md
    if (!found) return Fail(found.error());
    if (!*found) continue;
    must_reset_ = true;
    names += (names.empty() ? "" : ", ") + InWords(*work->device);
    RH_TRY(MarkLeftover(root_, work->device->device, kHasUppers));
  }
  if (!must_reset_) return {};
  return Fail(ErrorCode::kBusy, names + ": " + kHasUppers,
              "a pod with CAP_NET_ADMIN made them; only a reset of the device removes them (policy.reset)");
}

Result<void> Attachment::ConfigureLinks() {
  for (const Work* work : Netdevs()) RH_TRY(ConfigureLink(*work));
  std::vector<Sysctl> sysctls;
  for (const Work* work : Netdevs()) {
    // A switch's router advertisement would give the pod a default route through the rail, and further GIDs.
    // BGP unnumbered sends them. The network's own values come after it.
    if (work->pod_link.addr_gen_mode)
      sysctls.push_back({"net/ipv6/conf/" + work->device->pod_name + "/accept_ra", "0"});
    const auto& own = work->device->requested.sysctls;
    sysctls.insert(sysctls.end(), own.begin(), own.end());
  }
  if (!sysctls.empty())
    RH_TRY_WRAP(kernel_.WriteSysctls(network_.pod_ns, sysctls), "setting sysctls in the pod");
  // The links are still down: the GIDs get this order.
  for (const Work* work : Netdevs()) {
    for (const auto& address : work->device->addressing.addresses) {
      RH_TRY_WRAP(AddAddress(*work, address),
                  "adding address " + address.ToString() + " to " + work->device->pod_name);
    }
  }
  return {};
}

// A new interface gets disable_ipv6 from the pod's namespace (inet6_addr_add answers EACCES). The network's
// own value comes before the address.
Result<void> Attachment::AddAddress(const Work& work, const IpPrefix& address) const {
  const auto add = [&] { return network_.pod->AddAddress(work.pod_link.index, address); };
  auto added = add();
  if (added || address.address.IsV4() || added.error().sys_errno != EACCES) return added;
  const std::string disabled = "net/ipv6/conf/" + work.device->pod_name + "/disable_ipv6";
  if (Contains(work.device->requested.sysctls, disabled, &Sysctl::path)) return added;
  RH_TRY(kernel_.WriteSysctls(network_.pod_ns, {{disabled, "0"}}));
  return add();
}

Result<void> Attachment::ConfigureLink(const Work& work) {
  const AttachedDevice& device = *work.device;
  const auto& addresses = device.addressing.addresses;
  const bool v6 = std::ranges::any_of(addresses, [](const IpPrefix& a) { return a.address.IsV6(); });
  LinkChange change{device.requested.link};
  change.mtu.reset();  // the move has set it
  // An automatic IPv6 address would take a GID index before or after ours.
  if (!v6) change.addr_gen_mode = AddrGenMode::kNone;
  // Each NIC answers ARP only for its own addresses, and sends ARP requests only from them. It answers for no
  // address before the probes have shown that it is free. The kernel takes the larger of "all" and this
  // rp_filter: 2 (loose) overrides a strict default, 0 would not.
  const int arp_ignore = Probes() && !addresses.empty() ? kAnswerNone : kAnswerOwn;
  change.ipv4 = {{Ipv4Conf::kArpIgnore, arp_ignore}, {Ipv4Conf::kArpAnnounce, 2}, {Ipv4Conf::kRpFilter, 2}};
  RH_TRY_WRAP(network_.pod->ChangeLink(work.pod_link.index, change), "configuring " + device.pod_name);
  const auto& own = work.pod_link.alt_names;
  for (const auto& name : device.requested.alt_names) {
    if (Contains(own, name)) continue;  // it had the name on the host
    RH_TRY_WRAP(network_.pod->AddAltName(work.pod_link.index, name),
                "giving " + device.pod_name + " the alternative name " + name);
  }
  return {};
}

Result<void> Attachment::BringUp() {
  for (const Work* work : Netdevs()) {
    const auto bring = [&] { return network_.pod->ChangeLink(work->pod_link.index, {.up = true}); };
    RH_TRY_WRAP(work->plan->SetsVf() ? CallDuringReset(bring) : bring(),
                "bringing " + work->device->pod_name + " up");
  }
  // The kernel refuses routes over a link that is down.
  for (const Work* work : Netdevs()) RH_TRY(AddRouting(*work));
  return {};
}

Result<void> Attachment::AddRouting(const Work& work) const {
  for (Route route : work.device->addressing.routes) {
    route.link = work.pod_link.index;
    RH_TRY_WRAP(network_.pod->AddRoute(route), "adding route " + route.ToString());
  }
  for (const auto& rule : RulesFor(*work.device)) {
    RH_TRY_WRAP(network_.pod->AddRule(rule), "adding rule " + rule.ToString());
  }
  return {};
}

Result<void> Attachment::AwaitCarrier(Deadline deadline) {
  for (const Work* work : Netdevs()) RH_TRY(AwaitCarrierOf(*work, deadline));
  return {};
}

Result<void> Attachment::AwaitCarrierOf(const Work& work, Deadline deadline) const {
  if (RH_TRY(network_.pod->WaitCarrier(work.pod_link.index, deadline))) return {};
  const int pf_index = work.plan->pf_index;
  const auto pf = pf_index != 0 ? RH_TRY(network_.host->FindLink(pf_index)) : std::nullopt;
  std::string hint = "check cable and switch port";
  if (pf && !pf->up) hint = "the PF " + pf->name + " is down: bring it up first";
  if (pf && pf->up && !pf->carrier) hint = "the PF " + pf->name + " has no carrier: " + hint;
  return Fail(ErrorCode::kTimeout,
              InWords(*work.device) + " has no carrier after " +
                  std::to_string(plan_.config.link_timeout_seconds) + " s",
              hint);
}

const Attachment::Work& Attachment::WorkOf(const ProbeTarget& target) const {
  return *std::ranges::find_if(work_, [&](const Work& work) { return work.pod_link.index == target.link; });
}

Result<std::vector<AddressConflict>> Attachment::Judge(const std::vector<AddressConflict>& found) {
  if (found.empty()) return found;
  const auto now = BoottimeNow();
  std::vector<ConflictRecord> records;
  records.reserve(found.size());
  for (const AddressConflict& one : found) {
    const AttachedDevice& device = *WorkOf(one.target).device;
    records.push_back({.key = key_,
                       .device = device.device,
                       .address = one.target.address,
                       .mac = one.other,
                       .source = one.source,
                       .boottime = now,
                       .pf = device.pf.empty() ? device.device : device.pf});
  }
  confirmed_in_use_ = JudgeConflicts(RH_TRY(ReadConflicts(root_)), &records);
  std::vector<AddressConflict> conflicts;
  for (std::size_t i = 0; i < found.size(); ++i) {
    LogConflict(root_, records[i]);
    if (!records[i].ignored) conflicts.push_back(found[i]);
  }
  return conflicts;
}

Result<void> Attachment::RefuseConflicts() {
  if (!Probes()) return {};
  std::vector<ProbeTarget> targets;
  for (const Work* work : Netdevs()) {
    for (const auto& address : work->device->addressing.addresses) {
      targets.push_back({work->pod_link.index, work->pod_link.mac, address.address});
    }
  }
  if (targets.empty()) return {};
  const std::chrono::milliseconds budget(plan_.conflict_probe_ms);
  const auto found =
      RH_TRY_WRAP(kernel_.ProbeAddresses(network_.pod_ns, targets, budget), "probing for address conflicts");
  const auto conflicts = RH_TRY(Judge(found));
  if (!conflicts.empty()) {
    for (const AddressConflict& conflict : conflicts) in_use_.push_back(conflict.target.address);
    const auto& first = conflicts.front();
    return Fail(ErrorCode::kConflict,
                "address " + first.target.address.ToString() + " is used by " + first.other.ToString() +
                    " on the network of " + InWords(*WorkOf(first.target).device),
                "find that host, or exclude the address in fabric.json; the next ADD gets another address");
  }
  LinkChange answer;
  answer.ipv4 = {{Ipv4Conf::kArpIgnore, kAnswerOwn}};
  for (const Work* work : Netdevs()) {
    const auto& sysctls = work->device->requested.sysctls;
    const std::string own = "net/ipv4/conf/" + work->device->pod_name + "/arp_ignore";
    const bool asked_otherwise = Contains(sysctls, own, &Sysctl::path);
    if (work->device->addressing.addresses.empty() || asked_otherwise) continue;
    RH_TRY_WRAP(network_.pod->ChangeLink(work->pod_link.index, answer),
                "configuring " + work->device->pod_name);
  }
  return {};
}

Result<void> Attachment::Announce() {
  if (!plan_.config.announce) return {};
  for (const Work* work : Netdevs()) {
    std::vector<IpAddress> addresses;
    for (const auto& address : work->device->addressing.addresses) addresses.push_back(address.address);
    if (addresses.empty()) continue;
    RH_TRY_WRAP(kernel_.Announce(network_.pod_ns, work->pod_link, addresses),
                "announcing the addresses of " + work->device->pod_name);
  }
  return {};
}

Result<void> Attachment::ResolveGateways(Deadline deadline) {
  for (const Work* work : Netdevs()) {
    for (const auto& gateway : work->addressing->gateways) {
      if (gateway) RH_TRY(network_.pod->ResolveNeighbour(work->pod_link.index, *gateway));
    }
  }
  if (!plan_.require_gateways) return {};
  for (const Work* work : Netdevs()) {
    for (const auto& gateway : work->addressing->gateways) {
      if (gateway) RH_TRY(AwaitGateway(*work, *gateway, deadline));
    }
  }
  return {};
}

Result<void> Attachment::AwaitGateway(const Work& work, const IpAddress& gateway, Deadline deadline) const {
  const auto answer = RH_TRY(network_.pod->WaitNeighbour(work.pod_link.index, gateway, deadline));
  const std::string of = " of " + InWords(*work.device);
  if (answer && *answer != work.pod_link.mac) return {};
  if (const auto& mac = plan_.config.requested.vf.mac) {
    return Fail(
        ErrorCode::kConflict,
        "gateway " + gateway.ToString() + of + " does not answer: mac " + mac->ToString() + " may be its own",
        "ask for another mac; or have the gateway answer, or railheadd probe it (fabric.json: reachability)");
  }
  return Fail(ErrorCode::kTimeout, "gateway " + gateway.ToString() + of + " does not answer",
              "check the VLAN, the switch port and the gateway, or remove requireGateway");
}

Error Attachment::Explain(Error error) const {
  for (const Work& work : work_) {
    const std::string& device = work.device->device;
    Error lost = WithLostDevice(root_, work.plan->function.address, error);
    if (lost.message != error.message) return lost;
    if (work.device->before.user_space) continue;
    const auto on_host = network_.host->FindLink(work.host_index);
    const auto in_pod = network_.pod->FindLink(work.pod_link.index);
    const auto moved = network_.pod->FindLinkOfDevice(device);
    if (!on_host || !in_pod || !moved || *on_host || *in_pod || *moved) continue;
    error = Wrap(std::move(error), "device " + device + " was bound to its driver again");
    error.code = ErrorCode::kNotFound;
    error.hint = "it has another interface now; the runtime repeats this ADD";
    return error;
  }
  return error;
}

Result<void> Attachment::SetUpRdma(Deadline deadline) {
  for (const Work* work : Netdevs()) {
    if (!work->device->rdma.device.empty())
      RH_TRY(ProvideRdma(root_, kernel_, *work->device, network_.pod_ns, deadline));
  }
  for (Work* work : Netdevs()) {
    AttachedDevice::Rdma& rdma = work->device->rdma;
    if (rdma.device.empty()) continue;
    const IpAddress* address = GidAddressOf(*work->device);
    if (address == nullptr || !work->device->nccl.enabled) {  // no GID to wait for
      rdma.uverbs = RH_TRY(UverbsOf(root_, rdma.device)).value_or("");
      continue;
    }
    const RdmaReady ready =
        RH_TRY(WaitRdma(root_, kernel_, *work->device, network_.pod_ns, *address, deadline));
    rdma.gid_index = ready.gid.index;
    rdma.uverbs = ready.uverbs;
  }
  return {};
}

}  // namespace railhead::attachment
