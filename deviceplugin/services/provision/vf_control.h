// The writes to sysfs that make, bind and unbind VFs, and waiting for what follows.
//
// SysfsControl is the kernel's; tests have one that plays the kernel.
// Source: Documentation/ABI/testing/sysfs-bus-pci, drivers/pci/iov.c, drivers/pci/pci-driver.c
// (pci_device_can_probe), drivers/base/bus.c (drivers_probe_store).
// Threads: one at a time. Errors carry errno: the kernel's answer to the write.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "netns/base/addresses.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/kernel.h"
#include "netns/nl/uevents.h"
#include "netns/sys/pci_address.h"

namespace railhead {

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

}  // namespace railhead
