// railctl devices: the devices that this node offers to kubelet, their pods, and the devices not offered.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cni/protocol/cni_args.h"
#include "deviceplugin/node/resources/resource_pool.h"
#include "deviceplugin/node/resources/slots.h"
#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/config_sections.h"
#include "deviceplugin/tools/railctl/device_list.h"
#include "deviceplugin/tools/railctl/output.h"
#include "deviceplugin/tools/railctl/rail_filter.h"
#include "netns/base/text.h"

namespace railhead::railctl {
namespace {

class DeviceLister {
 public:
  DeviceLister(const Root& root, const NodeRecords& records) : records_(records) {
    for (const auto& [slot, device] : resources::ReadBoundSlots(root)) slots_[device] = slot;
    const auto pods = records.PodsByUid();
    for (const ContainerDevices& allocation : records.allocations) {
      const auto pod = pods.find(allocation.pod_uid);
      for (const std::string& id : allocation.ids)
        allocated_[id] = pod == pods.end() ? allocation.pod_uid : pod->second;
    }
  }

  [[nodiscard]] OfferedDevice Of(const inventory::NicFunction& function, const std::string& resource) const {
    OfferedDevice device;
    device.resource = resource;
    device.device = function.id;
    device.rail = records_.RailOf(function);
    device.numa_node = function.numa_node;
    device.pf_name = function.pf_name;
    if (function.vf_index >= 0) device.vf = function.vf_index;
    device.driver = function.driver;
    device.rdma_device = function.rdma_device;
    if (const auto slot = slots_.find(function.id); slot != slots_.end()) device.slot = slot->second;
    AddFaults(function, &device);
    AddHolder(function.id, &device);
    return device;
  }

 private:
  void AddFaults(const inventory::NicFunction& function, OfferedDevice* device) const {
    if (const health::DeviceHealth* health = records_.HealthOf(function.id); health && !health->healthy) {
      device->state = OfferState::kUnhealthy;
      device->reason = health::TextOf(health->reasons);
    }
    if (const health::Drain* drain = records_.DrainOf(function)) {
      device->state = OfferState::kDrained;
      device->reason = "drained as " + drain->name + (drain->reason.empty() ? "" : ": " + drain->reason);
    }
  }

  // The pod that has the device keeps it, whatever its faults.
  void AddHolder(const std::string& id, OfferedDevice* device) const {
    if (const auto holder = records_.HolderOf(id)) {
      const JournalEntry& entry = *holder->entry;
      if (IsReset(entry)) {
        device->state = OfferState::kResetting;
        return;
      }
      device->state = entry.phase == Phase::kDone ? OfferState::kInUse : OfferState::kAttaching;
      device->pod = PodName(entry.cni_args);
      device->container = entry.key.container_id;
      return;
    }
    for (const UnreadableEntry& entry : records_.journal.unreadable) {
      if (!entry.devices.contains(id)) continue;
      device->state = OfferState::kUnreadable;
      device->container = entry.key.container_id;
      device->reason = "its journal entry cannot be read: railctl journal show " + id;
      return;
    }
    if (const auto pod = allocated_.find(id); pod != allocated_.end()) {
      device->state = OfferState::kAllocated;
      device->pod = pod->second;
    }
  }

  const NodeRecords& records_;
  std::map<std::string, std::string> slots_;      // by device
  std::map<std::string, std::string> allocated_;  // pod by device or slot
};

struct DevicesArguments {
  RailFilter rail;
  Output output;
};

Result<void> KeepOfRail(const NodeRecords& records, const RailFilter& filter, DeviceList* list) {
  std::vector<std::string> rails;
  if (records.fabric) {
    for (const Rail& one : records.fabric->rails) rails.push_back(one.name);
  }
  RH_TRY(filter.CheckAmong(rails));
  filter.Keep(&list->devices, &OfferedDevice::rail);
  filter.Keep(&list->absent_rails, std::identity());
  return {};
}

int RunDevices(const Root& root, const DevicesArguments& arguments) {
  const auto node = SnapshotOfThisNode(root);
  if (!node) return Complain(node.error(), kBadConfig);
  const NodeRecords records = ReadNodeRecords(root);
  DeviceList list = ListDevices(root, *node, records);
  for (const Error& error : records.unread) list.warnings.push_back("not read: " + Describe(error));
  if (const auto kept = KeepOfRail(records, arguments.rail, &list); !kept)
    return Complain(kept.error(), kFailed);
  arguments.output.PrintTableOf(list, &DeviceList::devices);
  if (!arguments.output.is_text()) return kDone;
  for (const std::string& rail : list.absent_rails)
    (void)std::fprintf(stderr, "warning: %s: this node has no PF for it\n", rail.c_str());
  for (const std::string& warning : list.warnings)
    (void)std::fprintf(stderr, "warning: %s\n", warning.c_str());
  return kDone;
}

}  // namespace

std::size_t DeviceList::Count(OfferState state) const {
  return static_cast<std::size_t>(std::ranges::count(devices, state, &OfferedDevice::state));
}

DeviceList ListDevices(const Root& root, const NodeSnapshot& node, const NodeRecords& records) {
  const DeviceLister lister(root, records);
  DeviceList list;
  list.config = node.config_path;
  list.absent_rails = node.absent_rails;
  for (const Error& warning : node.warnings) list.warnings.push_back(warning.message);
  for (const auto& pool : node.pools) {
    for (const resources::PoolMember& member : pool->members)
      list.devices.push_back(lister.Of(member.function, pool->spec.resource));
  }
  for (const ExcludedDevice& excluded : NotAdvertised(node)) {
    OfferedDevice device = lister.Of(*excluded.function, "");
    // A pod may have it from an earlier configuration.
    if (device.container.empty()) device.state = OfferState::kNotOffered;
    device.reason = excluded.because;
    list.devices.push_back(std::move(device));
  }
  return list;
}

void AddDevicesCommand(CLI::App* app, const Root& root, int* status) {
  auto arguments = std::make_shared<DevicesArguments>();
  CLI::App* command = app->add_subcommand(
      "devices",
      "List the devices of each resource, the pods that have them, and what is not offered and why");
  arguments->rail.AddTo(command);
  arguments->output.AddTo(command);
  arguments->output.AddWatchTo(command);
  help::Set(command, {.examples = {{"railctl devices --rail rail0", "the devices of one rail"},
                                   {"railctl devices -w", "while pods come and go"}},
                      .columns = ColumnsOf<OfferedDevice>(),
                      .statuses = {{kFailed, "no such rail"},
                                   {kBadConfig, "fabric.json or config.json is missing or invalid"}}});
  command->callback([arguments, &root, status] {
    *status = arguments->output.Watched([&] { return RunDevices(root, *arguments); });
  });
}

}  // namespace railhead::railctl
