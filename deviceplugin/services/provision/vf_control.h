// The writes to sysfs that make, bind and unbind VFs, and the waits for their effects.
//
// SysfsControl uses the kernel; tests have one that plays the kernel.
// Source: Documentation/ABI/testing/sysfs-bus-pci, drivers/pci/iov.c, drivers/pci/pci-driver.c
// (pci_device_can_probe), drivers/base/bus.c (drivers_probe_store).
// Threads: one at a time. Errors carry errno: the kernel's answer to the write.
#pragma once

#include <optional>
#include <string>

#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"
#include "netns/nl/uevents.h"
#include "netns/sys/pci_address.h"

namespace railhead::provision {

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

}  // namespace railhead::provision
