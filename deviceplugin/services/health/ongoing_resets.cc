#include "deviceplugin/services/health/ongoing_resets.h"

#include "cni/state/journal.h"

namespace railhead::health {
namespace {

// Drivers come back within a second or two; the reset itself gives up after ten.
constexpr std::chrono::seconds kLongestReset{10};

}  // namespace

void OngoingResets::Refresh(Clock::time_point now) {
  std::map<std::string, Clock::time_point> since;
  brief_.clear();
  lasting_.clear();
  for (const std::string& device : Journal(root_).DevicesInReset()) {
    const auto known = since_.find(device);
    since[device] = known == since_.end() ? now : known->second;
    (now - since[device] < kLongestReset ? brief_ : lasting_).insert(device);
  }
  since_ = std::move(since);
}

}  // namespace railhead::health
