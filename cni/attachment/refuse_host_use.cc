#include "cni/attachment/refuse_host_use.h"

#include <array>

#include "netns/base/node.h"
#include "netns/base/text.h"
#include "netns/nl/host_use.h"
#include "netns/sys/netdev_sysfs.h"
#include "netns/sys/network_managers.h"

namespace railhead::attachment {
namespace {

// What to do about a device that the host uses.
std::string WayOut(const Root& root, const Link& link, const HostUse& use) {
  if (use.kind == HostUse::Kind::kPort) return "remove the device from it first";
  const auto managers = ManagersOf(root, link.index);
  if (!managers.empty()) {
    return Join(managers, " and ") + " manages " + link.name +
           ": make it leave the device alone (docs/operate/host-preparation.md), or keep the device out of "
           "the pool";
  }
  constexpr std::array kThings = {"port", "address", "rule", "route"};
  return std::string("a device that the host uses is never moved: remove the ") +
         kThings.at(static_cast<std::size_t>(use.kind)) + ", or keep the device out of the pool";
}

}  // namespace

Result<void> RefuseIfHostUses(const Root& root, RouteApi& host, const Link& link, const std::string& bdf) {
  const std::string what = "device " + bdf + " (" + link.name + ")";
  // The kernel destroys interfaces on top of a device that moves to another namespace.
  if (const auto uppers = RH_TRY(UpperDevicesOf(root, link.name)); !uppers.empty()) {
    return Fail(ErrorCode::kInvalid, what + " has " + Join(uppers, ", ") + " of the host on top",
                "remove these interfaces first, or keep the device out of the pool");
  }
  const auto node_address = RH_TRY(NodeAddress(root));
  const auto use = RH_TRY(FindHostUse(host, link, node_address));
  if (!use) return {};
  return Fail(ErrorCode::kInvalid, what + " " + use->text, WayOut(root, link, *use));
}

}  // namespace railhead::attachment
