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
#include "cni/attachment/release.h"
#include "netns/base/poll_pause.h"

namespace railhead::attachment {
namespace {

// Who does not want to wait for a DEL still has to wait for those who only look.
constexpr auto kShortestLockWait = std::chrono::milliseconds(500);

// Any other error does not say that a pod is dead.
bool IsGone(const Error& error) {
  return error.code == ErrorCode::kNotFound || error.code == ErrorCode::kInvalid;
}

class Claim {
 public:
  Claim(const Root& root, Kernel& kernel, const Journal& journal, const CniRequest& request)
      : root_(root),
        kernel_(kernel),
        journal_(journal),
        request_(request),
        key_{request.network, request.container_id, request.ifname} {}

  // Those that hold one of the devices, and this attachment's own of an ADD that was
  // killed; each once.
  Result<std::vector<JournalEntry>> Earlier(const std::set<std::string>& devices) {
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

  // Whether the device is still its pod's. A planned entry is a killed ADD: its
  // process would hold the lock.
  Result<void> RefuseLiving(const std::set<std::string>& devices, const JournalEntry& entry) {
    if (entry.phase != Phase::kDone) return {};
    const auto ns = kernel_.OpenNetns(entry.netns);
    if (!ns && !IsGone(ns.error())) {
      return Fail(
          Wrap(ns.error(), "looking whether the pod of container " + entry.key.container_id + " lives"));
    }
    if (!ns || ns->inode() != entry.netns_inode) return {};
    for (const AttachedDevice& device : entry.devices) {
      if (!devices.contains(device.device) && !devices.contains(device.KubeletId())) continue;
      return Fail(ErrorCode::kBusy,
                  "device " + device.KubeletId() + " is in the pod of container " + entry.key.container_id +
                      " as " + device.pod_name,
                  "its DEL has not come yet");
    }
    return {};
  }

  // Without an entry a device can be away too: in a namespace that is being taken down.
  Result<void> RefuseAway(const DeviceChoice& choice) {
    const NetNs host_ns = RH_TRY(kernel_.HostNetns());
    const auto host = RH_TRY(kernel_.OpenRoute(host_ns));
    for (const auto& address : choice.devices) {
      const PciDevice device = RH_TRY(FindNic(root_, address));
      if (!IsForUserSpace(device)) RH_TRY(FindHostLink(root_, *host, device));
    }
    return {};
  }

  // Does not wait for a device that is on its way: the locks are held here.
  Result<void> Finish(const std::vector<JournalEntry>& earlier) {
    for (const auto& entry : earlier) {
      RH_TRY_WRAP(
          ReleaseAttachment(root_, kernel_, journal_, request_, entry, {std::chrono::steady_clock::now()}),
          "finishing the earlier attachment " + entry.key.ToString());
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

// A DEL that waits for its namespace holds the lock all the while.
Result<DeviceLocks> LockUntil(const Root& root, const std::set<std::string>& devices, Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  auto locks = DeviceLocks::Acquire(root, devices, std::max(left, kShortestLockWait));
  if (locks || locks.error().code != ErrorCode::kTimeout) return locks;
  return Fail(ErrorCode::kBusy, locks.error().message,
              "the DEL of its last pod is not over yet: this ADD will be tried again");
}

// One attempt. An earlier attachment can have further devices, which have to be
// locked with ours, in order: then all is let go and locked again.
Result<DeviceLocks> TryOnce(const Root& root, Claim& claim, const DeviceChoice& choice,
                            const std::set<std::string>& devices, Deadline deadline) {
  std::set<std::string> wanted = devices;
  for (;;) {
    DeviceLocks locks = RH_TRY(LockUntil(root, wanted, deadline));
    const auto earlier = RH_TRY(claim.Earlier(devices));
    std::set<std::string> needed = devices;
    for (const auto& entry : earlier) {
      RH_TRY(claim.RefuseLiving(devices, entry));
      needed.merge(DevicesOf(entry));
    }
    if (!std::ranges::includes(wanted, needed)) {
      wanted = std::move(needed);
      continue;
    }
    RH_TRY(claim.Finish(earlier));
    RH_TRY(claim.RefuseAway(choice));
    return locks;
  }
}

}  // namespace

Result<DeviceLocks> ClaimDevices(const Root& root, Kernel& kernel, const Journal& journal,
                                 const CniRequest& request, const DeviceChoice& choice, Deadline deadline) {
  Claim claim(root, kernel, journal, request);
  std::set<std::string> devices;
  for (const auto& device : choice.devices) devices.insert(device.ToString());
  // A slot can be in one sandbox at a time, like a device.
  for (const auto& [device, slot] : choice.slots) devices.insert(slot);
  for (PollPause pause;;) {
    auto locks = TryOnce(root, claim, choice, devices, deadline);
    const bool last = std::chrono::steady_clock::now() >= deadline;
    if (locks || locks.error().code != ErrorCode::kBusy || last) return locks;
    std::this_thread::sleep_for(pause.Next());
  }
}

}  // namespace railhead::attachment
