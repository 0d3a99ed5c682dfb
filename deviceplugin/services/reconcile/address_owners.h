// What speaks for an address of railhead-ipam being in use, as this node knows it.
//
// Below `railhead` the journal says who has which; below other main plugins only what runtimes keep
// of each attachment (libcni's cache of results, Multus') does. Where no runtime keeps anything
// there is no way to tell of these.
// Threads: immutable once read. Errors: those of reading the journal and the directories.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "ipam/store/address_record.h"
#include "ipam/store/events.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead::reconcile {

class AddressHolders {
 public:
  static Result<AddressHolders> Read(const Root& root);
  // With a scan of the journal that the caller has.
  static Result<AddressHolders> Read(const Root& root, const JournalScan& scan);

  // The attachment, of this boot; nullptr: none has it.
  [[nodiscard]] const JournalEntry* Attachment(const ipam::AddressRecord& record) const;
  // Whether a runtime remembers the container, or an entry of the journal that cannot be read is of it.
  [[nodiscard]] bool IsRemembered(const ipam::AddressRecord& record) const;
  // Whether what is missing in the journal and the caches says anything at all: runtimes keep
  // such caches here.
  [[nodiscard]] bool complete() const { return complete_; }

 private:
  std::vector<JournalEntry> entries_;
  std::vector<std::string> unreadable_;  // containers
  std::vector<std::string> results_;     // names of files: "NETWORK-CONTAINER-IFNAME", Multus: "CONTAINER"
  bool complete_ = false;
};

// What an operator wants to know of the node's address store: how full each pool is, what has
// been counted, and what has happened since the last look (ipam/store/events.h).
// Threads: none; takes the store's lock for a moment. Errors: as AddressStore.

struct PoolFacts {
  std::string pool;
  std::uint64_t held = 0;
  std::uint64_t resting = 0;
  std::uint64_t quarantined = 0;
  ipam::PoolCounters counters;
};

struct AddressFacts {
  ipam::StoreCounters store;
  std::vector<PoolFacts> pools;            // by name
  std::vector<ipam::AddressEvent> events;  // oldest first
};

// `after`: the number of the last event that is known; only later ones are told.
Result<AddressFacts> ReadAddressFacts(const Root& root, std::uint64_t after);

// "10.1.0.7 of 10.1.0.0/24 was given again after 75 s of rest: ..."
std::string Sentence(const ipam::AddressEvent& event);

}  // namespace railhead::reconcile
