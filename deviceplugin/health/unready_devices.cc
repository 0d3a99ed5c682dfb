#include "deviceplugin/health/unready_devices.h"

#include <utility>

namespace railhead {

Result<bool> UnreadyDevices::Refresh() {
  const auto view = RH_TRY(journal_.Read());
  Reasons now;
  for (const UnreadableEntry& entry : view.unreadable) {
    for (const std::string& device : entry.devices) {
      now[device] = "its attachment " + entry.key.ToString() + " cannot be read (" + entry.error.message +
                    "): railctl journal restore " + device;
    }
  }
  const bool changed = now != reasons_;
  reasons_ = std::move(now);
  return changed;
}

std::string UnreadyDevices::Find(const std::string& device) const {
  const auto found = reasons_.find(device);
  return found == reasons_.end() ? std::string() : found->second;
}

}  // namespace railhead
