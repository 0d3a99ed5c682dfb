#include "cni/plugin/rebind.h"

#include <chrono>
#include <string>
#include <thread>

#include "netns/base/poll_pause.h"
#include "netns/sys/pci.h"

namespace railhead {
namespace {

constexpr auto kRebindLimit = std::chrono::seconds(10);

}  // namespace

Result<Link> RebindAndAwait(const Root& root, Kernel& kernel, RouteApi& host, const PciAddress& device) {
  const std::string bdf = device.ToString();
  RH_TRY(kernel.RebindDriver(bdf));
  const auto deadline = std::chrono::steady_clock::now() + kRebindLimit;
  for (PollPause pause;;) {
    for (const auto& name : RH_TRY(NetdevsOf(root, device))) {
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
