// DriftWatch: finds drift. A running pod's NIC then differs from its NCCL configuration.
//
// NCCL's processes read nccl.conf once. Later an address is removed and added again, and gets another GID
// index; a port goes down; or another tool moves a device. New connections then fail or use another NIC,
// without a reason in any log. A check compares each finished attachment that has an NCCL configuration with
// the kernel's present state. It covers interface, addresses, port, GID index, uverbs node, CDI spec and
// nccl.conf (cni/attachment/verify.h). It repairs nothing: a change that is right for one process is wrong
// for another that runs already.
//
// A difference is checked again under the device's locks: a running ADD or DEL does not count as drift.
// Ownership: borrows the kernel. Threads: one.
#pragma once

#include <cstddef>
#include <map>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::reconcile {

struct DriftReport {
  std::size_t watched = 0;                       // attachments with an NCCL configuration
  std::map<AttachmentKey, std::string> drifted;  // with the differences as text
  std::map<AttachmentKey, std::string> began;    // new ones among them since the last check
  std::vector<AttachmentKey> over;               // they match again, or are gone
  std::vector<Error> problems;                   // attachments that could not be checked
};

class DriftWatch {
 public:
  DriftWatch(Root root, Kernel& kernel) : root_(std::move(root)), kernel_(kernel) {}

  // After `stop` it ends before its next attachment, with an empty report.
  DriftReport Check(const std::stop_token& stop = {});

 private:
  // "" when nothing differs, or an ADD or DEL holds the locks.
  [[nodiscard]] Result<std::string> DriftOf(const Journal& journal, const JournalEntry& entry);
  [[nodiscard]] Result<std::string> Differences(const JournalEntry& entry);

  Root root_;
  Kernel& kernel_;
  std::map<AttachmentKey, std::string> known_;
};

}  // namespace railhead::reconcile
