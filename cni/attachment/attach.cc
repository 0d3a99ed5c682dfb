#include "cni/attachment/attach.h"

#include <algorithm>
#include <utility>

#include "cni/attachment/acquire.h"
#include "cni/attachment/devices.h"
#include "cni/attachment/rdma.h"
#include "cni/attachment/reset.h"
#include "cni/state/tenants.h"
#include "netns/base/text.h"
#include "netns/sys/pci.h"
#include "netns/sys/rdma_sysfs.h"

namespace railhead::attachment {
namespace {

constexpr int kAnswerOwn = 1;  // arp_ignore: only for addresses of the asked interface
constexpr int kAnswerNone = 8;

}  // namespace

Result<void> RefuseTakenNames(PodNetwork& network, const AttachPlan& plan) {
  for (const auto& link : plan.links) {
    if (!RH_TRY(network.pod->FindLink(link.pod_name))) continue;
    return Fail(ErrorCode::kExists,
                "interface " + link.pod_name + " exists already in " + network.pod_ns.path(),
                "use another CNI_IFNAME, or DEL the earlier attachment");
  }
  return {};
}

Attachment::Attachment(const Root& root, Kernel& kernel, PodNetwork& network, const AttachPlan& plan,
                       const std::vector<Addressing>& addressing, JournalEntry& entry)
    : root_(root), kernel_(kernel), network_(network), plan_(plan), key_(entry.key) {
  for (std::size_t i = 0; i < plan.links.size(); ++i) {
    work_.push_back({&plan.links[i], &addressing[i], &entry.links[i], plan.links[i].host_link.index, {}});
  }
}

std::vector<Attachment::Work*> Attachment::Netdevs() {
  std::vector<Work*> netdevs;
  for (auto& work : work_) {
    if (!work.plan->user_space) netdevs.push_back(&work);
  }
  return netdevs;
}

// Whether it is the name that one of the devices gets in the pod.
bool Attachment::IsPodName(const std::string& name) const {
  return Contains(plan_.links, name, &LinkPlan::pod_name);
}

Result<void> Attachment::ConfigureVfs() {
  for (auto& work : work_) RH_TRY(ConfigureVf(work));
  return {};
}

Result<void> Attachment::ConfigureVf(Work& work) {
  const LinkPlan& plan = *work.plan;
  if (!plan.vf_change.Empty()) {
    RH_TRY_WRAP(network_.host->SetVf(plan.pf_index, *plan.device.vf_index, plan.vf_change),
                "setting VF " + std::to_string(*plan.device.vf_index) + " of " + plan.pf_name);
  }
  // Who drives the VF from user space reads the MAC that the PF was told.
  return plan.mac && !plan.user_space ? SetMac(work) : Result<void>();
}

Result<void> Attachment::SetMac(Work& work) {
  const LinkPlan& plan = *work.plan;
  if (!plan.device.is_vf || !plan.device.driver || !NeedsRebindForMac(*plan.device.driver)) {
    const auto change = [&] { return network_.host->ChangeLink(work.host_index, {.mac = plan.mac}); };
    return WithContext(plan.device.is_vf ? CallDuringReset(change) : change(),
                       "setting the MAC of " + plan.bdf);
  }
  work.host_index = RH_TRY(RebindAndAwait(root_, kernel_, *network_.host, plan.device.address)).index;
  return {};
}

Result<void> Attachment::MoveIntoPod() {
  for (Work* work : Netdevs()) RH_TRY(Move(*work));
  return {};
}

Result<void> Attachment::Move(Work& work) const {
  const LinkPlan& plan = *work.plan;
  // A rebind gave the interface the driver's MTU.
  const auto mtu = plan.mac && !plan.mtu ? std::optional<int>(plan.host_link.mtu) : plan.mtu;
  // The kernel refuses the move for an alternative name that the pod has for something else,
  // and the renaming for its own. It comes back with DEL.
  for (const auto& name : plan.host_link.alt_names) {
    if (!IsPodName(name) && !RH_TRY(network_.pod->FindLink(name))) continue;
    RH_TRY_WRAP(network_.host->DeleteAltName(work.host_index, name),
                "taking the alternative name " + name + " from " + plan.bdf);
  }
  RH_TRY_WRAP(network_.host->MoveLink(work.host_index, network_.pod_ns, plan.pod_name, mtu),
              "moving " + plan.bdf + " into " + network_.pod_ns.path() + " as " + plan.pod_name +
                  (mtu ? " with MTU " + std::to_string(*mtu) : ""));
  auto found = RH_TRY(network_.pod->FindLink(plan.pod_name));
  if (!found) {
    return Fail(ErrorCode::kConflict,
                "interface " + plan.pod_name + " has left " + network_.pod_ns.path() + " again");
  }
  work.pod_link = std::move(*found);
  return {};
}

Result<void> Attachment::ConfigureLinks() {
  for (const Work* work : Netdevs()) RH_TRY(ConfigureLink(*work));
  std::vector<Sysctl> sysctls;
  for (const Work* work : Netdevs()) {
    const auto& own = work->link->tuning.sysctls;
    sysctls.insert(sysctls.end(), own.begin(), own.end());
  }
  if (!sysctls.empty())
    RH_TRY_WRAP(kernel_.WriteSysctls(network_.pod_ns, sysctls), "setting sysctls in the pod");
  // While the links are down, so that the GIDs come in this order.
  for (const Work* work : Netdevs()) {
    for (const auto& address : work->link->addresses) {
      RH_TRY_WRAP(network_.pod->AddAddress(work->pod_link.index, address),
                  "adding address " + address.ToString() + " to " + work->plan->pod_name);
    }
  }
  return {};
}

Result<void> Attachment::ConfigureLink(const Work& work) {
  const auto& addresses = work.link->addresses;
  const LinkTuning& tuning = work.link->tuning;
  const bool v6 = std::ranges::any_of(addresses, [](const IpPrefix& a) { return a.address.IsV6(); });
  LinkChange change;
  // An automatic IPv6 address takes a GID slot, sooner or later than ours.
  if (!v6) change.addr_gen_mode = AddrGenMode::kNone;
  // Each NIC answers ARP for its own addresses only (and for none that is not yet known
  // to be free), and asks with its own. The kernel takes the larger of "all" and this
  // rp_filter: 2 (loose) beats a strict default, 0 would not.
  const int arp_ignore = Probes() && !addresses.empty() ? kAnswerNone : kAnswerOwn;
  change.ipv4 = {{Ipv4Conf::kArpIgnore, arp_ignore}, {Ipv4Conf::kArpAnnounce, 2}, {Ipv4Conf::kRpFilter, 2}};
  change.alias = tuning.alias;
  change.tx_queue_len = tuning.tx_queue_len;
  change.promiscuous = tuning.promiscuous;
  change.all_multicast = tuning.all_multicast;
  RH_TRY_WRAP(network_.pod->ChangeLink(work.pod_link.index, change), "configuring " + work.plan->pod_name);
  const auto& own = work.pod_link.alt_names;
  for (const auto& name : tuning.alt_names) {
    if (Contains(own, name)) continue;  // the host has given it already
    RH_TRY_WRAP(network_.pod->AddAltName(work.pod_link.index, name),
                "giving " + work.plan->pod_name + " the alternative name " + name);
  }
  return {};
}

Result<void> Attachment::BringUp() {
  for (const Work* work : Netdevs()) {
    const auto bring = [&] { return network_.pod->ChangeLink(work->pod_link.index, {.up = true}); };
    RH_TRY_WRAP(work->plan->vf_change.Empty() ? bring() : CallDuringReset(bring),
                "bringing " + work->plan->pod_name + " up");
  }
  // The kernel has no route over a link that is down.
  for (const Work* work : Netdevs()) RH_TRY(AddRouting(*work));
  return {};
}

Result<void> Attachment::AddRouting(const Work& work) const {
  for (Route route : work.link->routes) {
    route.link = work.pod_link.index;
    RH_TRY_WRAP(network_.pod->AddRoute(route), "adding route " + route.ToString());
  }
  if (work.link->table == 0) return {};
  for (const auto& rule : RulesFor(work.link->addresses, work.link->pod_name, work.link->table)) {
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
  const LinkPlan& plan = *work.plan;
  const auto pf = plan.pf_index != 0 ? RH_TRY(network_.host->FindLink(plan.pf_index)) : std::nullopt;
  std::string hint = "check cable and switch port";
  if (pf && !pf->up) hint = "the PF " + pf->name + " is down: bring it up first";
  if (pf && pf->up && !pf->carrier) hint = "the PF " + pf->name + " has no carrier: " + hint;
  return Fail(ErrorCode::kTimeout,
              plan.pod_name + " (" + plan.bdf + ") has no carrier after " +
                  std::to_string(plan_.config.wait_seconds) + " s",
              hint);
}

const Attachment::Work& Attachment::WorkOf(const AddressClaim& claim) const {
  return *std::ranges::find_if(work_, [&](const Work& work) { return work.pod_link.index == claim.link; });
}

Result<std::vector<AddressConflict>> Attachment::Judge(const std::vector<AddressConflict>& found) {
  if (found.empty()) return found;
  const auto now = BoottimeNow();
  auto verdict = JudgeConflicts(found, RH_TRY(ReadRivalClaims(root_)), now);
  const auto log = [&](const std::vector<AddressConflict>& claims, bool ignored) {
    for (const AddressConflict& one : claims) {
      LogRivalClaim(
          root_, {key_, WorkOf(one.claim).plan->bdf, one.claim.address, one.other, one.source, now, ignored});
    }
  };
  log(verdict.conflicts, false);
  log(verdict.ignored, true);
  confirmed_in_use_ = std::move(verdict.confirmed);
  return std::move(verdict.conflicts);
}

Result<void> Attachment::RefuseConflicts() {
  if (!Probes()) return {};
  std::vector<AddressClaim> claims;
  for (const Work* work : Netdevs()) {
    for (const auto& address : work->link->addresses) {
      claims.push_back({work->pod_link.index, work->pod_link.mac, address.address});
    }
  }
  if (claims.empty()) return {};
  const std::chrono::milliseconds budget(plan_.conflict_probe_ms);
  const auto found =
      RH_TRY_WRAP(kernel_.ProbeAddresses(network_.pod_ns, claims, budget), "looking for address conflicts");
  const auto conflicts = RH_TRY(Judge(found));
  if (!conflicts.empty()) {
    for (const AddressConflict& conflict : conflicts) in_use_.push_back(conflict.claim.address);
    const auto& first = conflicts.front();
    const LinkPlan& where = *WorkOf(first.claim).plan;
    return Fail(ErrorCode::kConflict,
                "address " + first.claim.address.ToString() + " is used by " + first.other.ToString() +
                    " on the network of " + where.pod_name + " (" + where.bdf + ")",
                "find that host, or exclude the address in fabric.json; the next try gets another address");
  }
  LinkChange answer;
  answer.ipv4 = {{Ipv4Conf::kArpIgnore, kAnswerOwn}};
  for (const Work* work : Netdevs()) {
    const auto& sysctls = work->link->tuning.sysctls;
    const std::string own = "net/ipv4/conf/" + work->plan->pod_name + "/arp_ignore";
    const bool asked_otherwise = Contains(sysctls, own, &Sysctl::path);
    if (work->link->addresses.empty() || asked_otherwise) continue;
    RH_TRY_WRAP(network_.pod->ChangeLink(work->pod_link.index, answer),
                "configuring " + work->plan->pod_name);
  }
  return {};
}

Result<void> Attachment::Announce() {
  if (!plan_.config.announce) return {};
  for (const Work* work : Netdevs()) {
    std::vector<IpAddress> addresses;
    for (const auto& address : work->link->addresses) addresses.push_back(address.address);
    if (addresses.empty()) continue;
    RH_TRY_WRAP(kernel_.Announce(network_.pod_ns, work->pod_link, addresses),
                "announcing the addresses of " + work->plan->pod_name);
  }
  return {};
}

Result<void> Attachment::MeetGateways(Deadline deadline) {
  for (const Work* work : Netdevs()) {
    for (const auto& gateway : work->addressing->gateways) {
      if (gateway) RH_TRY(network_.pod->ResolveNeighbour(work->pod_link.index, *gateway));
    }
  }
  if (!plan_.meet_gateways) return {};
  for (const Work* work : Netdevs()) {
    for (const auto& gateway : work->addressing->gateways) {
      if (gateway) RH_TRY(MeetGateway(*work, *gateway, deadline));
    }
  }
  return {};
}

Result<void> Attachment::MeetGateway(const Work& work, const IpAddress& gateway, Deadline deadline) const {
  const auto answer = RH_TRY(network_.pod->WaitNeighbour(work.pod_link.index, gateway, deadline));
  const std::string of = " of " + work.plan->pod_name + " (" + work.plan->bdf + ")";
  if (answer && *answer != work.pod_link.mac) return {};
  if (plan_.config.mac) {
    return Fail(
        ErrorCode::kConflict,
        "gateway " + gateway.ToString() + of + " does not answer: mac " + plan_.config.mac->ToString() +
            " may be its own",
        "ask for another mac; or have the gateway answer, or railheadd probe it (fabric.json: connectivity)");
  }
  return Fail(ErrorCode::kTimeout, "gateway " + gateway.ToString() + of + " does not answer",
              "check the VLAN, the switch port and the gateway, or remove gatewayCheck");
}

Error Attachment::Explain(Error error) const {
  for (const Work& work : work_) {
    const LinkPlan& plan = *work.plan;
    Error lost = WithLostDevice(root_, plan.device.address, error);
    if (lost.message != error.message) return lost;
    if (plan.user_space) continue;
    const auto on_host = network_.host->FindLink(work.host_index);
    const auto in_pod = network_.pod->FindLink(work.pod_link.index);
    const auto moved = network_.pod->FindLinkOfDevice(plan.bdf);
    if (!on_host || !in_pod || !moved || *on_host || *in_pod || *moved) continue;
    error = Wrap(std::move(error), "device " + plan.bdf + " was bound to its driver anew");
    error.code = ErrorCode::kNotFound;
    error.hint = "it has another interface now: this ADD will be tried again";
    return error;
  }
  return error;
}

Result<void> Attachment::SetUpRdma(Deadline deadline) {
  for (const Work* work : Netdevs()) {
    if (!work->link->rdma_device.empty()) {
      RH_TRY(ProvideRdma(root_, kernel_, *work->link, network_.pod_ns, deadline));
    }
  }
  for (Work* work : Netdevs()) {
    AttachedLink& link = *work->link;
    if (link.rdma_device.empty()) continue;
    const IpAddress* address = GidAddressOf(link);
    if (address == nullptr || !link.handoff) {  // no GID to wait for
      link.uverbs = RH_TRY(UverbsOf(root_, link.rdma_device)).value_or("");
      continue;
    }
    const RdmaReady ready = RH_TRY(WaitRdma(root_, kernel_, link, network_.pod_ns, *address, deadline));
    link.gid_index = ready.gid.index;
    link.uverbs = ready.uverbs;
  }
  return {};
}

}  // namespace railhead::attachment
