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
#include "netns/base/result.h"
#include "netns/base/root.h"
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
  bool ignored = false;                   // ADD went on: the host answers for too many addresses, or `crowd`
  std::string pf;                         // of the device, or the device itself; BDF
  bool crowd = false;                     // too many hosts answer on the PF

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
    f("pf", &ConflictRecord::pf);
    f("crowd", &ConflictRecord::crowd);
  }
};

// CLOCK_BOOTTIME: a step of the wall clock does not change the age of a record.
std::chrono::milliseconds BoottimeNow();

void LogConflict(const Root& root, const ConflictRecord& record);
// All records of the log, the oldest first.
Result<std::vector<ConflictRecord>> ReadConflicts(const Root& root);

// A host whose answers ADDs ignored, or the crowd of a PF.
struct ConflictSource {
  MacAddress mac;         // ConflictRecord::source; of a crowd one of them
  std::string pf;         // of a crowd; else ""
  std::size_t hosts = 1;  // of a crowd: how many
  std::set<IpAddress> addresses;
  std::size_t answers = 0;
  std::string pod;                      // "namespace/name" of this node's pod with that MAC; "": unknown
  std::chrono::milliseconds latest{0};  // ConflictRecord::boottime

  // "02:.. (pod jobs/a) answers for 7 addresses, 10.0.0.4 among them", or
  // "9 hosts on PF 0000:43:00.0, 02:.. (no pod of this node) among them, answer for 7 addresses, ..."
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
//
// Where VFs may spoof, a pod answers each probe from another MAC. By chance, or by a leftover configuration,
// a few hosts have addresses of a rail's range, not many within an hour. So once more than kMaxHostsOfPf
// have answered on a PF, no answer there counts until an hour has passed. Real conflicts are then used, too.

inline constexpr std::size_t kMaxAddressesOfHost = 2;
inline constexpr std::size_t kMaxHostsOfPf = 6;
// For how long a record counts.
inline constexpr std::chrono::hours kConflictLifetime{1};
// Two records of one host and address confirm each other when they are this far apart.
inline constexpr std::chrono::seconds kConfirmAfter{60};

// Sets `ignored` and `crowd` of what an ADD has found, all of one moment. Those that are not ignored are
// conflicts. Returns the addresses of conflicts for which the same host answered earlier, too. `earlier`: of
// this boot.
std::vector<IpAddress> JudgeConflicts(const std::vector<ConflictRecord>& earlier,
                                      std::vector<ConflictRecord>* found);

}  // namespace railhead
