// Finds the attachments that use addresses of railhead-ipam on this node.
//
// Below `railhead` the journal names the owner of each address. Below other main plugins only the caches of
// runtimes do (libcni's cache of results, that of Multus). Without such a cache nothing is known.
// Threads: immutable once read. Errors: those of reading the journal and the directories.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "ipam/store/address_record.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::reconcile {

class AddressHolders {
 public:
  static Result<AddressHolders> Read(const Root& root);
  // With a scan of the journal that the caller has.
  static Result<AddressHolders> Read(const Root& root, const JournalScan& scan);

  // The attachment of this boot that has the address, or nullptr.
  [[nodiscard]] const JournalEntry* Attachment(const ipam::AddressRecord& record) const;
  // Whether a runtime's cache has the container, or an unreadable journal entry belongs to it.
  [[nodiscard]] bool IsRemembered(const ipam::AddressRecord& record) const;
  // Whether a container that journal and caches lack is gone: runtimes keep such caches here.
  [[nodiscard]] bool complete() const { return complete_; }

 private:
  std::vector<JournalEntry> entries_;
  std::vector<std::string> unreadable_;  // containers
  std::vector<std::string> results_;     // names of files: "NETWORK-CONTAINER-IFNAME", Multus: "CONTAINER"
  bool complete_ = false;
};

}  // namespace railhead::reconcile
