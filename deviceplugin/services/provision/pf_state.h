// A PF and its VFs as they are: what provisioning compares with the settings.
//
// Read from sysfs and the host's rtnetlink at each call; a snapshot. Attributes:
// Documentation/ABI/testing/sysfs-bus-pci (sriov_totalvfs, sriov_numvfs,
// sriov_drivers_autoprobe, driver_override).
// Threads: as RouteApi. Errors: kIo, kConflict for what the kernel never writes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/kernel.h"
#include "netns/nl/link.h"
#include "netns/nl/uevents.h"
#include "netns/sys/pci.h"

namespace railhead::provision {

struct VfActual {
  int index = 0;
  PciAddress address;
  std::string driver;        // "": unbound
  std::optional<Link> link;  // on the host; nullopt: no netdev there
  // Its netdev's on the host; in a pod: what it has when it is restored, as its journal entry
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

// The writes to sysfs that make, bind and unbind VFs, and waiting for what follows.
//
// SysfsControl is the kernel's; tests have one that plays the kernel.
// Source: Documentation/ABI/testing/sysfs-bus-pci, drivers/pci/iov.c, drivers/pci/pci-driver.c
// (pci_device_can_probe), drivers/base/bus.c (drivers_probe_store).
// Threads: one at a time. Errors carry errno: the kernel's answer to the write.

class VfControl {
 public:
  VfControl() = default;
  VfControl(const VfControl&) = delete;
  VfControl& operator=(const VfControl&) = delete;
  virtual ~VfControl() = default;

  virtual Result<void> SetVfCount(const PciAddress& pf, int count) = 0;
  // Whether the kernel offers new VFs of the PF to their drivers.
  virtual Result<void> SetAutoprobe(const PciAddress& pf, bool on) = 0;
  // Only this driver may be bound to the function from now on, whatever its ids.
  virtual Result<void> SetDriverOverride(const PciAddress& function, const std::string& driver) = 0;
  virtual Result<void> Unbind(const PciAddress& function, const std::string& driver) = 0;
  // Offers an unbound function to the drivers. That none takes it is no error.
  virtual Result<void> Probe(const PciAddress& function) = 0;
  // Returns when the kernel told of a device since the last call, or some time has passed
  // (it tells of devices in another namespace, and a full queue, not at all); false: the
  // deadline is over.
  virtual bool AwaitChange(Deadline deadline) = 0;
};

class SysfsControl final : public VfControl {
 public:
  explicit SysfsControl(Root root);

  Result<void> SetVfCount(const PciAddress& pf, int count) override;
  Result<void> SetAutoprobe(const PciAddress& pf, bool on) override;
  Result<void> SetDriverOverride(const PciAddress& function, const std::string& driver) override;
  Result<void> Unbind(const PciAddress& function, const std::string& driver) override;
  Result<void> Probe(const PciAddress& function) override;
  bool AwaitChange(Deadline deadline) override;

 private:
  [[nodiscard]] std::string Attribute(const PciAddress& function, const char* name) const;

  Root root_;
  std::optional<Uevents> events_;  // nullopt: they cannot be heard here
};

// The MAC that a VF gets by the policy "derived": always the same, whatever the node's
// other hardware is, so that switches, neighbours and DHCP know it again after a reboot.
//
//   byte 0      H H H H 0 0 1 0    local, unicast; 0 0: administratively assigned (the
//   byte 1      H H H H H H H H    SLAP of IEEE 802c), so in no quadrant that others may claim
//   bytes 2-4   the last three bytes of the PF's permanent MAC
//   byte 5      the VF's index
//
// H: 12 bits of a hash of the PF's OUI (FNV-1a over its three bytes, 32 bits, folded by xor).
// No two VFs of PFs with one OUI share a MAC, for the index has a byte of its own: it is
// not added to the PF's MAC, with which the ports of one NIC (consecutive MACs) would meet.
// PFs of different OUIs meet only where both the hash and the last three bytes are equal.
// Changing any of this changes the addresses of running fabrics.
// Threads: pure function.

// How many VFs of a PF have a derived MAC.
inline constexpr int kDerivedVfMacs = 256;

// `index` is in 0..kDerivedVfMacs - 1.
MacAddress DerivedVfMac(const MacAddress& pf, int index);

// Who uses a PF's VFs, so that they must not be taken away or changed.
//
//   - a pod: the journal of attachments has the device, or kubelet's checkpoint has it for
//     a pod that still is. Allocation records are not asked: they outlive pods and boots,
//     kubelet's checkpoint says which of them are of use.
//   - another network namespace: a kernel driver is bound, and the host has no netdev of it
//   - user space: vfio's character device of it is open in some process
//   - the host: address, default route, bond, bridge, VLAN (RefuseIfHostUses)
//
// Threads: as RouteApi. Errors: only where the host could not be asked; whatever is
// unclear about a device counts as use.

struct VfUse {
  int vf = 0;
  std::string device;
  std::string why;   // "is in pod team/train-0 (container 1f2e...) as rail0"
  std::string hint;  // how it becomes free
};

// Of the VFs that are there; in the order of their index.
Result<std::vector<VfUse>> FindVfUses(const Root& root, RouteApi& host, const PfActual& pf);

// What the host does with the PF itself, or which pod has it; nullopt: nothing.
Result<std::optional<Error>> FindPfUse(const Root& root, RouteApi& host, const PfActual& pf);

}  // namespace railhead::provision
