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
#include <string>
#include <string_view>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/node/resources/selector.h"
#include "netns/base/result.h"

namespace railhead::resources {

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

}  // namespace railhead::resources
