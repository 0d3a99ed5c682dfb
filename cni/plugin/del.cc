#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "cni/attachment/device_locks.h"
#include "cni/attachment/ipam_delegate.h"
#include "cni/attachment/release.h"
#include "cni/plugin/plugin.h"
#include "netns/base/state_folder.h"
#include "netns/base/text.h"

namespace railhead::attachment {
namespace {

Error WithHolder(Error error, const JournalEntry& entry) {
  if (error.code != ErrorCode::kTimeout || !error.hint.empty()) return error;
  error.hint = "another call holds it";
  if (entry.phase != Phase::kDone && !entry.ipam_type.empty())
    error.hint += ", or the IPAM plugin " + entry.ipam_type + " of a killed ADD still runs: end it";
  return error;
}

std::chrono::milliseconds TimeUntil(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::max(left, std::chrono::milliseconds(0));
}

}  // namespace

// Only through the entry of its own network, container and interface: a late DEL does not change the device
// of the next pod.
Result<bool> RailheadPlugin::Release(const CniRequest& request, const AttachmentKey& key,
                                     std::optional<Deadline> until) {
  for (bool found = false;; found = true) {
    auto entry = RH_TRY(journal_.Find(key));
    if (!entry) return found;
    const auto devices = DevicesOf(*entry);
    // The IPAM plugin of a killed ADD may still run. It holds these locks, too.
    const auto locks = DeviceLocks::Acquire(root_, devices, until ? TimeUntil(*until) : kLockLimit);
    if (!locks) return Fail(WithHolder(locks.error(), *entry));
    entry = RH_TRY(journal_.Find(key));
    if (!entry) return true;  // another DEL has finished while this one waited
    if (DevicesOf(*entry) != devices) continue;
    RH_TRY(ReleaseAttachment(root_, kernel_, journal_, request, *entry, {until.value_or(RestoreDeadline())}));
    return true;
  }
}

Result<void> RailheadPlugin::Del(const CniRequest& request) {
  RH_TRY(CheckStateFolders(root_));
  const AttachmentKey key{request.network, request.container_id, request.ifname};
  // ADD refuses the name, so nothing has it but an entry of a version that took it. No path is made of a name
  // that no entry has.
  if (!IsInterfaceName(request.ifname)) {
    const auto entries = RH_TRY(journal_.OfSandbox(request.container_id));
    if (!Contains(entries, key, &JournalEntry::key)) return {};
  }
  if (RH_TRY(Release(request, key))) return {};
  RH_TRY(journal_.RemovePartial(key));
  // No attachment in this boot, but the address store outlives boots. ADD refuses an invalid configuration
  // before it asks for an address. An error here would only keep the runtime from removing the sandbox.
  const auto config = ReadPluginConfig(request);
  return config ? IpamDelUnknown(root_, request, *config) : Result<void>();
}

namespace {

bool IsValid(const std::vector<ValidAttachment>& valid, const AttachmentKey& key) {
  return std::ranges::any_of(valid, [&](const ValidAttachment& attachment) {
    return attachment.container_id == key.container_id && attachment.ifname == key.ifname;
  });
}

// Another call holds a device, or the kernel has not returned it from a deleted namespace yet.
bool MayPass(const Error& error) {
  return error.code == ErrorCode::kTimeout || error.code == ErrorCode::kBusy;
}

// A plugin that ran for each device of an attachment knows the devices by their own names. The runtime does
// not list these. Without them the plugin would release all devices.
CniRequest WithDevicesOf(const CniRequest& request, const std::vector<JournalEntry>& kept) {
  CniRequest its = request;
  auto json = nlohmann::json::parse(request.config, nullptr, false);
  for (const auto& entry : kept) {
    for (const auto& call : entry.ipam_calls) {
      if (call.ifname == entry.key.ifname) continue;
      json["cni.dev/valid-attachments"].push_back(
          {{"containerID", entry.key.container_id}, {"ifname", call.ifname}});
    }
  }
  its.config = json.dump();
  return its;
}

}  // namespace

// Releases, like DEL, the attachments of this network that the runtime does not list as valid. The runtime
// starts no ADD and no DEL during a GC. So all waits share one deadline, and attachments that need no wait
// come first. DEL and railheadd release the remaining ones later. The result is the first error.
Result<void> RailheadPlugin::Gc(const CniRequest& request, const std::vector<ValidAttachment>& valid) {
  RH_TRY(CheckStateFolders(root_));
  const PluginConfig config = RH_TRY(ReadPluginConfig(request));
  const JournalScan scan = RH_TRY(journal_.Scan());
  const Deadline now = std::chrono::steady_clock::now();
  const Deadline until = now + std::chrono::seconds(config.previous_del_timeout_seconds);
  std::optional<Error> first;
  for (const UnreadableEntry& entry : scan.unreadable) {
    const AttachmentKey key{request.network, entry.key.container_id, entry.key.ifname};
    const bool ours = entry.path == journal_.PathOf(key) && !IsValid(valid, key);
    if (ours && !first) first = Wrap(entry.error, "GC of " + entry.key.ToString());
  }
  std::vector<JournalEntry> kept;
  std::vector<AttachmentKey> waiting;
  for (const auto& entry : scan.entries) {
    if (entry.key.network != request.network) continue;
    if (IsValid(valid, entry.key)) {
      kept.push_back(entry);
    } else if (auto released = Release(request, entry.key, now); !released && MayPass(released.error())) {
      waiting.push_back(entry.key);
    } else if (!released && !first) {
      first = Wrap(released.error(), "GC of " + entry.key.ToString());
    }
  }
  for (const AttachmentKey& key : waiting) {
    auto released = Release(request, key, until);
    if (!released && !first) first = Wrap(released.error(), "GC of " + key.ToString());
  }
  auto forwarded = IpamForward(WithDevicesOf(request, kept), config, "GC");
  if (!forwarded && !first) first = forwarded.error();
  if (first) return Fail(*first);
  return {};
}

}  // namespace railhead::attachment
