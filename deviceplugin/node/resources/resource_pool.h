// ResourcePool: one extended resource and the devices that kubelet may give out
// under its name.
//
// A ResourceSpec comes from the configuration (fabric_pools.h, sriovdp_config.h);
// BuildPools() applies specs to an inventory. A device is in the first pool that
// selects it. Never in any pool: a function that carries the host's own network, one
// that is bound to no driver. A network function with a user-space driver (vfio-pci,
// uio) only where a selector names that driver. A PF that has VFs only where a selector
// names the PF (Selector::Names), and no selector of any resource takes one of its VFs
// or subfunctions, and none of these carries the host's own network.
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

namespace railhead {

// Which RDMA device nodes Allocate itself gives to containers, besides rdma_cm.
enum class RdmaNodes : std::uint8_t {
  kNone,   // none: they come with the CDI spec that ADD writes, or the pool has no RDMA
  kVerbs,  // uverbsN
  kAll,    // uverbsN, umadN, issmN, as sriov-network-device-plugin does
};

struct ResourceSpec {
  std::string resource;  // "railhead.io/roce"
  FunctionKind kind = FunctionKind::kNetwork;
  std::vector<Selector> selectors;  // any of them; none: no device (a rail that this node lacks)
  HandoffPolicy handoff = HandoffPolicy::kOff;
  Delivery delivery = Delivery::kMount;
  RdmaNodes rdma_nodes = RdmaNodes::kNone;  // kAll: for devices of selectors with isRdma
  bool cdi_nodes = false;                   // Allocate's device nodes come by a CDI spec (cdi_grant.h)
  bool exclude_topology = false;
  bool late = false;  // kubelet gets slots (slots.h), which ADD binds to devices
  // By device id, the PCI address of a subfunction's PF, or "*": further key-value pairs
  // of the ..._INFO variable.
  std::map<std::string, std::map<std::string, std::string>> additional_info;
  // Rank of the rail on a PF, by the PF's address; PFs that are not there rank
  // behind, in PCI order.
  std::map<std::string, int> rails;
  // Name of the rail on a PF, likewise; none for resources of a config.json.
  std::map<std::string, std::string> rail_names;
};

struct PoolMember {
  NicFunction function;
  int rail = 0;              // members with the same number share a rail
  std::size_t selector = 0;  // index of the spec's selector that has taken it
};

struct ResourcePool {
  ResourceSpec spec;
  std::vector<PoolMember> members;  // sorted by device id

  [[nodiscard]] const PoolMember* Find(std::string_view id) const;
};

std::vector<std::shared_ptr<const ResourcePool>> BuildPools(const std::vector<ResourceSpec>& specs,
                                                            const Inventory& inventory);

// Why a function is in none of `pools`, which BuildPools() made of `inventory`:
// "is a PF with VFs, ...", "is selected by no resource (a.b/c: pfNames)".
std::string WhyInNoPool(const std::vector<std::shared_ptr<const ResourcePool>>& pools,
                        const Inventory& inventory, const NicFunction& function);

// What kubelet asks of an extended resource's name: "domain/name", both made of the
// characters that Kubernetes allows, not in kubernetes.io.
Result<void> CheckResourceName(const std::string& resource);

}  // namespace railhead
