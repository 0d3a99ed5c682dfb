#include "deviceplugin/services/health/unready_devices.h"

#include <utility>

#include "cni/state/journal.h"
#include "netns/base/files.h"
#include "netns/json/record_io.h"

namespace railhead::health {
namespace {

// A runtime may remove the namespace before it calls DEL, and the kernel returns devices a moment later.
constexpr std::chrono::seconds kLongestReturn{30};

// false where the directory is not there, either: it may only be hidden from this process.
bool IsNetnsGone(const JournalEntry& entry) {
  return Exists(entry.netns.substr(0, entry.netns.rfind('/'))) && !Exists(entry.netns);
}

}  // namespace

Result<bool> UnreadyDevices::Refresh(OngoingResets::Clock::time_point now) {
  resets_.Refresh(now);
  const auto view = RH_TRY(journal_.Read());
  Reasons reasons;
  for (const UnreadableEntry& entry : view.unreadable) {
    for (const std::string& device : entry.devices) {
      reasons[device] = "its attachment " + entry.key.ToString() + " cannot be read (" + entry.error.message +
                        "): railctl journal restore " + device;
    }
  }
  for (const std::string& device : resets_.lasting()) {
    reasons[device] =
        "it is being reset between two pods, which takes too long: railheadd's next pass or an ADD "
        "completes it, and dmesg may tell why";
  }
  AddLeftovers(view.entries, now, &reasons);
  const bool changed = reasons != reasons_;
  reasons_ = std::move(reasons);
  return changed;
}

void UnreadyDevices::AddLeftovers(const JournalCache::Entries& entries, Clock::time_point now,
                                  Reasons* reasons) {
  std::map<AttachmentKey, Clock::time_point> without_netns;
  for (const auto& entry : entries) {
    if (!IsNetnsGone(*entry)) continue;
    const auto known = without_netns_.find(entry->key);
    const auto since = known == without_netns_.end() ? now : known->second;
    without_netns[entry->key] = since;
    if (now - since < kLongestReturn) continue;
    for (const AttachedDevice& device : entry->devices) {
      (*reasons)[device.device] =
          "it has not come back from " + entry->key.ToString() +
          ", whose network namespace is gone: another pod may have been given it, and "
          "railheadd's next pass or a DEL binds its driver again";
    }
  }
  without_netns_ = std::move(without_netns);
}

std::string UnreadyDevices::Find(const std::string& device) const {
  const auto found = reasons_.find(device);
  return found == reasons_.end() ? std::string() : found->second;
}

}  // namespace railhead::health
