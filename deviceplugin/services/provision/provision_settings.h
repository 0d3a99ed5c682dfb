// What fabric.json's object "provision" says that this node's PFs shall be.
//
// Settings hold for the PF of every rail; "rails" overrides some of them for one. The
// shape is documented in docs/provisioning.md. Whether the hardware can do it is not
// known here.
// Threads: plain values. Errors: kInvalid and kMalformed with the JSON pointer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "netns/base/result.h"

namespace railhead {

enum class MacPolicy : std::uint8_t {
  kKeep,     // as driver and firmware make them
  kDerived,  // DerivedVfMac()
};

struct PfSettings {
  std::optional<int> vfs;  // nullopt: as many as there are
  bool all_vfs = false;    // as many as the PF can have; then `vfs` is not given
  std::optional<int> mtu;  // at least this
  MacPolicy mac = MacPolicy::kKeep;
  std::string driver;         // below /sys/bus/pci/drivers; "": the kernel's choice
  bool allow_bonded = false;  // make VFs also on a PF that is a port of a bond of the host

  bool operator==(const PfSettings&) const = default;
};

struct ProvisionSettings {
  bool at_start = true;  // railheadd applies them when it starts
  PfSettings all;
  std::map<std::string, PfSettings> rails;  // complete: what a rail does not override is as in `all`

  [[nodiscard]] const PfSettings& Of(const std::string& rail) const {
    const auto found = rails.find(rail);
    return found == rails.end() ? all : found->second;
  }
};

// nullopt: the fabric has no such object. `what` names the fabric's file in errors, of which
// the result has the first and `all` gets all.
Result<std::optional<ProvisionSettings>> ReadProvisionSettings(const Fabric& fabric, const std::string& what,
                                                               std::vector<Error>* all = nullptr);

}  // namespace railhead
