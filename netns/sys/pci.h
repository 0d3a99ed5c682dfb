// PCI network functions as sysfs shows them: PFs, VFs, drivers, NUMA nodes.
//
// All functions read below /sys of `root` at each call and keep nothing, so the result is a snapshot. An
// absent PCI function is nullopt or an empty list. An Error means that sysfs could not be read or holds
// something that the kernel never writes. Attributes: Documentation/ABI/testing/sysfs-bus-pci.
// Threads: thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/sys/pci_address.h"

namespace railhead {

struct PciDevice {
  PciAddress address;
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::uint32_t class_code = 0;       // 24 bits: 0x020000 is an Ethernet controller
  std::optional<std::string> driver;  // nullopt: unbound
  std::optional<int> numa_node;       // nullopt: the kernel says -1, no affinity known
  bool is_vf = false;
  std::optional<PciAddress> physfn;  // of a VF: its PF
  std::optional<int> vf_index;       // of a VF: the N of its PF's virtfnN
  int sriov_totalvfs = 0;            // 0: no SR-IOV capability
  std::string path;  // "/sys/devices/pci0000:40/0000:40:01.0/0000:43:00.0", without the root's prefix

  [[nodiscard]] bool IsNetwork() const { return (class_code >> 16) == 0x02; }
  bool operator==(const PciDevice&) const = default;
};

// Reads everything but vf_index, which would need a search through all VFs of the PF.
Result<std::optional<PciDevice>> ReadPciFunction(const Root& root, const PciAddress& address);
Result<std::optional<PciDevice>> FindPciDevice(const Root& root, const PciAddress& address);

// The number of VFs that was set for `pf`; 0 without SR-IOV. This waits while its driver is bound, or
// makes or removes VFs: the attribute takes the device's lock (sriov_numvfs_show in drivers/pci/iov.c).
Result<int> NumVfsOf(const Root& root, const PciAddress& pf);

// VFs of `pf` in the order of their index: element N is virtfnN. Empty for a
// function without VFs and for one that does not exist.
Result<std::vector<PciAddress>> VfsOf(const Root& root, const PciAddress& pf);

// The VFs of `pf` with all their facts, in the order of their index. Cheaper than FindPciDevice for each,
// which has to search for the index every time. With `unreadable`, an unreadable VF is omitted, and its error
// goes there.
Result<std::vector<PciDevice>> ReadVfs(const Root& root, const PciAddress& pf,
                                       std::map<PciAddress, Error>* unreadable = nullptr);

// Network controllers (class 02) that are not VFs, in PCI order.
Result<std::vector<PciDevice>> ListNetworkPfs(const Root& root);

// Those of them that can carry a rail: with an RDMA device or with SR-IOV. A
// position in fabric.json ("pf": 1) counts in this list.
Result<std::vector<PciDevice>> ListRailPfs(const Root& root);

// Names of the function's network devices *in the namespace of the reader*, whose view of sysfs is filtered.
// Empty when the device is in a pod, and when no driver is bound. Sorted; in switchdev mode a PF lists its
// representors too.
Result<std::vector<std::string>> NetdevsOf(const Root& root, const PciAddress& address);

// Those of them that are the function's own: without representors of other functions and subfunctions, which
// phys_port_name tells. One for each of its ports, in the order of dev_port.
Result<std::vector<std::string>> OwnNetdevsOf(const Root& root, const PciAddress& address);

// The PF's own network device, of its first port; nullopt when it has none in this namespace.
Result<std::optional<std::string>> UplinkNetdev(const Root& root, const PciAddress& pf);

// Names of the function's RDMA devices, sorted. In shared mode they are visible
// wherever they are used; in exclusive mode only in the reader's namespace. Soft
// RoCE devices hang below no PCI function: see RxeDevicesOf in rdma_sysfs.h.
Result<std::vector<std::string>> RdmaDevicesOf(const Root& root, const PciAddress& address);

// The PCI function of a network device in the reader's namespace: directly, or through a virtio or auxiliary
// device. Returns nullopt for absent devices, and for those not on PCI.
Result<std::optional<PciAddress>> PciAddressOfNetdev(const Root& root, const std::string& netdev);

// Unbinds the function from its driver and binds it again: only so does igbvf take a MAC that its PF has set.
// Network and RDMA devices are new afterwards (ifindex, perhaps name). kNotFound without function or driver.
// When binding fails the function stays unbound; the hint then says how to bind it by hand.
Result<void> RebindDriver(const Root& root, const PciAddress& address);

// Binds an unbound function to `driver` (its name below /sys/bus/pci/drivers).
Result<void> BindDriver(const Root& root, const PciAddress& address, const std::string& driver);

// Resets the function itself: a program's settings on it are gone, its configuration space is as before.
// Error kUnsupported: the kernel knows no way to do it (no attribute `reset`).
Result<void> ResetFunction(const Root& root, const PciAddress& address);

}  // namespace railhead
