// Selector: which network functions belong to a resource.
//
// The words are sriov-network-device-plugin's: every key that is given must match,
// within a key any one value does. A fabric's rails are expressed in the same way,
// as root devices. Threads: value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deviceplugin/pools/inventory.h"
#include "netns/base/result.h"

namespace railhead {

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
  std::optional<bool> is_rdma;  // only true selects: false means "no matter", as it does there
  std::optional<bool> is_vf;

  [[nodiscard]] bool Matches(const NicFunction& function) const;
};

}  // namespace railhead
