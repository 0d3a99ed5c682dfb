#include "cni/attachment/journal_record.h"

#include <sys/socket.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <utility>

#include "cni/attachment/devices.h"
#include "cni/attachment/rdma.h"
#include "cni/state/displaced_names.h"
#include "netns/base/node.h"
#include "netns/base/text.h"

namespace railhead::attachment {
namespace {

// A device that is under a substitute name comes back to its own.
Result<void> DescribeNames(const Root& root, const Link& link, AttachedDevice& record) {
  AttachedDevice::Before& before = record.before;
  before.name = RH_TRY(OwnNameOf(root, record.device, link.name));
  before.alt_names = link.alt_names;
  const auto own = RH_TRY(ReadDisplacedNames(root, record.device));
  if (!own || own->name != before.name) return {};
  for (const std::string& name : own->alt_names) {
    if (!Contains(before.alt_names, name)) before.alt_names.push_back(name);
  }
  return {};
}

Result<void> AgreeOnRdma(const Root& root, Kernel& kernel, const AttachPlan& plan, DevicePlan& device) {
  AttachedDevice& record = device.record;
  if (record.rdma.device.empty() || record.rdma.soft) return {};
  record.rdma.moved = RH_TRY(AgreeOnRdmaMode(root, kernel, plan.rdma_mode)) == RdmaNetnsMode::kExclusive;
  if (record.rdma.moved && device.allocation && device.allocation->delivery == Delivery::kMount) {
    return Fail(ErrorCode::kInvalid,
                "device " + record.device +
                    " was allocated with plain device nodes, but the node's RDMA mode is exclusive",
                "the node's number may change with the move: use \"delivery\": \"cdi\" for the pool");
  }
  return {};
}

}  // namespace

Result<void> DescribeOnHost(const Root& root, DevicePlan& plan) {
  AttachedDevice::Before& before = plan.record.before;
  before.driver = plan.function.driver.value_or("");
  before.user_space = IsForUserSpace(plan.function);
  if (before.user_space) {
    // A device without netdev has only the MAC that its PF gives it.
    if (before.vf) before.mac = MacOf(*before.vf);
    return {};
  }
  before.parentless = plan.link.parent_device.empty();
  before.mac = plan.link.mac;
  before.up = plan.link.up;
  before.link = SettingsOf(plan.link);
  return DescribeNames(root, plan.link, plan.record);
}

Result<void> ReadDriverSettings(Kernel& kernel, const PodNetwork& network, AttachPlan& plan) {
  std::unique_ptr<DeviceApi> devices;
  for (DevicePlan& device : plan.devices) {
    if (device.record.before.user_space) continue;
    if (!devices) devices = RH_TRY(kernel.OpenDevices(network.host_ns));
    device.record.before.settings =
        RH_TRY_WRAP(devices->Read(device.link), "reading the settings of device " + device.record.device);
  }
  return {};
}

Result<JournalEntry> DescribeAttachment(const Root& root, Kernel& kernel, const PodNetwork& network,
                                        const CniRequest& request, AttachPlan& plan) {
  JournalEntry entry;
  entry.key = {request.network, request.container_id, request.ifname};
  entry.boot_id = RH_TRY(BootId(root));
  entry.netns = request.netns;
  entry.netns_inode = network.pod_ns.inode();
  entry.since = static_cast<std::int64_t>(std::time(nullptr));
  entry.ipam_type = plan.ipam_type;
  for (const IpamRun& run : plan.ipam_runs) entry.ipam_calls.push_back(run.call);
  entry.cni_path = request.path;
  entry.cni_args = request.args;
  for (DevicePlan& device : plan.devices) {
    RH_TRY(AgreeOnRdma(root, kernel, plan, device));
    entry.devices.push_back(device.record);
    entry.handoff_required = entry.handoff_required || device.handoff_required;
  }
  return entry;
}

namespace {

// Per rail there is a table and a metric, unless the IPAM plugin names one: the kernel takes
// a destination once for each table and metric, whichever the interface.
Result<void> RefuseCollisions(const std::vector<AttachedDevice>& devices) {
  for (std::size_t i = 1; i < devices.size(); ++i) {
    for (const auto& route : devices[i].addressing.routes) {
      for (std::size_t j = 0; j < i; ++j) {
        const auto& others = devices[j].addressing.routes;
        const bool taken = std::ranges::any_of(others, [&](const Route& other) {
          return other.destination == route.destination && other.table == route.table &&
                 other.metric == route.metric;
        });
        if (!taken) continue;
        return Fail(ErrorCode::kInvalid,
                    "the IPAM plugin gives " + devices[j].pod_name + " and " + devices[i].pod_name +
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
  for (std::size_t i = 0; i < entry.devices.size(); ++i) {
    AttachedDevice& device = entry.devices[i];
    device.addressing.addresses = addressing[i].addresses;
    if (addressing[i].addresses.empty() || device.before.user_space) continue;
    device.addressing.table = PickTable(rules, plan.devices[i].table);
    device.addressing.routes = RoutesFor(addressing[i], 0, device.addressing.table);
    // The next device must not take the same table.
    for (auto& rule : RulesFor(device)) rules.push_back(std::move(rule));
  }
  return RefuseCollisions(entry.devices);
}

}  // namespace railhead::attachment
