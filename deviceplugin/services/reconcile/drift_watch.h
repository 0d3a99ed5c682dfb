// Drift: what a running pod was handed over and is not so any more.
//
// NCCL's processes read nccl.conf once. An address that is taken away and added again gets another
// GID index, a port goes down, another tool moves a device: connections made later fail, or use
// another NIC, and nobody says why. A look compares each finished attachment that has a handoff with
// the kernel as of now: interface, addresses, port, GID index, uverbs node, CDI spec and nccl.conf
// (cni/attachment/verify.h). Nothing is mended: what would be right for one process is wrong for
// another that runs already.
//
// What looks wrong is looked at again under the device's locks: an ADD or DEL at work is no drift.
// Ownership: borrows the kernel. Threads: Look() in one at a time; Stop() from any.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead {

struct DriftReport {
  std::size_t watched = 0;                       // attachments with a handoff
  std::map<AttachmentKey, std::string> drifted;  // in words
  std::map<AttachmentKey, std::string> began;    // of these, what was not so at the last look
  std::vector<AttachmentKey> over;               // as handed over again, or gone
  std::vector<Error> problems;                   // what could not be found out
};

class DriftWatch {
 public:
  DriftWatch(Root root, Kernel& kernel) : root_(std::move(root)), kernel_(kernel) {}

  DriftReport Look();
  // A look that runs ends before its next attachment, later ones at once.
  void Stop() { stopped_ = true; }

 private:
  // "" when all is well, or somebody is at work on it.
  [[nodiscard]] Result<std::string> DriftOf(const Journal& journal, const JournalEntry& entry);
  [[nodiscard]] Result<std::string> Differences(const JournalEntry& entry);

  Root root_;
  Kernel& kernel_;
  std::atomic<bool> stopped_{false};
  std::map<AttachmentKey, std::string> known_;
};

}  // namespace railhead
