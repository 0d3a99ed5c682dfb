#include "cni/attachment/acquire.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cni/attachment/devices.h"
#include "cni/attachment/host_device.h"
#include "cni/attachment/release.h"
#include "netns/base/poll_pause.h"

namespace railhead::attachment {
namespace {

// Even without a DEL timeout ADD waits briefly: read-only callers take this lock, too.
constexpr auto kShortestLockWait = std::chrono::milliseconds(500);

// Only these errors show that the namespace is gone.
bool IsGone(const Error& error) {
  return error.code == ErrorCode::kNotFound || error.code == ErrorCode::kInvalid;
}

class Acquisition {
 public:
  Acquisition(const Root& root, Kernel& kernel, const Journal& journal, const CniRequest& request)
      : root_(root),
        kernel_(kernel),
        journal_(journal),
        request_(request),
        key_{request.network, request.container_id, request.ifname} {}

  // Entries that hold one of the devices, and the entry that a killed ADD of this attachment left; each once.
  Result<std::vector<JournalEntry>> FindEarlier(const std::set<std::string>& devices) {
    std::map<AttachmentKey, JournalEntry> found;
    if (auto own = RH_TRY(journal_.Find(key_)); own) {
      if (own->phase == Phase::kDone && !own->devices.empty()) {
        return Fail(ErrorCode::kExists,
                    "container " + key_.container_id + " has " + key_.ifname + " of network " + key_.network +
                        " already",
                    "DEL it before another ADD");
      }
      found.emplace(key_, std::move(*own));
    }
    for (const auto& device : devices) {
      if (auto entry = RH_TRY(journal_.FindByDevice(device)); entry)
        found.emplace(entry->key, std::move(*entry));
    }
    std::vector<JournalEntry> entries;
    entries.reserve(found.size());
    for (auto& [key, entry] : found) entries.push_back(std::move(entry));
    return entries;
  }

  // Whether the runtime has made another sandbox for the pod. It does so when the earlier one has ended, but
  // its DEL may come minutes later. While a process is in there, the pod's containers may still run.
  [[nodiscard]] Result<bool> IsReplaced(const JournalEntry& entry, const NetNs& ns) const {
    const std::string uid = PodUid(request_.args);
    if (uid.empty() || uid != PodUid(entry.cni_args) || entry.key.container_id == key_.container_id)
      return false;
    return !RH_TRY(kernel_.HasProcesses(ns));
  }

  // kBusy while the pod of a finished entry runs. A planned entry belongs to a killed ADD: a running one
  // would hold the lock.
  Result<void> RefuseRunningPods(const std::set<std::string>& devices, const JournalEntry& entry) {
    if (entry.phase != Phase::kDone) return {};
    const auto ns = kernel_.OpenNetns(entry.netns);
    if (!ns && !IsGone(ns.error())) {
      return Fail(Wrap(ns.error(),
                       "checking whether the pod of container " + entry.key.container_id + " still runs"));
    }
    if (!ns || ns->inode() != entry.netns_inode) return {};
    if (RH_TRY(IsReplaced(entry, *ns))) return {};
    for (const AttachedDevice& device : entry.devices) {
      if (!devices.contains(device.device) && !devices.contains(device.KubeletId())) continue;
      return Fail(ErrorCode::kBusy,
                  "device " + device.KubeletId() + " is in the pod of container " + entry.key.container_id +
                      " as " + device.pod_name,
                  "its DEL has not come yet");
    }
    return {};
  }

  // A device without an entry can be in another namespace, too: in one that the kernel is deleting.
  Result<void> RequireOnHost(const DeviceChoice& choice) {
    const NetNs host_ns = RH_TRY(kernel_.HostNetns());
    const auto host = RH_TRY(kernel_.OpenRoute(host_ns));
    for (const auto& address : choice.devices) {
      const PciDevice device = RH_TRY(FindNic(root_, address));
      if (!IsForUserSpace(device)) RH_TRY(FindHostLink(root_, *host, device));
    }
    return {};
  }

  // Does not wait for a device that has not returned yet, since this call holds the locks.
  Result<void> ReleaseEarlier(const std::vector<JournalEntry>& earlier) {
    for (const auto& entry : earlier) {
      RH_TRY_WRAP(
          ReleaseAttachment(root_, kernel_, journal_, request_, entry, {std::chrono::steady_clock::now()}),
          "releasing the earlier attachment " + entry.key.ToString());
    }
    return {};
  }

 private:
  const Root& root_;
  Kernel& kernel_;
  const Journal& journal_;
  const CniRequest& request_;
  AttachmentKey key_;
};

// A DEL holds the lock while it waits for its namespace.
Result<DeviceLocks> LockUntil(const Root& root, const std::set<std::string>& devices, Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  auto locks = DeviceLocks::Acquire(root, devices, std::max(left, kShortestLockWait));
  if (locks || locks.error().code != ErrorCode::kTimeout) return locks;
  return Fail(ErrorCode::kBusy, locks.error().message,
              "the DEL of its last pod has not finished; the runtime repeats this ADD");
}

// One attempt. A stale attachment can own further devices. Then this releases all locks and acquires those of
// all devices, in sorted order.
Result<DeviceLocks> TryAcquire(const Root& root, Acquisition& acquisition, const DeviceChoice& choice,
                               const std::set<std::string>& devices, Deadline deadline) {
  std::set<std::string> to_lock = devices;
  for (;;) {
    DeviceLocks locks = RH_TRY(LockUntil(root, to_lock, deadline));
    const auto earlier = RH_TRY(acquisition.FindEarlier(devices));
    std::set<std::string> needed = devices;
    for (const auto& entry : earlier) {
      RH_TRY(acquisition.RefuseRunningPods(devices, entry));
      needed.merge(DevicesOf(entry));
    }
    if (!std::ranges::includes(to_lock, needed)) {
      to_lock = std::move(needed);
      continue;
    }
    RH_TRY(acquisition.ReleaseEarlier(earlier));
    RH_TRY(acquisition.RequireOnHost(choice));
    return locks;
  }
}

}  // namespace

Result<DeviceLocks> AcquireDevices(const Root& root, Kernel& kernel, const Journal& journal,
                                   const CniRequest& request, const DeviceChoice& choice, Deadline deadline) {
  Acquisition acquisition(root, kernel, journal, request);
  std::set<std::string> devices;
  for (const auto& device : choice.devices) devices.insert(device.ToString());
  // A slot, like a device, is in one sandbox at a time.
  for (const auto& [device, slot] : choice.slots) devices.insert(slot);
  for (PollPause pause;;) {
    auto locks = TryAcquire(root, acquisition, choice, devices, deadline);
    const bool last = std::chrono::steady_clock::now() >= deadline;
    if (locks || locks.error().code != ErrorCode::kBusy || last) return locks;
    std::this_thread::sleep_for(pause.Next());
  }
}

}  // namespace railhead::attachment
