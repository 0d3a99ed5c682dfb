// ResourcePool: one extended resource and the devices that kubelet may give out under its name.
//
// A ResourceSpec comes from the configuration (fabric.json, sriovdp_config.h). BuildPools() applies specs to
// an inventory. A device is in the first pool that selects it. Never in any pool: a function that the
// host itself uses, and one without a driver. A network function with a user-space driver (vfio-pci, uio)
// is in a pool only if a selector names that driver.
//
// A PF that has VFs is in a pool only if a selector names the PF (Selector::Names). Also, no selector of any
// resource may take one of its VFs or subfunctions, and the host may use none of these.
// Threads: values, immutable once built.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/node/inventory/inventory.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::resources {

// Selector: which network functions belong to a resource.
//
// The keys are sriov-network-device-plugin's: every given key must match, by any one of its values. A
// fabric's rails are expressed in the same way, as root devices. A selector also says what its devices come
// with (RDMA nodes, vhost-net, a vDPA device). Threads: value.

// "pf0", "pf0#2" or "pf0#0,2-7": a PF by netdev name or address, and which of its VFs.
struct PfRange {
  std::string pf;
  // Both ends included; empty: all VFs, and the PF itself.
  std::vector<std::pair<int, int>> vfs;

  static Result<PfRange> Parse(std::string_view text);
  [[nodiscard]] bool HasVf(int index) const;
  bool operator==(const PfRange&) const = default;
};

struct Selector {
  std::vector<std::uint16_t> vendors;
  std::vector<std::uint16_t> devices;
  std::vector<std::string> drivers;
  std::vector<PciAddress> pci_addresses;
  std::vector<PfRange> pf_names;      // compared without regard to case
  std::vector<PfRange> root_devices;  // PCI addresses, lower case
  std::vector<std::string> link_types;
  std::vector<std::uint32_t> acpi_indexes;
  std::vector<std::string> aux_types;  // "sf"
  std::vector<std::string> ddp_profiles;
  std::vector<std::uint16_t> pkeys;
  inventory::VdpaType vdpa = inventory::VdpaType::kNone;  // kNone: no matter
  std::optional<bool> is_rdma;  // only true selects: false means "no matter", as it does there
  std::optional<bool> is_vf;
  bool need_vhost_net = false;  // selects nothing: adds /dev/vhost-net and /dev/net/tun

  // The first key, in that program's order and spelling, that the function does not meet; nullptr: it meets
  // all.
  [[nodiscard]] const char* FirstUnmet(const inventory::NicFunction& function) const;
  [[nodiscard]] bool Matches(const inventory::NicFunction& function) const {
    return FirstUnmet(function) == nullptr;
  }
  // Whether it means just this PF: by address, or by name without a range of VFs.
  [[nodiscard]] bool Names(const inventory::NicFunction& pf) const;
};

// Which RDMA device nodes Allocate itself gives to containers, besides rdma_cm.
enum class RdmaNodes : std::uint8_t {
  kNone,   // none: they come with the CDI spec that ADD writes, or the pool has no RDMA
  kVerbs,  // uverbsN
  kAll,    // uverbsN, umadN, issmN, as sriov-network-device-plugin does
};

struct ResourceSpec {
  std::string resource;  // "railhead.io/roce"
  inventory::FunctionKind kind = inventory::FunctionKind::kNetwork;
  std::vector<Selector> selectors;  // any of them; none: no device (a rail that this node lacks)
  NcclConfigPolicy nccl_config = NcclConfigPolicy::kOff;
  DeviceNodeMode device_nodes = DeviceNodeMode::kMount;
  RdmaNodes rdma_nodes = RdmaNodes::kNone;  // kAll: for devices of selectors with isRdma
  bool cdi_nodes = false;                   // Allocate's device nodes come by a CDI spec
  bool exclude_topology = false;
  bool late = false;  // kubelet gets slots, which ADD binds to devices
  // Further key-value pairs of the ..._INFO variable, by device id, by the PCI address of a subfunction's PF,
  // or by "*".
  std::map<std::string, std::map<std::string, std::string>> additional_info;
  // Rank of the rail on a PF, by the PF's address. Other PFs rank behind, in PCI order.
  std::map<std::string, int> rails;
  // Name of the rail on a PF, likewise; none for resources of a config.json.
  std::map<std::string, std::string> rail_names;
};

struct PoolMember {
  inventory::NicFunction function;
  int rail = 0;              // members with the same number share a rail
  std::size_t selector = 0;  // index of the spec's selector that has taken it

  static void List(auto& f) {
    f.Part(&PoolMember::function);
    f("rail", &PoolMember::rail);
  }
};

struct ResourcePool {
  ResourceSpec spec;
  std::vector<PoolMember> members;  // sorted by device id

  [[nodiscard]] const PoolMember* Find(std::string_view id) const;

  static void List(auto& f) {
    f.Part(&ResourcePool::spec, [](auto& part) {
      part("resource", &ResourceSpec::resource);
      part("ncclConfig", &ResourceSpec::nccl_config);
      part("deviceNodes", &ResourceSpec::device_nodes);
    });
    f("devices", &ResourcePool::members);
  }
};

std::vector<std::shared_ptr<const ResourcePool>> BuildPools(const std::vector<ResourceSpec>& specs,
                                                            const inventory::Inventory& inventory);

struct Exclusion {
  std::string because;    // "is a PF with VFs, ...", "is selected by no resource (a.b/c: pfNames)"
  bool selected = false;  // some resource lacks it: it is selected, and cannot be given out
};

// Why a function is in none of `pools`, which BuildPools() made from `inventory`.
Exclusion WhyInNoPool(const std::vector<std::shared_ptr<const ResourcePool>>& pools,
                      const inventory::Inventory& inventory, const inventory::NicFunction& function);

// Checks kubelet's rules for an extended resource's name: "domain/name", both made of the characters that
// Kubernetes allows, not in kubernetes.io.
Result<void> CheckResourceName(const std::string& resource);

// Slots: what kubelet gets from a pool with late binding, in place of devices.
//
// kubelet must choose before the pod's accelerators are known. So it chooses among slots, and ADD binds each
// to a device. There are as many slots as devices, named slot-HASH-nNODE-NN after the resource and the NUMA
// node that they begin with.
//
// Each slot is always paired with one device. A bound slot is paired with its own device. The others get the
// remaining devices, those of the node in their name first. For kubelet a slot has its device's NUMA node and
// health. So free slots per node are free devices per node, also if a slot was bound across nodes. Threads:
// pure functions; ReadBoundSlots reads the journal.

using BoundSlots = std::map<std::string, std::string>;  // slot -> device id

// The slots of attached pods, from their journal entries.
BoundSlots ReadBoundSlots(const Root& root);

// The pool as kubelet sees it: its members have the slots' ids. In all other fields they are the devices that
// they are paired with (`function.address` is still the device's).
std::shared_ptr<const ResourcePool> SlotPool(const ResourcePool& devices, const BoundSlots& bound);

}  // namespace railhead::resources
