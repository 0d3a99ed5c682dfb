#include "deviceplugin/services/provision/vf_control.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "netns/base/files.h"

namespace railhead::provision {
namespace {

// The interval for changes that the kernel does not report.
constexpr std::chrono::milliseconds kLookAgain{100};

}  // namespace

SysfsControl::SysfsControl(Root root) : root_(std::move(root)) {
  if (auto events = Uevents::Open(); events) events_ = std::move(*events);
}

std::string SysfsControl::Attribute(const PciAddress& function, const char* name) const {
  return root_.Path("/sys/bus/pci/devices/") + function.ToString() + "/" + name;
}

Result<void> SysfsControl::SetVfCount(const PciAddress& pf, int count) {
  return WriteAttribute(Attribute(pf, "sriov_numvfs"), std::to_string(count));
}

Result<void> SysfsControl::SetAutoprobe(const PciAddress& pf, bool on) {
  return WriteAttribute(Attribute(pf, "sriov_drivers_autoprobe"), on ? "1" : "0");
}

Result<void> SysfsControl::SetDriverOverride(const PciAddress& function, const std::string& driver) {
  // Only a newline clears it (driver_set_override in drivers/base/driver.c).
  return WriteAttribute(Attribute(function, "driver_override"), driver + "\n");
}

Result<void> SysfsControl::Unbind(const PciAddress& function, const std::string& driver) {
  return WriteAttribute(root_.Path("/sys/bus/pci/drivers/") + driver + "/unbind", function.ToString());
}

Result<void> SysfsControl::Probe(const PciAddress& function) {
  return WriteAttribute(root_.Path("/sys/bus/pci/drivers_probe"), function.ToString());
}

bool SysfsControl::AwaitChange(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  if (left.count() <= 0) return false;
  pollfd waiting{events_ ? events_->fd() : -1, POLLIN, 0};
  (void)::poll(&waiting, 1, static_cast<int>(std::min(left, kLookAgain).count()));
  if (events_) (void)events_->TakeRelevant();
  return true;
}

}  // namespace railhead::provision
