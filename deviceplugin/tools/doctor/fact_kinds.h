// Which facts are read: what a check looks at it names, and only that is read.
//
// The node's name and fabric.json are read always. What is not read is a Fact that was not asked for.
// Threads: values.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace railhead::doctor {

enum class FactKind : std::uint8_t {
  kPfs,           // which there are, their VFs, their RDMA devices
  kPorts,         // of PfFacts, here and below: port
  kGids,          // gids
  kFirmware,      // firmware, driver_version
  kSriovControl,  // sriov_control
  kIommu,         // iommu, of accelerators too
  kMtu,           // mtu
  kArp,           // arp
  kDcb,           // dcb
  kEcn,           // ecn
  kVfStates,      // vf_states
  kAccelerators,  // of NodeFacts, here and below: accelerators
  kBridges,       // bridges
  kRdmaMode,      // rdma_exclusive
  kRdmaDevices,   // rdma_functions
  kRdmaOrder,     // rdma_order
  kProcesses,     // runtimes, other_namespaces
  kCdi,           // cdi
  kSockets,       // plugin_sockets
  kCni,           // cni
  kGpuDriver,     // gpu
  kModules,       // verbs, rdma_cm, rxe
  kLeaves,        // leaves
  kRecords,       // records
  kKubelet,       // kubelet
  kNetns,         // hidden_netns
  kProbes,        // probes_signed
  kCount
};

class FactKinds {
 public:
  constexpr FactKinds() = default;
  constexpr FactKinds(std::initializer_list<FactKind> kinds) {
    for (const FactKind kind : kinds) bits_ |= Bit(kind);
  }
  static constexpr FactKinds All() {
    FactKinds all;
    all.bits_ = Bit(FactKind::kCount) - 1;
    return all;
  }

  [[nodiscard]] constexpr bool Has(FactKind kind) const { return (bits_ & Bit(kind)) != 0; }
  // With those of `other`.
  constexpr FactKinds& Add(FactKinds other) {
    bits_ |= other.bits_;
    return *this;
  }
  // With what has to be read before them.
  [[nodiscard]] FactKinds WithTheirOwn() const;

 private:
  static constexpr std::uint32_t Bit(FactKind kind) {
    return std::uint32_t{1} << static_cast<std::uint32_t>(kind);
  }

  std::uint32_t bits_ = 0;
};

}  // namespace railhead::doctor
