#include "cni/attachment/rebind.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "netns/base/poll_pause.h"
#include "netns/sys/pci.h"

namespace railhead {
namespace {

constexpr auto kRebindLimit = std::chrono::seconds(10);

}  // namespace

bool NeedsRebindForMac(const std::string& driver) {
  static constexpr std::array<std::string_view, 2> kDrivers = {"igbvf", "ixgbevf"};
  return std::find(kDrivers.begin(), kDrivers.end(), driver) != kDrivers.end();
}

Result<std::optional<Link>> FindPfOnHost(const Root& root, RouteApi& host, const AttachedLink& link) {
  const auto pf_address = PciAddress::Parse(link.pf);
  const auto name = pf_address ? RH_TRY(UplinkNetdev(root, *pf_address)) : std::nullopt;
  const auto pf = name ? RH_TRY(host.FindLink(*name)) : std::nullopt;
  const auto address = PciAddress::Parse(link.device);
  if (pf || !address || !RH_TRY(FindPciDevice(root, *address))) return pf;
  return Fail(ErrorCode::kNotFound,
              "restoring VF " + std::to_string(link.vf) + ": its PF " + link.pf + " is not on the host");
}

// Such a driver takes the PF's MAC, which can differ from the one it had. So the PF gives the host's MAC for
// the time of the rebind.
Result<Link> RebindKeepingMac(const Root& root, Kernel& kernel, RouteApi& host, const AttachedLink& link) {
  const auto address = PciAddress::Parse(link.device);
  if (!address) return Fail(ErrorCode::kInvalid, "device " + link.device + " has no PCI address");
  const bool differs = link.host_vf && !link.host_vf->mac.IsZero() && link.host_vf->mac != link.host_mac;
  const auto pf =
      differs && NeedsRebindForMac(link.driver) ? RH_TRY(FindPfOnHost(root, host, link)) : std::nullopt;
  VfChange change;
  change.mac = link.host_mac;
  if (pf) RH_TRY(host.SetVf(pf->index, link.vf, change));
  auto bound = RebindAndAwait(root, kernel, host, *address);
  if (!pf) return bound;
  // Also of a driver that cannot be rebound.
  change.mac = link.host_vf->mac;
  const auto restored = host.SetVf(pf->index, link.vf, change);
  if (bound && !restored) return Fail(restored.error());
  return bound;
}

Result<Link> RebindAndAwait(const Root& root, Kernel& kernel, RouteApi& host, const PciAddress& device) {
  const std::string bdf = device.ToString();
  RH_TRY(kernel.RebindDriver(bdf));
  const auto deadline = std::chrono::steady_clock::now() + kRebindLimit;
  for (PollPause pause;;) {
    for (const auto& name : RH_TRY(OwnNetdevsOf(root, device))) {
      if (auto found = RH_TRY(host.FindLink(name)); found) return *found;
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      return Fail(ErrorCode::kTimeout,
                  "device " + bdf + " has no interface after its driver was bound again");
    }
    std::this_thread::sleep_for(pause.Next());
  }
}

}  // namespace railhead
