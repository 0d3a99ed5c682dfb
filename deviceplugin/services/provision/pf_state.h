// A PF and its VFs in their present state, which provisioning compares with the settings.
//
// Each call reads sysfs and the host's rtnetlink; a snapshot. Attributes:
// Documentation/ABI/testing/sysfs-bus-pci (sriov_totalvfs, sriov_numvfs, sriov_drivers_autoprobe,
// driver_override).
// Threads: as RouteApi. Errors: kIo, kConflict for a value that the kernel never writes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"
#include "netns/nl/link.h"
#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"

namespace railhead::provision {

struct VfActual {
  int index = 0;
  PciAddress address;
  std::string driver;        // "": unbound
  std::optional<Link> link;  // on the host; nullopt: no netdev there
  // On the host: its netdev's MAC. In a pod: the MAC that it gets when it is restored, from its journal
  // entry. Otherwise: the MAC that was set through its PF (zero: none). nullopt: not asked, or unknown.
  std::optional<MacAddress> mac;
};

struct PfActual {
  PciAddress address;
  std::string rail;
  std::string driver;
  int total_vfs = 0;
  // nullopt: the kernel is older than 4.12 and always binds.
  std::optional<bool> autoprobe;
  std::optional<Link> link;   // on the host
  std::vector<VfActual> vfs;  // in the order of their index
  // A provisioner was killed while it made these VFs: they may lack anything.
  bool interrupted = false;
  // How many VFs existed before that. nullopt: not interrupted, or unknown.
  std::optional<int> vfs_before;

  // "PF pf0 (0000:43:00.0)"
  [[nodiscard]] std::string Name() const;
};

// The host's links. A PF's representors in switchdev mode belong to the same PCI function, so the PF's own
// link is found by its name.
using LinksByName = std::map<std::string, Link>;
Result<LinksByName> ReadHostLinks(RouteApi& host);

// `links`: an earlier dump; a link that it lacks is asked for. `ask_pf`: also reads the MACs that only the PF
// knows. That is one question per VF without a netdev on the host, which some firmware answers slowly.
Result<PfActual> ReadPf(const Root& root, RouteApi& host, const LinksByName& links, const PciDevice& pf,
                        const std::string& rail, bool ask_pf);

// The function's netdev on the host, a PF's own; nullopt: none. The name comes from sysfs. If udev has just
// renamed the netdev, the name is read again.
Result<std::optional<Link>> HostLinkOf(const Root& root, RouteApi& host, const PciAddress& function);

// While a PF's VFs are being made, a file has the state before. A killed run may end with another number of
// VFs, with VFs without driver or MAC, and with autoprobe off.
struct BeforeChange {
  bool autoprobe = true;  // sriov_drivers_autoprobe
  int vfs = 0;
};
Result<void> MarkUnderWay(const Root& root, const PciAddress& pf, const BeforeChange& before);
Result<void> RemoveUnderWay(const Root& root, const PciAddress& pf);

}  // namespace railhead::provision
