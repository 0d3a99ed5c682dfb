#include "cni/attachment/host_device.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "netns/base/text.h"
#include "netns/nl/host_use.h"
#include "netns/sys/netdev_sysfs.h"
#include "netns/sys/user_space.h"

namespace railhead {
namespace {

bool LeavesBy(const Route& route, int link) {
  const auto& hops = route.multipath;
  return route.link == link || std::find(hops.begin(), hops.end(), link) != hops.end();
}

}  // namespace

bool IsForUserSpace(const PciDevice& device) {
  return device.driver && UserSpaceOf(*device.driver) != UserSpace::kNone;
}

Result<PciDevice> FindNic(const Root& root, const PciAddress& address) {
  auto device = RH_TRY(FindPciDevice(root, address));
  if (!device) {
    return Fail(ErrorCode::kNotFound, "device " + address.ToString() + " does not exist on this node",
                "was the VF removed since it was allocated? See /sys/bus/pci/devices");
  }
  if (!device->IsNetwork()) {
    return Fail(ErrorCode::kInvalid, "device " + address.ToString() + " is no network controller");
  }
  if (!device->is_vf && device->sriov_numvfs > 0) {
    return Fail(
        ErrorCode::kInvalid,
        "device " + address.ToString() + " is a PF with " + std::to_string(device->sriov_numvfs) + " VFs",
        "attach one of its VFs, or set its sriov_numvfs to 0 to give the whole PF to a pod");
  }
  return *device;
}

Result<Link> FindHostLink(const Root& root, RouteApi& host, const PciDevice& device) {
  const std::string bdf = device.address.ToString();
  const auto names = RH_TRY(OwnNetdevsOf(root, device.address));
  // When one has moved, nothing tells whether what is left is it.
  if (names.size() > 1) {
    return Fail(ErrorCode::kUnsupported,
                "device " + bdf + " has several interfaces of its own: " + Join(names, ", "),
                "a function with several ports cannot be given to a pod: keep it out of the pool");
  }
  if (names.empty()) {
    return Fail(device.driver ? ErrorCode::kBusy : ErrorCode::kNotFound,
                "device " + bdf + " has no network interface in the host's namespace",
                device.driver ? "it is in another namespace: a pod that has not ended yet, or one that was "
                                "not attached by Railhead"
                              : "no driver is bound to it");
  }
  auto link = RH_TRY(host.FindLink(names.front()));
  if (!link) {
    return Fail(ErrorCode::kBusy,
                "interface " + names.front() + " of " + bdf + " has just left the host's namespace");
  }
  return *link;
}

// The kernel removes the link "driver" before it calls the driver's remove function (__device_release_driver
// in drivers/base/dd.c), so it is gone before anything of the device is.
Error WithLostDevice(const Root& root, const PciAddress& address, Error error) {
  const bool says_so = error.code == ErrorCode::kNotFound && error.sys_errno == 0;
  const std::string bdf = address.ToString();
  const auto device = FindPciDevice(root, address);
  if (says_so || !device || (*device && (*device)->driver)) return error;
  const std::string loss =
      *device ? "no driver is bound to device " + bdf + " any more" : "device " + bdf + " was removed";
  error = Wrap(std::move(error), loss);
  error.code = ErrorCode::kNotFound;
  error.hint = *device ? "bind it to its driver again; dmesg may tell why it went"
                       : "were the VFs of its PF made anew? The pod needs another device then";
  return error;
}

Result<void> RefuseIfHostUses(const Root& root, RouteApi& host, const Link& link, const std::string& bdf) {
  const std::string what = "device " + bdf + " (" + link.name + ")";
  if (link.master != 0) {
    return Fail(ErrorCode::kInvalid, what + " belongs to a bond or bridge of the host",
                "take it out of it first");
  }
  // The kernel destroys what is stacked on a device that leaves its namespace.
  if (const auto uppers = RH_TRY(UpperDevicesOf(root, link.name)); !uppers.empty()) {
    return Fail(ErrorCode::kInvalid, what + " has " + Join(uppers, ", ") + " of the host on top of it",
                "remove these interfaces first, or keep the device out of the pool");
  }
  for (const auto& address : RH_TRY(host.ListAddresses(link.index))) {
    if (!IsOfHost(address)) continue;
    return Fail(
        ErrorCode::kInvalid, what + " carries the host's address " + address.ToString(),
        "a device that the host uses is never moved: remove the address, or keep the device out of the pool");
  }
  for (const int family : {AF_INET, AF_INET6}) {
    for (const auto& rule : RH_TRY(host.ListRules(family))) {
      if (rule.iif != link.name && rule.oif != link.name) continue;
      return Fail(
          ErrorCode::kInvalid, what + " is in the host's rule " + rule.ToString(),
          "a device that the host uses is never moved: remove the rule, or keep the device out of the pool");
    }
    // The kernel drops the routes of a link that goes down: for most VFs there is no need to read all of the
    // host's.
    if (!link.up) continue;
    for (const auto& route : RH_TRY(host.ListRoutes(family, 0))) {
      if (!IsOfHost(route) || !LeavesBy(route, link.index)) continue;
      const bool is_default = route.destination.length == 0;
      return Fail(
          ErrorCode::kInvalid,
          what + " carries the host's " + (is_default ? "default route" : "route " + route.ToString()),
          "a device that the host uses is never moved: remove the route, or keep the device out of the pool");
    }
  }
  return {};
}

}  // namespace railhead
