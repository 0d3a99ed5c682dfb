#include "cni/attachment/journal_record.h"

#include <sys/socket.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <utility>

#include "cni/attachment/ipam_delegate.h"
#include "cni/attachment/rdma.h"
#include "cni/state/displaced_names.h"
#include "netns/base/node.h"
#include "netns/base/text.h"

namespace railhead::attachment {
namespace {

// A device that is under a substitute name comes back to its own.
Result<void> DescribeNames(const Root& root, const LinkPlan& plan, AttachedLink& link) {
  link.host_name = RH_TRY(OwnNameOf(root, plan.bdf, plan.host_link.name));
  link.host_alt_names = plan.host_link.alt_names;
  const auto own = RH_TRY(ReadDisplacedNames(root, plan.bdf));
  if (!own || own->name != link.host_name) return {};
  for (const std::string& name : own->alt_names) {
    if (!Contains(link.host_alt_names, name)) link.host_alt_names.push_back(name);
  }
  return {};
}

void DescribeHost(const LinkPlan& plan, AttachedLink& link) {
  link.driver = plan.device.driver.value_or("");
  link.user_space = plan.user_space;
  link.parentless = !plan.user_space && plan.host_link.parent_device.empty();
  // A device without netdev has only the MAC that its PF gives it.
  link.host_mac = plan.user_space && plan.host_vf ? plan.host_vf->mac : plan.host_link.mac;
  link.host_mtu = plan.host_link.mtu;
  link.host_up = plan.host_link.up;
  link.host_alias = plan.host_link.alias;
  link.host_tx_queue_len = plan.host_link.tx_queue_len;
  link.host_promiscuous = plan.host_link.promiscuous;
  link.host_all_multicast = plan.host_link.all_multicast;
  link.host_settings = plan.host_settings;
  link.host_vf = plan.host_vf;
  link.vf_change = plan.vf_change;
  if (plan.mac) link.vf_change.mac = plan.mac;  // of a PF too: DEL restores it by value
}

LinkTuning TuningFor(const LinkTuning& wanted, const std::string& ifname) {
  LinkTuning tuning = wanted;
  for (auto& [path, value] : tuning.sysctls) {
    auto parts = Split(path, '/');
    for (auto& part : parts) {
      if (part == "IFNAME") part = ifname;
    }
    path = Join(parts, "/");
  }
  return tuning;
}

Result<void> DescribeRdma(const Root& root, Kernel& kernel, const AttachPlan& attach, const LinkPlan& plan,
                          AttachedLink& link) {
  link.rdma_device = plan.rdma_device;
  link.soft_roce = plan.soft_roce;
  link.handoff = plan.handoff;
  if (plan.rdma_device.empty() || plan.soft_roce) return {};
  link.rdma_moved = RH_TRY(AgreeOnRdmaMode(root, kernel, attach.rdma_mode)) == RdmaNetnsMode::kExclusive;
  if (link.rdma_moved && plan.allocation && plan.allocation->delivery == Delivery::kMount) {
    return Fail(ErrorCode::kInvalid,
                "device " + plan.bdf +
                    " was allocated with plain device nodes, but the node's RDMA mode is exclusive",
                "the node's number may change with the move: use \"delivery\": \"cdi\" for the pool");
  }
  return {};
}

Result<AttachedLink> DescribeLink(const Root& root, Kernel& kernel, const AttachPlan& attach,
                                  const LinkPlan& plan) {
  AttachedLink link = RH_TRY(DescribeOnHost(root, plan));
  link.rail = plan.RailName();
  link.slot = plan.slot;
  if (!plan.slot.empty() && plan.allocation) link.resource = plan.allocation->resource;
  RH_TRY(DescribeRdma(root, kernel, attach, plan, link));
  link.pod_mtu = plan.mtu.value_or(plan.host_link.mtu);
  if (!plan.user_space) link.tuning = TuningFor(attach.config.tuning, plan.pod_name);
  link.traffic_class = plan.rail ? plan.rail->traffic_class : std::nullopt;
  link.service_level = plan.rail ? plan.rail->service_level : std::nullopt;
  return link;
}

}  // namespace

Result<void> ReadHostSettings(Kernel& kernel, const PodNetwork& network, AttachPlan& plan) {
  std::unique_ptr<DeviceApi> devices;
  for (LinkPlan& link : plan.links) {
    if (link.user_space) continue;
    if (!devices) devices = RH_TRY(kernel.OpenDevices(network.host_ns));
    link.host_settings =
        RH_TRY_WRAP(devices->Read(link.host_link), "reading the settings of device " + link.bdf);
  }
  return {};
}

Result<AttachedLink> DescribeOnHost(const Root& root, const LinkPlan& plan) {
  AttachedLink link;
  link.device = plan.bdf;
  link.pf = plan.pf_bdf;
  link.vf = plan.device.vf_index.value_or(-1);
  link.pod_name = plan.pod_name;
  DescribeHost(plan, link);
  RH_TRY(DescribeNames(root, plan, link));
  return link;
}

Result<JournalEntry> DescribeAttachment(const Root& root, Kernel& kernel, const PodNetwork& network,
                                        const CniRequest& request, const AttachPlan& plan) {
  JournalEntry entry;
  entry.key = {request.network, request.container_id, request.ifname};
  entry.boot_id = RH_TRY(BootId(root));
  entry.netns = request.netns;
  entry.netns_inode = network.pod_ns.inode();
  entry.since = static_cast<std::int64_t>(std::time(nullptr));
  entry.ipam_type = plan.ipam_type;
  for (const auto& run : IpamRuns(request, plan)) entry.ipam_calls.push_back(run.call);
  entry.cni_path = request.path;
  entry.cni_args = request.args;
  for (const auto& link : plan.links) {
    entry.links.push_back(RH_TRY(DescribeLink(root, kernel, plan, link)));
    entry.handoff_required = entry.handoff_required || link.handoff_required;
  }
  return entry;
}

namespace {

// Per rail there is a table and a metric, unless the IPAM plugin names one: the kernel takes
// a destination once for each table and metric, whichever the interface.
Result<void> RefuseCollisions(const std::vector<AttachedLink>& links) {
  for (std::size_t i = 1; i < links.size(); ++i) {
    for (const auto& route : links[i].routes) {
      for (std::size_t j = 0; j < i; ++j) {
        const auto& others = links[j].routes;
        const bool taken = std::ranges::any_of(others, [&](const Route& other) {
          return other.destination == route.destination && other.table == route.table &&
                 other.metric == route.metric;
        });
        if (!taken) continue;
        return Fail(ErrorCode::kInvalid,
                    "the IPAM plugin gives " + links[j].pod_name + " and " + links[i].pod_name +
                        " the same route to " + route.destination.ToString() + " in table " +
                        std::to_string(route.table) + " with priority " + std::to_string(route.metric),
                    "leave priority and table out of its routes: each device then gets its own");
      }
    }
  }
  return {};
}

}  // namespace

Result<void> DescribeAddressing(PodNetwork& network, const AttachPlan& plan,
                                const std::vector<Addressing>& addressing, JournalEntry& entry) {
  std::vector<Rule> rules = RH_TRY(network.pod->ListRules(AF_INET));
  for (auto& rule : RH_TRY(network.pod->ListRules(AF_INET6))) rules.push_back(std::move(rule));
  for (std::size_t i = 0; i < entry.links.size(); ++i) {
    AttachedLink& link = entry.links[i];
    link.addresses = addressing[i].addresses;
    if (link.addresses.empty() || link.user_space) continue;
    link.table = PickTable(rules, plan.links[i].table);
    link.routes = RoutesFor(addressing[i], 0, link.table);
    // The next link must not take the same table.
    for (auto& rule : RulesFor(link.addresses, link.pod_name, link.table)) rules.push_back(std::move(rule));
  }
  return RefuseCollisions(entry.links);
}

}  // namespace railhead::attachment
