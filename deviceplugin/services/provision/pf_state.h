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
#include "netns/nl/uevents.h"
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

// The writes to sysfs that make, bind and unbind VFs, and the waits for their effects.
//
// SysfsControl uses the kernel; tests have one that plays the kernel.
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
  // Offers an unbound function to the drivers. If no driver takes it, that is not an error.
  virtual Result<void> Probe(const PciAddress& function) = 0;
  // Returns when the kernel has reported a device since the last call, or some time has passed. The kernel
  // reports nothing for devices in another namespace, or when the queue is full. false: the deadline is over.
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
  std::optional<Uevents> events_;  // nullopt: this process cannot receive them
};

// The MAC that a VF gets by the policy "derived". It does not depend on the node's other hardware, so
// switches, neighbours and DHCP recognize it after a reboot.
//
//   byte 0      H H H H 0 0 1 0
//   byte 1      H H H H H H H H
//
//   bytes 2-4   the last three bytes of the PF's permanent MAC
//   byte 5      the VF's index
//
// The last two bits of byte 0: local, unicast. The 0 0 before them select the administratively assigned
// quadrant of IEEE 802c's SLAP, which other schemes may not claim. H: 12 bits of a hash of the PF's OUI
// (FNV-1a over its three bytes, 32 bits, folded by xor). No two VFs of PFs with one OUI share a MAC, since
// the index has a byte of its own. It is not added to the PF's MAC: the ports of one NIC have consecutive
// MACs, so their VFs would meet. PFs of different OUIs meet only where both the hash and the last three bytes
// are equal. Changing any of this changes the addresses of running fabrics. Threads: pure function.

// How many VFs of a PF have a derived MAC.
inline constexpr int kDerivedVfMacs = 256;

// `index` is in 0..kDerivedVfMacs - 1.
MacAddress DerivedVfMac(const MacAddress& pf, int index);

// The users of a PF's VFs, which must not be removed or changed while in use.
//
//   - A pod: the journal of attachments has the device, or kubelet's checkpoint has it for a pod that still
//     exists. Allocation records do not count: they outlive pods and boots, and kubelet's checkpoint shows
//     which are valid.
//
//   - Another network namespace: a kernel driver is bound, and the host has no netdev of the VF.
//
//   - User space: a process has vfio's character device open.
//
//   - The host: address, default route, bond, bridge, VLAN (RefuseIfHostUses).
//
// Threads: as RouteApi. Errors: only where the host could not be asked. An unclear state of a device counts
// as use.

struct VfUse {
  int vf = 0;
  std::string device;
  std::string why;   // "is in pod team/train-0 (container 1f2e...) as rail0"
  std::string hint;  // how it becomes free
};

// Of the present VFs, in the order of their index.
Result<std::vector<VfUse>> FindVfUses(const Root& root, RouteApi& host, const PfActual& pf);

// The host's use of the PF itself, or the pod that has it. nullopt: none.
Result<std::optional<Error>> FindPfUse(const Root& root, RouteApi& host, const PfActual& pf);

}  // namespace railhead::provision
