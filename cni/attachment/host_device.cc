#include "cni/attachment/host_device.h"

#include <utility>

#include "netns/base/text.h"
#include "netns/sys/user_space.h"

namespace railhead::attachment {
bool IsForUserSpace(const PciDevice& device) {
  return device.driver && UserSpaceOf(*device.driver) != UserSpace::kNone;
}

Result<PciDevice> FindNic(const Root& root, const PciAddress& address) {
  auto device = RH_TRY(FindPciDevice(root, address));
  if (!device) {
    return Fail(ErrorCode::kNotFound, "device " + address.ToString() + " does not exist on this node",
                "check whether the VF was removed after its allocation: /sys/bus/pci/devices");
  }
  if (!device->IsNetwork()) {
    return Fail(ErrorCode::kInvalid, "device " + address.ToString() + " is not a network controller");
  }
  const std::size_t vfs = device->is_vf ? 0 : RH_TRY(VfsOf(root, address)).size();
  if (vfs > 0) {
    return Fail(ErrorCode::kInvalid,
                "device " + address.ToString() + " is a PF with " + std::to_string(vfs) + " VFs",
                "attach one of its VFs, or set its sriov_numvfs to 0 to give the whole PF to a pod");
  }
  return *device;
}

Result<Link> FindHostLink(const Root& root, RouteApi& host, const PciDevice& device) {
  const std::string bdf = device.address.ToString();
  const auto names = RH_TRY(OwnNetdevsOf(root, device.address));
  // If one of them has moved, nothing shows which one is left.
  if (names.size() > 1) {
    return Fail(ErrorCode::kUnsupported,
                "device " + bdf + " has several interfaces of its own: " + Join(names, ", "),
                "a function with several ports cannot be given to a pod: keep it out of the pool");
  }
  if (names.empty()) {
    return Fail(device.driver ? ErrorCode::kBusy : ErrorCode::kNotFound,
                "device " + bdf + " has no network interface in the host's namespace",
                device.driver ? "it is in another namespace: of a pod that has not ended yet, or of one that "
                                "Railhead did not attach"
                              : "no driver is bound to it");
  }
  auto link = RH_TRY(host.FindLink(names.front()));
  if (!link) {
    return Fail(ErrorCode::kBusy,
                "interface " + names.front() + " of " + bdf + " has left the host's namespace");
  }
  return *link;
}

Result<std::optional<Link>> FindPfOnHost(const Root& root, RouteApi& host, const AttachedDevice& device) {
  const auto pf_address = PciAddress::Parse(device.pf);
  const auto name = pf_address ? RH_TRY(UplinkNetdev(root, *pf_address)) : std::nullopt;
  const auto pf = name ? RH_TRY(host.FindLink(*name)) : std::nullopt;
  const auto address = PciAddress::Parse(device.device);
  if (pf || !address || !RH_TRY(FindPciDevice(root, *address))) return pf;
  return Fail(ErrorCode::kNotFound,
              "restoring VF " + std::to_string(device.vf) + ": its PF " + device.pf + " is not on the host");
}

// The kernel removes the link "driver" before it calls the driver's remove function (__device_release_driver
// in drivers/base/dd.c). So the link is gone before anything else of the device.
Error WithLostDevice(const Root& root, const PciAddress& address, Error error) {
  const bool says_so = error.code == ErrorCode::kNotFound && error.sys_errno == 0;
  const std::string bdf = address.ToString();
  const auto device = FindPciDevice(root, address);
  if (says_so || !device || (*device && (*device)->driver)) return error;
  const std::string loss =
      *device ? "the driver of device " + bdf + " was unbound" : "device " + bdf + " was removed";
  error = Wrap(std::move(error), loss);
  error.code = ErrorCode::kNotFound;
  error.hint = *device ? "bind it to its driver again; look for the reason in dmesg"
                       : "if the VFs of its PF were created again, the pod needs another device";
  return error;
}

}  // namespace railhead::attachment
