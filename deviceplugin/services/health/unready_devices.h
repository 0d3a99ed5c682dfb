// UnreadyDevices: the devices that no pod may get because of Railhead's own records. A journal entry that
// cannot be read holds its devices until an operator has restored them. A reset between two pods that
// does not end holds its device. An attachment that outlives its pod's network namespace holds its devices:
// they have not come back, and another pod may have been given them.
//
// Rule `notReady` (rules.h) makes them Unhealthy. Threads: one. Errors: those of listing the journal.
#pragma once

#include <map>
#include <string>

#include "cni/state/journal_cache.h"
#include "deviceplugin/services/health/ongoing_resets.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::health {

class UnreadyDevices {
 public:
  // By device (and slot): the reason why it is not ready.
  using Reasons = std::map<std::string, std::string>;

  explicit UnreadyDevices(const Root& root) : journal_(root), resets_(root) {}

  // Whether the devices have changed. After an error they stay as they were.
  Result<bool> Refresh(OngoingResets::Clock::time_point now = OngoingResets::Clock::now());
  // "": ready.
  [[nodiscard]] std::string Find(const std::string& device) const;
  [[nodiscard]] const Reasons& reasons() const { return reasons_; }
  // Its present state has no meaning.
  [[nodiscard]] bool IsBrieflyReset(const std::string& device) const {
    return resets_.brief().contains(device);
  }

 private:
  using Clock = OngoingResets::Clock;

  void AddLeftovers(const JournalCache::Entries& entries, Clock::time_point now, Reasons* reasons);

  JournalCache journal_;
  OngoingResets resets_;
  std::map<AttachmentKey, Clock::time_point> without_netns_;  // first seen so
  Reasons reasons_;
};

}  // namespace railhead::health
