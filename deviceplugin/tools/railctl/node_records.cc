#include "deviceplugin/tools/railctl/node_records.h"

#include <algorithm>
#include <utility>

#include "cni/fabric/node_index.h"
#include "cni/protocol/cni_args.h"
#include "deviceplugin/node/resources/fabric_resources.h"
#include "netns/base/node.h"

namespace railhead::railctl {
namespace {

template <typename T>
void Take(Result<T> read, T* value, std::vector<Error>* unread) {
  if (read) {
    *value = *std::move(read);
  } else {
    unread->push_back(std::move(read.error()));
  }
}

Result<AddressReport> ReadAddresses(const Root& root) {
  // No store: nothing is held.
  return RH_TRY(ReportAddresses(root)).value_or(AddressReport{{}, {}, true});
}

}  // namespace

std::string NodeRecords::RailOf(const inventory::NicFunction& function) const {
  const std::string pf = function.pf.ToString();
  const auto found =
      std::ranges::find_if(pf_of_rail, [&](const auto& rail_and_pf) { return rail_and_pf.second == pf; });
  return found == pf_of_rail.end() ? std::string() : found->first;
}

std::optional<DeviceHolder> NodeRecords::HolderOf(const std::string& device) const {
  for (const JournalEntry& entry : journal.entries) {
    const auto found = std::ranges::find(entry.devices, device, &AttachedDevice::device);
    if (found != entry.devices.end()) return DeviceHolder{&entry, &*found};
  }
  return std::nullopt;
}

const health::DeviceHealth* NodeRecords::HealthOf(const std::string& device) const {
  if (!health) return nullptr;
  const auto found = std::ranges::find(health->devices, device, &health::DeviceHealth::id);
  return found == health->devices.end() ? nullptr : &*found;
}

const health::Drain* NodeRecords::DrainOf(const inventory::NicFunction& function) const {
  const std::string pf = function.pf.ToString();
  const auto found = std::ranges::find_if(
      drains, [&](const health::Drain& drain) { return drain.device == function.id || drain.device == pf; });
  return found == drains.end() ? nullptr : &*found;
}

const lldp::HeardNeighbor* NodeRecords::NeighborOf(const std::string& pf) const {
  if (!lldp) return nullptr;
  const auto found = std::ranges::find(lldp->rails, pf, &lldp::RailNeighbor::device);
  return found == lldp->rails.end() || !found->neighbor ? nullptr : &*found->neighbor;
}

std::map<std::string, std::string> NodeRecords::PodsByUid() const {
  std::map<std::string, std::string> pods;
  for (const JournalEntry& entry : journal.entries) {
    const std::string uid = PodUid(entry.cni_args);
    if (!uid.empty()) pods[uid] = PodName(entry.cni_args);
  }
  return pods;
}

NodeRecords ReadNodeRecords(const Root& root, const std::string& fabric) {
  NodeRecords records;
  records.inventory = std::make_shared<const inventory::Inventory>();
  Take(Discover(root, inventory::HostNetwork{}), &records.inventory, &records.unread);
  Take(ReadFabric(root, fabric), &records.fabric, &records.unread);
  Take(Journal(root).Scan(), &records.journal, &records.unread);
  Take(ReadCheckpoint(root), &records.allocations, &records.unread);
  Take(ReadAddresses(root), &records.addresses, &records.unread);
  Take(health::kHealthFile.Read(root), &records.health, &records.unread);
  Take(health::ReadDrains(root), &records.drains, &records.unread);
  Take(lldp::kLldpFile.Read(root), &records.lldp, &records.unread);
  if (records.fabric) {
    records.pf_of_rail = resources::PfsOfRails(*records.fabric, *records.inventory);
    Take(IndexOfThisNode(root, *records.fabric, NodeName(root).value_or("")), &records.index,
         &records.unread);
  }
  std::erase_if(records.allocations,
                [&](const ContainerDevices& devices) { return KubeletForgot(root, devices.pod_uid); });
  return records;
}

}  // namespace railhead::railctl
