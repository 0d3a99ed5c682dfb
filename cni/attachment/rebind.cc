#include "cni/attachment/rebind.h"

#include <chrono>
#include <string>
#include <thread>

#include "cni/attachment/host_device.h"
#include "netns/base/poll_pause.h"
#include "netns/sys/mac_at_bind.h"
#include "netns/sys/pci.h"

namespace railhead::attachment {
namespace {

constexpr auto kRebindLimit = std::chrono::seconds(10);

}  // namespace

// A driver that takes its MAC at bind takes the PF's, which can differ from the interface's earlier MAC. So
// the PF gives the host's MAC during the rebind.
Result<Link> RebindKeepingMac(const Root& root, Kernel& kernel, RouteApi& host,
                              const AttachedDevice& device) {
  const auto address = PciAddress::Parse(device.device);
  if (!address) return Fail(ErrorCode::kInvalid, "device " + device.device + " has no PCI address");
  const AttachedDevice::Before& before = device.before;
  const MacAddress administrative = before.vf ? MacOf(*before.vf) : MacAddress{};
  const bool differs = !administrative.IsZero() && administrative != before.mac;
  const auto pf =
      differs && TakesMacAtBind(before.driver) ? RH_TRY(FindPfOnHost(root, host, device)) : std::nullopt;
  if (pf) RH_TRY(host.SetVf(pf->index, device.vf, {.mac = before.mac}));
  auto bound = RebindAndAwait(root, kernel, host, *address);
  if (!pf) return bound;
  // Also if the driver could not be bound again.
  const auto restored = host.SetVf(pf->index, device.vf, {.mac = administrative});
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

}  // namespace railhead::attachment
