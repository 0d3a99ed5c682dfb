#include "cni/plugin/attach.h"

#include <sys/socket.h>

#include <algorithm>
#include <ctime>
#include <thread>

#include "cni/plugin/home.h"
#include "cni/plugin/rdma_step.h"
#include "netns/base/node.h"
#include "netns/sys/pci.h"
#include "netns/sys/rdma_sysfs.h"

namespace railhead {
namespace {

constexpr auto kRebindLimit = std::chrono::seconds(10);
constexpr auto kRebindPoll = std::chrono::milliseconds(5);

Error NamespaceError(const std::string& path, std::string why) {
  return Error{ErrorCode::kNamespace, "CNI_NETNS " + path + ": " + std::move(why),
               "give the path of the pod's network namespace", 0};
}

// The first IPv4 address, else the first: the one whose GID is handed over.
const IpPrefix* HandoffAddress(const Addressing& addressing) {
  const auto& all = addressing.addresses;
  const auto v4 =
      std::find_if(all.begin(), all.end(), [](const IpPrefix& address) { return address.address.IsV4(); });
  if (v4 != all.end()) return &*v4;
  return all.empty() ? nullptr : &all.front();
}

}  // namespace

Result<Attachment> Attachment::Open(const Root& root, Kernel& kernel, const CniRequest& request) {
  NetNs host = RH_TRY(kernel.HostNetns());
  auto pod = kernel.OpenNetns(request.netns);
  if (!pod) return Fail(NamespaceError(request.netns, pod.error().message));
  if (pod->SameAs(host) && !request.netns_override) {
    return Fail(NamespaceError(request.netns, "is the plugin's own namespace"));
  }
  Attachment attachment(root, kernel, request, std::move(host), std::move(*pod));
  attachment.host_ = RH_TRY(kernel.OpenRoute(attachment.host_ns_));
  attachment.pod_ = RH_TRY(kernel.OpenRoute(attachment.pod_ns_));
  return attachment;
}

Result<void> Attachment::RefuseTakenName() {
  if (RH_TRY(pod_->FindLink(request_->ifname))) {
    return Fail(ErrorCode::kExists, "interface " + request_->ifname + " exists already in " + request_->netns,
                "use another CNI_IFNAME, or DEL the earlier attachment");
  }
  return {};
}

Result<JournalEntry> Attachment::Describe(const AttachPlan& plan, const Addressing& addressing) {
  host_index_ = plan.host_link.index;
  JournalEntry entry;
  entry.key = {request_->network, request_->container_id, request_->ifname};
  entry.boot_id = RH_TRY(BootId(*root_));
  entry.netns = request_->netns;
  entry.netns_inode = pod_ns_.inode();
  entry.since = static_cast<std::int64_t>(std::time(nullptr));
  entry.ipam_type = plan.ipam_type;
  if (!plan.ipam_type.empty()) {
    entry.ipam_config = IpamConfig(*request_, plan.ipam_type, plan.rail ? plan.rail->name : "");
  }
  entry.handoff_required = plan.handoff_required;
  AttachedLink link;
  link.device = plan.bdf;
  link.pf = plan.pf_bdf;
  link.vf = plan.device.vf_index.value_or(-1);
  link.rail = plan.rail ? plan.rail->name : "";
  link.pod_name = request_->ifname;
  link.driver = plan.device.driver.value_or("");
  link.host_name = plan.host_link.name;
  link.host_mac = plan.host_link.mac;
  link.host_mtu = plan.host_link.mtu;
  link.host_up = plan.host_link.up;
  link.host_vf = plan.host_vf;
  link.vf_change = plan.vf_change;
  if (plan.mac) link.vf_change.mac = plan.mac;  // of a PF too: DEL restores it by value
  link.rdma_device = plan.rdma_device;
  link.soft_roce = plan.soft_roce;
  link.handoff = plan.handoff;
  if (!plan.rdma_device.empty() && !plan.soft_roce) {
    const auto rdma = RH_TRY(kernel_->OpenRdma(host_ns_));
    link.rdma_moved = RH_TRY(rdma->NetnsMode()) == RdmaNetnsMode::kExclusive;
    if (link.rdma_moved && plan.allocation && plan.allocation->delivery == Delivery::kMount) {
      return Fail(ErrorCode::kInvalid,
                  "device " + plan.bdf +
                      " was allocated with plain device nodes, but the node's RDMA mode is " + "exclusive",
                  "the node's number may change with the move: use \"delivery\": \"cdi\" for the pool");
    }
  }
  link.pod_mtu = plan.mtu.value_or(plan.host_link.mtu);
  link.addresses = addressing.addresses;
  link.traffic_class = plan.rail ? plan.rail->traffic_class : std::nullopt;
  if (!addressing.addresses.empty()) {
    std::vector<Rule> rules = RH_TRY(pod_->ListRules(AF_INET));
    for (auto& rule : RH_TRY(pod_->ListRules(AF_INET6))) rules.push_back(std::move(rule));
    link.table = PickTable(rules, plan.table);
    link.routes = RoutesFor(addressing, 0, link.table);
  }
  entry.links.push_back(std::move(link));
  return entry;
}

Result<void> Attachment::ConfigureVf(const AttachPlan& plan) {
  if (!plan.vf_change.Empty()) {
    RH_TRY_WRAP(host_->SetVf(plan.pf_index, *plan.device.vf_index, plan.vf_change),
                "setting VF " + std::to_string(*plan.device.vf_index) + " of " + plan.pf_name);
  }
  if (!plan.mac) return {};
  if (!plan.device.is_vf || !plan.device.driver || !NeedsRebindForMac(*plan.device.driver)) {
    return WithContext(host_->ChangeLink(host_index_, {.mac = plan.mac}), "setting the MAC of " + plan.bdf);
  }
  RH_TRY(kernel_->RebindDriver(plan.bdf));
  const auto deadline = std::chrono::steady_clock::now() + kRebindLimit;
  for (;;) {
    for (const auto& name : RH_TRY(NetdevsOf(*root_, plan.device.address))) {
      const auto found = RH_TRY(host_->FindLink(name));
      if (!found) continue;
      host_index_ = found->index;
      return {};
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      return Fail(ErrorCode::kTimeout,
                  "device " + plan.bdf + " has no interface after its driver was bound again");
    }
    std::this_thread::sleep_for(kRebindPoll);
  }
}

Result<void> Attachment::MoveIntoPod(const AttachPlan& plan) {
  // A rebind gave the interface the driver's MTU.
  const auto mtu = plan.mac && !plan.mtu ? std::optional<int>(plan.host_link.mtu) : plan.mtu;
  RH_TRY_WRAP(host_->MoveLink(host_index_, pod_ns_, request_->ifname, mtu),
              "moving " + plan.bdf + " into " + request_->netns + " as " + request_->ifname +
                  (mtu ? " with MTU " + std::to_string(*mtu) : ""));
  const auto found = RH_TRY(pod_->FindLink(request_->ifname));
  if (!found)
    return Fail(ErrorCode::kConflict,
                "interface " + request_->ifname + " has left " + request_->netns + " again");
  link_ = *found;
  return {};
}

Result<void> Attachment::ConfigureLink(const Addressing& addressing) {
  const auto& addresses = addressing.addresses;
  const bool v6 =
      std::any_of(addresses.begin(), addresses.end(), [](const IpPrefix& a) { return a.address.IsV6(); });
  LinkChange change;
  // An automatic IPv6 address takes a GID slot, sooner or later than ours.
  if (!v6) change.addr_gen_mode = AddrGenMode::kNone;
  // Each NIC answers ARP for its own addresses only, and asks with its own. The
  // kernel takes the larger of "all" and this rp_filter: 2 (loose) beats a strict
  // default, 0 would not.
  change.ipv4 = {{Ipv4Conf::kArpIgnore, 1}, {Ipv4Conf::kArpAnnounce, 2}, {Ipv4Conf::kRpFilter, 2}};
  RH_TRY_WRAP(pod_->ChangeLink(link_.index, change), "configuring " + request_->ifname);
  // While the link is down, so that the GIDs come in this order.
  for (const auto& address : addresses) {
    RH_TRY_WRAP(pod_->AddAddress(link_.index, address), "adding address " + address.ToString());
  }
  return WithContext(pod_->ChangeLink(link_.index, {.up = true}), "bringing " + request_->ifname + " up");
}

Result<void> Attachment::ConfigureRouting(const AttachedLink& link) {
  for (Route route : link.routes) {
    route.link = link_.index;
    RH_TRY_WRAP(pod_->AddRoute(route), "adding route " + route.ToString());
  }
  for (const auto& rule : RulesFor(link.addresses, link.pod_name, link.table)) {
    RH_TRY_WRAP(pod_->AddRule(rule), "adding rule " + rule.ToString());
  }
  return {};
}

Result<void> Attachment::AwaitCarrier(const AttachPlan& plan, Deadline deadline) {
  if (RH_TRY(pod_->WaitCarrier(link_.index, deadline))) return {};
  const auto pf = plan.pf_index != 0 ? RH_TRY(host_->FindLink(plan.pf_index)) : std::nullopt;
  std::string hint = "check cable and switch port";
  if (pf && !pf->up) hint = "the PF " + pf->name + " is down: bring it up first";
  if (pf && pf->up && !pf->carrier) hint = "the PF " + pf->name + " has no carrier: " + hint;
  return Fail(ErrorCode::kTimeout,
              request_->ifname + " (" + plan.bdf + ") has no carrier after " +
                  std::to_string(plan.config.wait_seconds) + " s",
              hint);
}

Result<void> Attachment::SetUpRdma(const Addressing& addressing, AttachedLink& link, Deadline deadline) {
  if (link.rdma_device.empty()) return {};
  RH_TRY(ProvideRdma(*root_, *kernel_, link, pod_ns_));
  const IpPrefix* address = HandoffAddress(addressing);
  if (address == nullptr || !link.handoff) {  // no GID to wait for
    link.uverbs = RH_TRY(UverbsOf(*root_, link.rdma_device)).value_or("");
    return {};
  }
  const RdmaReady ready = RH_TRY(WaitRdma(*root_, *kernel_, link, pod_ns_, address->address, deadline));
  link.gid_index = ready.gid.index;
  link.uverbs = ready.uverbs;
  return {};
}

Result<void> Attachment::AnnounceAddresses(const Addressing& addressing) {
  std::vector<IpAddress> addresses;
  for (const auto& address : addressing.addresses) addresses.push_back(address.address);
  if (addresses.empty()) return {};
  return WithContext(kernel_->Announce(pod_ns_, link_, addresses),
                     "announcing the addresses of " + request_->ifname);
}

}  // namespace railhead
