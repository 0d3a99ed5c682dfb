// Which devices may not be given to a pod as they are, by what Railhead itself has on record: a journal entry
// that cannot be read holds its devices until somebody has restored them.
//
// Rule `notReady` (rules.h) makes them Unhealthy. Threads: one. Errors: those of listing the journal.
#pragma once

#include <map>
#include <string>

#include "cni/state/journal_cache.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

class UnreadyDevices {
 public:
  // By device (and slot): why it is not ready.
  using Reasons = std::map<std::string, std::string>;

  explicit UnreadyDevices(Root root) : journal_(std::move(root)) {}

  // Whether it says something else than before. After an error it says what it did.
  Result<bool> Refresh();
  // "": ready.
  [[nodiscard]] std::string Find(const std::string& device) const;
  [[nodiscard]] const Reasons& reasons() const { return reasons_; }

 private:
  JournalCache journal_;
  Reasons reasons_;
};

}  // namespace railhead
