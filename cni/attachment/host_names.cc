#include "cni/attachment/host_names.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "cni/attachment/acquire.h"
#include "cni/state/displaced_names.h"
#include "netns/base/text.h"
#include "netns/sys/pci.h"

namespace railhead {
namespace {

// Whether somebody else has the name.
Result<bool> IsTaken(RouteApi& host, const std::string& name, std::optional<int> own_index) {
  const auto holder = RH_TRY(host.FindLink(name));
  return holder && holder->index != own_index;
}

// Adds those that are missing and free; false: one is still somebody else's.
Result<bool> AddAltNames(RouteApi& host, const Link& link, const std::vector<std::string>& wanted) {
  bool all = true;
  for (const std::string& name : wanted) {
    if (Contains(link.alt_names, name)) continue;
    const auto added = host.AddAltName(link.index, name);
    if (!added && added.error().code != ErrorCode::kExists) return Fail(added.error());
    all = all && added.has_value();
  }
  return all;
}

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

Result<std::string> ClaimHostName(const Root& root, RouteApi& host, const AttachedLink& link,
                                  std::optional<int> own_index) {
  if (!RH_TRY(IsTaken(host, link.host_name, own_index))) return link.host_name;
  // First: a device under a substitute name without a record would keep it for good.
  RH_TRY(WriteDisplacedNames(root, link.device, {link.host_name, link.host_alt_names}));
  for (int n = 0; n < kSubstitutes; ++n) {
    std::string name = SubstituteName(link.device, n);
    if (!RH_TRY(IsTaken(host, name, own_index))) return name;
  }
  return Fail(ErrorCode::kExists,
              "device " + link.device + " cannot come back to the host: " + link.host_name + " and " +
                  SubstituteName(link.device) + " to " + SubstituteName(link.device, kSubstitutes - 1) +
                  " are all names of other interfaces",
              "rename one of them");
}

Result<void> RemovePodAltNames(RouteApi& host, const AttachedLink& link, const Link& found) {
  for (const std::string& name : found.alt_names) {
    const bool own = Contains(link.host_alt_names, name) && name != link.host_name;
    if (!own) RH_TRY(host.DeleteAltName(found.index, name));
  }
  return {};
}

Result<void> RestoreAltNames(const Root& root, RouteApi& host, const AttachedLink& link, const Link& now,
                             const std::string& name) {
  const bool all = RH_TRY(AddAltNames(host, now, link.host_alt_names));
  if (all && name == link.host_name) return RemoveDisplacedNames(root, link.device);
  return WriteDisplacedNames(root, link.device, {link.host_name, link.host_alt_names});
}

Result<bool> ReturnOwnNames(const Root& root, RouteApi& host, const std::string& device) {
  const auto own = RH_TRY(ReadDisplacedNames(root, device));
  const auto address = PciAddress::Parse(device);
  if (!own || !address) return false;
  auto link = RH_TRY(FindOnHost(root, host, *address));
  if (!link) {
    // A function that was removed may come back as another device.
    if (!RH_TRY(FindPciDevice(root, *address))) RH_TRY(RemoveDisplacedNames(root, device));
    return false;
  }
  const std::string before = link->name;
  if (link->name != own->name) {
    if (!IsSubstituteName(device, link->name)) {  // an administrator has renamed it, or it was made anew
      RH_TRY(RemoveDisplacedNames(root, device));
      return false;
    }
    if (RH_TRY(IsTaken(host, own->name, link->index))) return false;
    RH_TRY_WRAP(Rename(host, *link, own->name), "giving " + device + " its name " + own->name + " back");
  }
  const std::size_t missing =
      std::count_if(own->alt_names.begin(), own->alt_names.end(),
                    [&](const std::string& name) { return !Contains(link->alt_names, name); });
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

}  // namespace railhead
