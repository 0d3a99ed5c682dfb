// Finds the attachments that use addresses of railhead-ipam on this node.
//
// Below `railhead` the journal names the owner of each address. Below other main plugins only the caches of
// runtimes do (libcni's cache of results, that of Multus). Without such a cache nothing is known.
// Threads: immutable once read. Errors: those of reading the journal and the directories.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "ipam/store/address_record.h"
#include "ipam/store/events.h"
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

// The state of the node's address store for operators: how full each pool is, its counters, and the events
// since the last call (ipam/store/events.h).
// Threads: none; takes the store's lock for a moment. Errors: as AddressStore.

struct PoolFacts {
  std::string pool;
  std::uint64_t held = 0;
  std::uint64_t cooling_down = 0;
  std::uint64_t quarantined = 0;
  ipam::PoolCounters counters;
};

struct AddressFacts {
  std::vector<PoolFacts> pools;            // by name
  std::vector<ipam::AddressEvent> events;  // oldest first
};

// `after`: the number of the last known event; the result has only later ones.
Result<AddressFacts> ReadAddressFacts(const Root& root, std::uint64_t after);

// "10.1.0.7 of 10.1.0.0/24 was reused only 75 s after its release, ..."
std::string Sentence(const ipam::AddressEvent& event);

}  // namespace railhead::reconcile
