// Answers to ADD's address probes from other hosts: records in the log of attach timings (attach_log.h).
//
// The next ADD compares with them. railheadd and `railctl doctor` report hosts that answer for many
// addresses. The records are bounded and lost with the boot, as the log is. A record that cannot be written
// is dropped. Threads: thread-safe. Errors: as ReadFile().
#pragma once

#include <chrono>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "netns/base/addresses.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/json/record.h"
#include "netns/packet/conflict.h"

namespace railhead {

struct ConflictRecord {
  AttachmentKey key;  // whose ADD probed
  std::string device;
  IpAddress address;
  MacAddress mac;                         // as the answer says
  MacAddress source;                      // of the frame (AddressConflict::source)
  std::chrono::milliseconds boottime{0};  // CLOCK_BOOTTIME
  bool ignored = false;                   // ADD went on: the host answers for too many addresses

  bool operator==(const ConflictRecord&) const = default;
};

template <>
struct Shape<ConflictRecord> {
  static void List(auto& f) {
    f("boottimeMs", &ConflictRecord::boottime, {.min = 0});
    f.Part(&ConflictRecord::key);
    f("device", &ConflictRecord::device, kRequiredField);
    f("conflictAddress", &ConflictRecord::address, kRequiredField);
    f("conflictMac", &ConflictRecord::mac, kRequiredField);
    f("source", &ConflictRecord::source, kRequiredField);
    f("ignored", &ConflictRecord::ignored);
  }
};

// CLOCK_BOOTTIME: a step of the wall clock does not change the age of a record.
std::chrono::milliseconds BoottimeNow();

void LogConflict(const Root& root, const ConflictRecord& record);
// All records of the log, the oldest first.
Result<std::vector<ConflictRecord>> ReadConflicts(const Root& root);

// A host whose answers ADDs ignored.
struct ConflictSource {
  MacAddress mac;  // ConflictRecord::source
  std::set<IpAddress> addresses;
  std::size_t answers = 0;
  std::string pod;                      // "namespace/name" of this node's pod with that MAC; "": unknown
  std::chrono::milliseconds latest{0};  // ConflictRecord::boottime

  // "02:.. (pod jobs/a) answers for 7 addresses, 10.0.0.4 among them"
  [[nodiscard]] std::string ToString() const;
};

// By what the log has later than `since`. Reads the journal for the pods.
Result<std::vector<ConflictSource>> ListConflictSources(const Root& root, std::chrono::milliseconds since);

// Which answers to ADD's address probes are conflicts.
//
// A host that answers for one or two addresses of a rail uses them: that is a conflict. A host that answers
// for more answers every probe: an attacking pod, or a router's proxy ARP. If each answer were a conflict,
// one such pod would stop every ADD of its VLAN. So these answers are ignored and reported. The frame's
// source (AddressConflict::source) identifies a host, for each address family separately: a host has an
// address of each.

inline constexpr std::size_t kMaxAddressesOfHost = 2;
// For how long a record counts.
inline constexpr std::chrono::hours kConflictLifetime{1};
// Two records of one host and address confirm each other when they are this far apart.
inline constexpr std::chrono::seconds kConfirmAfter{60};

struct ConflictVerdict {
  std::vector<AddressConflict> conflicts;
  std::vector<IpAddress> confirmed;  // of those: the same host answered for it earlier, too
  std::vector<AddressConflict> ignored;
};

// `earlier`: of this boot; `now`: as ConflictRecord::boottime.
ConflictVerdict JudgeConflicts(const std::vector<AddressConflict>& found,
                               const std::vector<ConflictRecord>& earlier, std::chrono::milliseconds now);

}  // namespace railhead
