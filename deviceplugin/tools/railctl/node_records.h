// NodeRecords: the inventory of this node and what its state files say, for commands that combine them.
//
// ReadNodeRecords() reads each source once, with the reader that the source's own command uses. A source that
// cannot be read is empty here, and its error is in `unread`. So a damaged file costs only its own part.
//
// Ownership: values; pointers that a function returns point into the records. Threads: values.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "cni/state/journal.h"
#include "cni/state/kubelet_checkpoint.h"
#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/services/health/drains.h"
#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/services/lldp/lldp_report.h"
#include "deviceplugin/tools/railctl/address_report.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::railctl {

// The attachment of this boot that has a device.
struct DeviceHolder {
  const JournalEntry* entry = nullptr;
  const AttachedDevice* device = nullptr;
};

struct NodeRecords {
  std::shared_ptr<const inventory::Inventory> inventory;  // never null
  std::optional<Fabric> fabric;
  std::optional<int> index;                       // of this node
  std::map<std::string, std::string> pf_of_rail;  // PCI address by rail; rails without a PF are not there
  JournalScan journal;
  std::vector<ContainerDevices> allocations;  // by kubelet, of pods that kubelet still knows
  AddressReport addresses;
  std::optional<health::HealthState> health;
  std::vector<health::Drain> drains;
  std::optional<lldp::LldpReport> lldp;
  // By device, why kubelet does not get it. Of ReadNodeRecords() it is empty: only a plan says so.
  std::map<std::string, std::string> not_offered;
  std::vector<Error> unread;

  // "": on none.
  [[nodiscard]] std::string RailOf(const inventory::NicFunction& function) const;
  // nullopt: no attachment of this boot has it.
  [[nodiscard]] std::optional<DeviceHolder> HolderOf(const std::string& device) const;
  // nullptr: railheadd does not watch it.
  [[nodiscard]] const health::DeviceHealth* HealthOf(const std::string& device) const;
  // Of the device or of its PF; nullptr: in use.
  [[nodiscard]] const health::Drain* DrainOf(const inventory::NicFunction& function) const;
  // What LLDP says of a PF; nullptr: nothing.
  [[nodiscard]] const lldp::HeardNeighbor* NeighborOf(const std::string& pf) const;
  // Of all attachments of this boot: "NAMESPACE/NAME" by the pod's UID.
  [[nodiscard]] std::map<std::string, std::string> PodsByUid() const;
};

NodeRecords ReadNodeRecords(const Root& root, const std::string& fabric = kFabricPath);

}  // namespace railhead::railctl
