// Which devices may not be given to a pod as they are, by what Railhead itself has on record: a journal entry
// that cannot be read holds its devices until somebody has restored them, and a reset between two pods that
// does not end holds its device (ongoing_resets.h).
//
// Rule `notReady` (rules.h) makes them Unhealthy. Threads: one. Errors: those of listing the journal.
#pragma once

#include <map>
#include <string>

#include "cni/state/journal_cache.h"
#include "deviceplugin/services/health/ongoing_resets.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

class UnreadyDevices {
 public:
  // By device (and slot): why it is not ready.
  using Reasons = std::map<std::string, std::string>;

  explicit UnreadyDevices(const Root& root) : journal_(root), resets_(root) {}

  // Whether it says something else than before. After an error it says what it did.
  Result<bool> Refresh(OngoingResets::Clock::time_point now = OngoingResets::Clock::now());
  // "": ready.
  [[nodiscard]] std::string Find(const std::string& device) const;
  [[nodiscard]] const Reasons& reasons() const { return reasons_; }
  // What is seen of it now says nothing of how it is.
  [[nodiscard]] bool IsBrieflyReset(const std::string& device) const {
    return resets_.brief().contains(device);
  }

 private:
  JournalCache journal_;
  OngoingResets resets_;
  Reasons reasons_;
};

}  // namespace railhead
