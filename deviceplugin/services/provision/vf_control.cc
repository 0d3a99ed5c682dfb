#include "deviceplugin/services/provision/vf_control.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

// What the kernel does not tell is seen after this.
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
  // The newline alone is what clears it (driver_set_override in drivers/base/driver.c).
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

namespace {

constexpr std::uint8_t kLocalUnicast = 0x02;

// 12 bits.
std::uint32_t HashOfOui(const MacAddress& mac) {
  const std::uint32_t hash = Fnv1a32({reinterpret_cast<const char*>(mac.bytes.data()), 3});
  return (hash ^ (hash >> 12) ^ (hash >> 24)) & 0xfffU;
}

}  // namespace

MacAddress DerivedVfMac(const MacAddress& pf, int index) {
  const std::uint32_t hash = HashOfOui(pf);
  MacAddress mac;
  mac.bytes[0] = static_cast<std::uint8_t>(((hash >> 8) << 4) | kLocalUnicast);
  mac.bytes[1] = static_cast<std::uint8_t>(hash & 0xffU);
  mac.bytes[2] = pf.bytes[3];
  mac.bytes[3] = pf.bytes[4];
  mac.bytes[4] = pf.bytes[5];
  mac.bytes[5] = static_cast<std::uint8_t>(index);
  return mac;
}

}  // namespace railhead
