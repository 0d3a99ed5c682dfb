#include "deviceplugin/node/topology/topology.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "deviceplugin/node/topology/accelerator_ids.h"
#include "deviceplugin/node/topology/find_by_nvml.h"
#include "deviceplugin/node/topology/topology_config.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/json/record_io.h"
#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"

namespace railhead::topology {
namespace {

PciPlace PlaceOf(const TopologyNic& nic) {
  return {nic.path, nic.numa_node};
}
PciPlace PlaceOf(const Accelerator& accelerator) {
  return {accelerator.path, accelerator.numa_node};
}

// Row by row.
template <typename Row, typename Column>
std::vector<PciPath> Table(const std::vector<Row>& rows, const std::vector<Column>& columns) {
  std::vector<PciPath> table;
  table.reserve(rows.size() * columns.size());
  for (const Row& row : rows) {
    for (const Column& column : columns) table.push_back(PciPathBetween(PlaceOf(row), PlaceOf(column)));
  }
  return table;
}

}  // namespace

Result<std::shared_ptr<const Topology>> Topology::Read(const Root& root,
                                                       const inventory::Inventory& inventory,
                                                       const TopologyConfig& config) {
  const std::shared_ptr<Topology> topology(new Topology);
  RH_TRY(topology->ReadNics(root, inventory));
  std::set<PciAddress> nics;
  for (const auto& [function, nic] : topology->nic_of_function_) nics.insert(nics.end(), function);
  topology->accelerators_ = RH_TRY(ListAccelerators(root, config.accelerators.kinds, nics));
  topology->Compare();
  topology->Override(config);
  return std::shared_ptr<const Topology>(topology);
}

Result<void> Topology::ReadNics(const Root& root, const inventory::Inventory& inventory) {
  nic_of_function_.reserve(inventory.functions.size());
  std::map<PciAddress, std::size_t> pfs;
  for (const inventory::NicFunction& function : inventory.functions) {
    if (function.is_vf) continue;
    auto device = RH_TRY_WRAP(FindPciDevice(root, function.address), "looking where " + function.id + " is");
    if (!device) continue;  // pulled out a moment ago
    pfs.emplace(function.address, nics_.size());
    nics_.push_back({function.address, function.pf_name, function.rdma_device, function.numa_node,
                     std::move(device->path)});
  }
  for (const inventory::NicFunction& function : inventory.functions) {
    const auto pf = pfs.find(function.pf);
    if (pf != pfs.end()) nic_of_function_.emplace_back(function.address, pf->second);
  }
  std::ranges::sort(nic_of_function_);
  return {};
}

void Topology::Compare() {
  nic_to_accelerator_ = Table(nics_, accelerators_);
  nic_to_nic_ = Table(nics_, nics_);
  accelerator_to_accelerator_ = Table(accelerators_, accelerators_);
  overridden_.assign(nic_to_accelerator_.size(), false);
}

void Topology::Override(const TopologyConfig& config) {
  for (std::size_t i = 0; i < config.paths.size(); ++i) {
    const PathOverride& entry = config.paths[i];
    const std::string where = "/paths/" + std::to_string(i);
    const auto nic = NicIndex(entry.nic);
    const auto accelerator = AcceleratorIndex(entry.accelerator);
    if (!nic) {
      notes_.push_back(where + "/nic: this node has no network function " + entry.nic.ToString());
    } else if (nics_[*nic].address != entry.nic) {
      notes_.push_back(where + "/nic: " + entry.nic.ToString() + " is a VF; the path of its PF " +
                       nics_[*nic].address.ToString() + " counts");
    } else if (!accelerator) {
      notes_.push_back(where + "/accelerator: this node has no accelerator " + entry.accelerator.ToString());
    } else {
      const std::size_t at = *nic * accelerators_.size() + *accelerator;
      nic_to_accelerator_[at] = entry.path;
      overridden_[at] = true;
    }
  }
  for (const auto& [id, address] : config.accelerators.ids) {
    if (!AcceleratorIndex(address))
      notes_.push_back("/accelerators/ids/" + id + ": this node has no accelerator " + address.ToString());
  }
}

std::optional<std::size_t> Topology::NicIndex(const PciAddress& function) const {
  const auto found = std::ranges::lower_bound(nic_of_function_, function, {},
                                              &decltype(nic_of_function_)::value_type::first);
  if (found == nic_of_function_.end() || found->first != function) return std::nullopt;
  return found->second;
}

std::optional<std::size_t> Topology::AcceleratorIndex(const PciAddress& address) const {
  const auto found = std::ranges::lower_bound(accelerators_, address, {}, &Accelerator::address);
  if (found == accelerators_.end() || found->address != address) return std::nullopt;
  return static_cast<std::size_t>(found - accelerators_.begin());
}

std::optional<PciPath> Topology::Between(const PciAddress& function, const PciAddress& accelerator) const {
  const auto nic = NicIndex(function);
  const auto to = AcceleratorIndex(accelerator);
  if (!nic || !to) return std::nullopt;
  return NicToAccelerator(*nic, *to);
}

AcceleratorIds IdsOf(const Root& root, const Topology& topology, const TopologyConfig& config,
                     AcceleratorIds::UuidLookup beyond_proc) {
  return {root, topology.accelerators(), config.accelerators.ids, std::move(beyond_proc)};
}

AcceleratorIds::UuidLookup UuidsOfDriver(const Root& root) {
  if (!root.prefix().empty()) return {};
  return Remembering([root](const std::string& uuid) {
    const auto own = ReadLink("/proc/self/exe").value_or(std::nullopt);
    const auto program = FindNvmlProgram(root, own.value_or(""));
    return program ? FindByNvml(uuid, *program) : std::nullopt;
  });
}

}  // namespace railhead::topology
