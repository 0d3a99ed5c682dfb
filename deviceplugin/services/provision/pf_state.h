// A PF and its VFs as they are: what provisioning compares with the settings.
//
// Read from sysfs and the host's rtnetlink at each call; a snapshot. Attributes:
// Documentation/ABI/testing/sysfs-bus-pci (sriov_totalvfs, sriov_numvfs,
// sriov_drivers_autoprobe, driver_override).
// Threads: as RouteApi. Errors: kIo, kConflict for what the kernel never writes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/kernel.h"
#include "netns/nl/link.h"
#include "netns/sys/pci.h"

namespace railhead {

struct VfActual {
  int index = 0;
  PciAddress address;
  std::string driver;        // "": unbound
  std::optional<Link> link;  // on the host; nullopt: no netdev there
  // Its netdev's on the host; in a pod: what it has when it comes home, as its journal entry
  // says; else what its PF was told (zero: nothing). nullopt: not asked, or nobody knows.
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
  // How many VFs there were before that; nullopt: it was not, or nobody knows.
  std::optional<int> vfs_before;

  // "PF pf0 (0000:43:00.0)"
  [[nodiscard]] std::string Name() const;
};

// The host's links by the PCI function that they hang on; in switchdev mode a PF's
// representors hang on it too, so a PF's own is told by its name.
using LinksByName = std::map<std::string, Link>;
Result<LinksByName> ReadHostLinks(RouteApi& host);

// `links`: of one dump, taken before; what is not in it is asked for. `ask_pf`: also for the MACs that only
// the PF knows: one question for each VF without netdev on the host, which some firmware answers slowly.
Result<PfActual> ReadPf(const Root& root, RouteApi& host, const LinksByName& links, const PciDevice& pf,
                        const std::string& rail, bool ask_pf);

// The function's netdev on the host, a PF's own; nullopt: none. Names come from sysfs and are
// asked for again where udev has given another one meanwhile.
Result<std::optional<Link>> HostLinkOf(const Root& root, RouteApi& host, const PciAddress& function);

// While a PF's VFs are being made a file says so, and what was before: who is killed in
// between leaves another number of VFs, VFs without driver or MAC, and autoprobe off.
struct BeforeChange {
  bool autoprobe = true;  // sriov_drivers_autoprobe
  int vfs = 0;
};
Result<void> MarkUnderWay(const Root& root, const PciAddress& pf, const BeforeChange& before);
Result<void> RemoveUnderWay(const Root& root, const PciAddress& pf);

}  // namespace railhead
