// Selector: which network functions belong to a resource.
//
// The keys are sriov-network-device-plugin's: every given key must match, by any one of its values. A
// fabric's rails are expressed in the same way, as root devices. A selector also says what its devices come
// with (RDMA nodes, vhost-net, a vDPA device). Threads: value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deviceplugin/node/inventory/inventory.h"
#include "netns/base/result.h"

namespace railhead::resources {

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

}  // namespace railhead::resources
