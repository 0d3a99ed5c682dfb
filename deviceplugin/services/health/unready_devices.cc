#include "deviceplugin/services/health/unready_devices.h"

#include <utility>

namespace railhead {

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
  const bool changed = reasons != reasons_;
  reasons_ = std::move(reasons);
  return changed;
}

std::string UnreadyDevices::Find(const std::string& device) const {
  const auto found = reasons_.find(device);
  return found == reasons_.end() ? std::string() : found->second;
}

}  // namespace railhead
