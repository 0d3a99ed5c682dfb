// Topology: how near every NIC of this node is to every accelerator, at one moment.
//
// Made from sysfs once, and after each change of hardware or topology.json. Answers are then look-ups in a
// table. Accelerators are compared with each other by PCI alone: NVLink and the like are not visible here.
// Threads: immutable once read, shared by all callers that choose VFs.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/node/topology/accelerator_ids.h"
#include "deviceplugin/node/topology/topology_config.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/sys/accelerators.h"
#include "netns/sys/pci_address.h"
#include "netns/sys/pci_path.h"

namespace railhead::topology {

// A NIC is a PF, or a VF in a machine that does not have the PF. It stands for its VFs.
struct TopologyNic {
  PciAddress address;
  std::string netdev;       // "" when it has none in the host's namespace
  std::string rdma_device;  // "" when it has none here
  std::optional<int> numa_node;
  std::string path;  // PciDevice::path
};

class Topology {
 public:
  static Result<std::shared_ptr<const Topology>> Read(const Root& root, const inventory::Inventory& inventory,
                                                      const TopologyConfig& config);

  // Both in PCI order.
  [[nodiscard]] const std::vector<TopologyNic>& nics() const { return nics_; }
  [[nodiscard]] const std::vector<Accelerator>& accelerators() const { return accelerators_; }

  // By position in nics() and accelerators().
  [[nodiscard]] PciPath NicToAccelerator(std::size_t nic, std::size_t accelerator) const {
    return nic_to_accelerator_.at(nic * accelerators_.size() + accelerator);
  }
  [[nodiscard]] PciPath NicToNic(std::size_t a, std::size_t b) const {
    return nic_to_nic_.at(a * nics_.size() + b);
  }
  [[nodiscard]] PciPath AcceleratorToAccelerator(std::size_t a, std::size_t b) const {
    return accelerator_to_accelerator_.at(a * accelerators_.size() + b);
  }
  // Whether topology.json says so, not sysfs.
  [[nodiscard]] bool IsOverridden(std::size_t nic, std::size_t accelerator) const {
    return overridden_.at(nic * accelerators_.size() + accelerator);
  }

  // The position of a NIC, by its own address or by the address of one of its VFs.
  [[nodiscard]] std::optional<std::size_t> NicIndex(const PciAddress& function) const;
  [[nodiscard]] std::optional<std::size_t> AcceleratorIndex(const PciAddress& address) const;

  // NicToAccelerator by address; nullopt when the node lacks one of them.
  [[nodiscard]] std::optional<PciPath> Between(const PciAddress& function,
                                               const PciAddress& accelerator) const;

  // Entries of topology.json for functions that this node lacks: not an error, but perhaps a misspelt
  // address.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  Topology() = default;
  Result<void> ReadNics(const Root& root, const inventory::Inventory& inventory);
  void Compare();
  void Override(const TopologyConfig& config);

  std::vector<TopologyNic> nics_;
  std::vector<Accelerator> accelerators_;
  std::vector<std::pair<PciAddress, std::size_t>> nic_of_function_;  // sorted
  std::vector<PciPath> nic_to_accelerator_;
  std::vector<PciPath> nic_to_nic_;
  std::vector<PciPath> accelerator_to_accelerator_;
  std::vector<bool> overridden_;
  std::vector<std::string> notes_;
};

// The ids of the node's accelerators.
AcceleratorIds IdsOf(const Root& root, const Topology& topology, const TopologyConfig& config,
                     AcceleratorIds::UuidLookup beyond_proc = {});

// Finds UUIDs that /proc does not have: by NVML, on a real node only.
AcceleratorIds::UuidLookup UuidsOfDriver(const Root& root);

}  // namespace railhead::topology
