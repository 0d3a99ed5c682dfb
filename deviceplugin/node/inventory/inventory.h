// Inventory: the network functions of this node at one moment. It also has the accelerators and auxiliary
// network devices (subfunctions) that configurations of sriov-network-device-plugin may name.
//
// Discover() makes it from sysfs and from the network devices that the host itself uses. It never changes
// afterwards, and all callers that answer kubelet share it. The journal and railheadd's memory of PFs
// complete what a PF in a pod does not show. Threads: Discover() is thread-safe, an Inventory is immutable.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/support/service/probe_workers.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/record.h"
#include "netns/sys/pci_address.h"

namespace railhead {
class RouteApi;
}  // namespace railhead

namespace railhead::inventory {

// The network devices that the node itself uses (netns/nl/host_use.h). ADD refuses to move them, since the
// kernel drops addresses, rules and routes with the move.
struct HostNetwork {
  std::map<std::string, std::string> netdevs;  // why: "carries the host's default route"
};

// Asks the kernel, and the host's network managers by their files.
Result<HostNetwork> ReadHostNetwork(const Root& root, RouteApi& route_api);

enum class FunctionKind : std::uint8_t {
  kNetwork,      // PCI class 02
  kAccelerator,  // PCI class 12
  kAuxiliary,    // a subfunction: a network device on the auxiliary bus, below a PCI function
};

enum class VdpaType : std::uint8_t { kNone, kVhost, kVirtio };

struct NicFunction {
  PciAddress address;  // of an auxiliary device: of the PCI function above it
  std::string id;      // kubelet's device id: the address as text, or "mlx5_core.sf.2"
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::string driver;  // "" when unbound; of an auxiliary device: its PCI function's
  std::optional<int> numa_node;

  FunctionKind kind = FunctionKind::kNetwork;
  bool is_vf = false;
  int vf_index = -1;    // -1: a PF; of a subfunction its sfnum
  PciAddress pf;        // a PF's own address for PFs
  std::string pf_name;  // the PF's network device, also while it is in a pod; "" unknown
  int vf_count = 0;     // of a PF: those that are on the bus
  int numvfs = 0;       // of a PF: sriov_numvfs

  // RDMA device's name; "" without one, or while it is in a pod (exclusive mode).
  std::string rdma_device;
  // Has an RDMA device, or is in a pod and belongs to a PF that has one.
  bool is_rdma = false;
  // "ether" or "infiniband", from the network device, else from the RDMA port. From the PF if the function is
  // in a pod or has a user-space driver. "": unknown.
  std::string link_type;
  std::optional<std::uint16_t> pkey;        // InfiniBand only: port 1, index 0
  std::optional<std::uint32_t> acpi_index;  // firmware's number of the function
  VdpaType vdpa = VdpaType::kNone;          // of the vDPA device on it
  std::string ddp_profile;                  // package that the PF runs; only if a selector needs it
  // Has more than one interface of its own (OwnNetdevsOf), which ADD refuses: never advertised.
  bool several_ports = false;
  // Why the host itself needs it, with the network device that shows it: "carries the host's default route
  // (bond0)". Such a function is never advertised. "": the host does not.
  std::string host_use;

  bool operator==(const NicFunction&) const = default;

  static void List(auto& f) {
    f("id", &NicFunction::id);
    f.Output("pf", [](const NicFunction& function) { return function.pf.ToString(); });
    f("pfName", &NicFunction::pf_name);
    f.Output(
        "vf",
        [](const NicFunction& function) {
          return function.is_vf ? std::optional(function.vf_index) : std::nullopt;
        },
        kNullField);
    f("numa", &NicFunction::numa_node, kNullField);
    f("driver", &NicFunction::driver);
    f("rdmaDevice", &NicFunction::rdma_device);
  }
};

struct Inventory {
  // PFs in PCI order, each followed by its VFs in the order of their index.
  std::vector<NicFunction> functions;
  std::vector<NicFunction> accelerators;  // in PCI order
  std::vector<NicFunction> auxiliaries;   // sorted by id
  // Addresses of the PFs that can carry a rail, in PCI order. A position in fabric.json counts these.
  std::vector<std::string> rail_pfs;
  // Functions that are omitted, since sysfs could not be read for them.
  std::map<PciAddress, Error> unreadable;

  // Of all three lists: the devices that a pool may give out.
  [[nodiscard]] std::vector<NicFunction> All() const;
  [[nodiscard]] const NicFunction* Find(const std::string& id) const;
  [[nodiscard]] const std::vector<NicFunction>& Of(FunctionKind kind) const {
    if (kind == FunctionKind::kAccelerator) return accelerators;
    return kind == FunctionKind::kAuxiliary ? auxiliaries : functions;
  }
};

// How a discovery reads what firmware answers.
struct PfReads {
  ProbeWorkers* workers = nullptr;          // borrowed; nullptr: reads take as long as they take
  std::shared_ptr<const Inventory> before;  // a PF that does not answer stays as it was here; may be nullptr
};

Result<std::shared_ptr<const Inventory>> Discover(const Root& root, const HostNetwork& host,
                                                  const PfReads& reads = {});

}  // namespace railhead::inventory
