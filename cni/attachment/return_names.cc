#include "cni/attachment/return_names.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>

#include "cni/attachment/alt_names.h"
#include "cni/attachment/device_locks.h"
#include "cni/attachment/host_names.h"
#include "cni/state/displaced_names.h"
#include "netns/base/text.h"
#include "netns/nl/host_use.h"
#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"

namespace railhead::attachment {
namespace {

Result<void> Rename(RouteApi& host, const Link& link, const std::string& name) {
  if (Contains(link.alt_names, name)) RH_TRY(host.DeleteAltName(link.index, name));
  // Kernels before 6.2 refuse to rename a link that is up.
  if (link.up) RH_TRY(host.ChangeLink(link.index, {.up = false}));
  auto renamed = host.ChangeLink(link.index, {.name = name});
  if (link.up) RH_TRY(host.ChangeLink(link.index, {.up = true}));
  return renamed;
}

// The device's link on the host; nullopt: it is in a pod, or has no driver.
Result<std::optional<Link>> FindOnHost(const Root& root, RouteApi& host, const PciAddress& address) {
  for (const std::string& name : RH_TRY(OwnNetdevsOf(root, address))) {
    if (auto link = RH_TRY(host.FindLink(name)); link) return link;
  }
  return std::nullopt;
}

}  // namespace

Result<bool> ReturnOwnNames(const Root& root, RouteApi& host, const std::string& device) {
  const auto own = RH_TRY(ReadDisplacedNames(root, device));
  const auto address = PciAddress::Parse(device);
  if (!own || !address) return false;
  auto link = RH_TRY(FindOnHost(root, host, *address));
  if (!link) {
    // The address of a removed function may become another device.
    if (!RH_TRY(FindPciDevice(root, *address))) RH_TRY(RemoveDisplacedNames(root, device));
    return false;
  }
  const std::string before = link->name;
  if (link->name != own->name) {
    if (!IsSubstituteName(device, link->name)) {  // an administrator renamed it, or the VF was created again
      RH_TRY(RemoveDisplacedNames(root, device));
      return false;
    }
    if (RH_TRY(IsNameInUse(host, own->name, link->index))) return false;
    RH_TRY_WRAP(Rename(host, *link, own->name), "giving " + device + " its name " + own->name + " back");
  }
  const std::size_t missing = std::ranges::count_if(
      own->alt_names, [&](const std::string& name) { return !Contains(link->alt_names, name); });
  const bool all = RH_TRY(AddAltNames(host, *link, own->alt_names));
  if (all) RH_TRY(RemoveDisplacedNames(root, device));
  return before != own->name || (all && missing > 0);
}

void ReturnFreeNames(const Root& root, RouteApi& host, const std::set<std::string>& held) {
  const auto devices = ListDisplacedDevices(root);
  if (!devices) return;
  for (const std::string& device : *devices) {
    std::set<std::string> to_lock;
    if (!held.contains(device)) to_lock.insert(device);
    const auto locks = DeviceLocks::Acquire(root, to_lock, std::chrono::milliseconds(0));
    if (locks) (void)ReturnOwnNames(root, host, device);
  }
}

}  // namespace railhead::attachment
