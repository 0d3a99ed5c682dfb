#include "cni/attachment/rdma.h"

#include <algorithm>
#include <thread>

#include "cni/state/paths.h"
#include "netns/base/poll_pause.h"
#include "netns/base/state_folder.h"
#include "netns/sys/rdma_sysfs.h"

namespace railhead::attachment {
namespace {

constexpr auto kRdmaLockLimit = std::chrono::seconds(30);
constexpr auto kLeavingLimit = std::chrono::seconds(5);

// A move frees the device's uverbs minor, and then gives it the lowest free one. Two moves at once would swap
// nodes (drivers/infiniband/core/uverbs_main.c).
Result<FileLock> LockRdma(const Root& root) {
  return WithContext(FileLock::Acquire(paths::Lock(root, "rdma"), kRdmaLockLimit),
                     "waiting for other RDMA moves");
}

// Reads the host's sysfs. In exclusive mode only netlink in the pod shows the device.
Result<bool> IsActive(const Root& root, RdmaApi& rdma, const std::string& name) {
  if (const auto state = RH_TRY(PortStateOf(root, name, 1)); state) return state == PortState::kActive;
  const auto devices = RH_TRY(rdma.ListDevices());
  return std::ranges::any_of(devices, [&](const RdmaDevice& one) { return one.name == name && one.active; });
}

Error NotReady(const AttachedDevice& device, const IpAddress& address, bool active,
               const std::optional<std::vector<GidEntry>>& table) {
  Error error;
  error.code = ErrorCode::kTimeout;
  error.message = "RDMA device " + device.rdma.device + ": ";
  if (!table) {
    error.message += "is not visible in the pod";
  } else if (!active) {
    error.message += "port 1 is not ACTIVE";
    error.hint = "check cable, switch port and the PF's state";
  } else if (!FindGid(*table, GidOf(address), GidType::kRoceV2, device.pod_name)) {
    error.message += "no RoCE v2 GID of " + address.ToString() + " on " + device.pod_name;
    error.hint = "GID table:\n" + (table->empty() ? std::string("(empty)") : Describe(*table));
  } else {
    error.message += "has no uverbs node";
    error.hint = "load the module ib_uverbs on the node";
  }
  return error;
}

// If the last pod's namespace was deleted, its soft RoCE device goes a moment after the VF has returned to
// the host. The kernel removes it from a work queue (rxe_notify() of drivers/infiniband/sw/rxe/rxe_net.c,
// ib_unregister_device_queued()).
Result<void> MakeRxe(Kernel& kernel, const AttachedDevice& device, const NetNs& pod, Deadline deadline) {
  const auto rdma = RH_TRY(kernel.OpenRdma(pod));
  const auto until = std::min(deadline, std::chrono::steady_clock::now() + kLeavingLimit);
  for (PollPause pause;;) {
    auto made = rdma->AddRxe(device.rdma.device, device.pod_name);
    if (made || made.error().code != ErrorCode::kExists) return made;
    if (std::chrono::steady_clock::now() >= until) return made;
    std::this_thread::sleep_for(pause.Next());
  }
}

}  // namespace

Result<void> ProvideRdma(const Root& root, Kernel& kernel, const AttachedDevice& device, const NetNs& pod,
                         Deadline deadline) {
  if (device.rdma.soft) {
    return WithContext(MakeRxe(kernel, device, pod, deadline),
                       "making soft RoCE device " + device.rdma.device + " on " + device.pod_name);
  }
  if (!device.rdma.moved) return {};
  const FileLock lock = RH_TRY(LockRdma(root));
  const NetNs host = RH_TRY(kernel.HostNetns());
  const auto rdma = RH_TRY(kernel.OpenRdma(host));
  return WithContext(rdma->MoveDevice(device.rdma.device, pod),
                     "moving RDMA device " + device.rdma.device + " into the pod");
}

Result<void> ReturnRdma(const Root& root, Kernel& kernel, const AttachedDevice& device, const NetNs& pod,
                        const NetNs& host) {
  if (!device.rdma.soft && !device.rdma.moved) return {};
  const auto rdma = RH_TRY(kernel.OpenRdma(pod));
  const auto is_there = [&]() -> Result<bool> {
    // In shared mode every namespace lists every device. A device of that name on a netdev of another
    // namespace belongs to another pod: it is the reason why ADD failed.
    const auto devices = RH_TRY(rdma->ListDevices());
    return std::ranges::any_of(devices, [&](const RdmaDevice& one) {
      return one.name == device.rdma.device && (!device.rdma.soft || one.netdev_index != 0);
    });
  };
  if (device.rdma.soft) {
    if (!RH_TRY(is_there())) return {};
    RH_TRY_WRAP(rdma->DeleteRxe(device.rdma.device), "removing soft RoCE device " + device.rdma.device);
    return {};
  }
  const FileLock lock = RH_TRY(LockRdma(root));
  if (!RH_TRY(is_there())) return {};
  return WithContext(rdma->MoveDevice(device.rdma.device, host),
                     "moving RDMA device " + device.rdma.device + " back to the host");
}

const IpAddress* GidAddressOf(const AttachedDevice& device) {
  const auto& all = device.addressing.addresses;
  const auto v4 = std::ranges::find_if(all, [](const IpPrefix& address) { return address.address.IsV4(); });
  if (v4 != all.end()) return &v4->address;
  return all.empty() ? nullptr : &all.front().address;
}

Result<RdmaReady> WaitRdma(const Root& root, Kernel& kernel, const AttachedDevice& device, const NetNs& pod,
                           const IpAddress& address, Deadline deadline) {
  const auto rdma = RH_TRY(kernel.OpenRdma(pod));
  const GidRequest request{GidOf(address), GidType::kRoceV2, device.pod_name};
  for (PollPause pause;;) {
    const auto gid = RH_TRY(kernel.WaitGid(pod, device.rdma.device, request, deadline));
    const bool active = RH_TRY(IsActive(root, *rdma, device.rdma.device));
    const auto uverbs = RH_TRY(UverbsOf(root, device.rdma.device));
    if (active && gid && uverbs) return RdmaReady{*gid, *uverbs};
    if (!gid || std::chrono::steady_clock::now() >= deadline) {
      return Fail(NotReady(device, address, active, RH_TRY(kernel.ReadGids(pod, device.rdma.device))));
    }
    std::this_thread::sleep_for(pause.Next());
  }
}

}  // namespace railhead::attachment
