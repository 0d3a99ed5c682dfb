// What ADD's address probes heard from others: lines in the log of attach timings (attach_log.h).
//
// The next ADD compares with them; railheadd and `railctl doctor` report
// stations that claim many addresses. Bounded and lost with the boot, as the log is. What cannot be logged is
// dropped. Threads: thread-safe. Errors: as ReadFile().
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

struct RivalClaim {
  AttachmentKey key;  // whose ADD probed
  std::string device;
  IpAddress address;
  MacAddress mac;                         // as the answer says
  MacAddress source;                      // of the frame (AddressConflict::source)
  std::chrono::milliseconds boottime{0};  // CLOCK_BOOTTIME
  bool ignored = false;                   // its station claims too many addresses: ADD went on

  bool operator==(const RivalClaim&) const = default;
};

template <>
struct Shape<RivalClaim> {
  static void List(auto& f) {
    f("boottimeMs", &RivalClaim::boottime, {.min = 0});
    f.Part(&RivalClaim::key);
    f("device", &RivalClaim::device, kRequiredField);
    f("claimed", &RivalClaim::address, kRequiredField);
    f("by", &RivalClaim::mac, kRequiredField);
    f("source", &RivalClaim::source, kRequiredField);
    f("ignored", &RivalClaim::ignored);
  }
};

// CLOCK_BOOTTIME: no step of the wall clock makes a claim older or newer.
std::chrono::milliseconds BoottimeNow();

void LogRivalClaim(const Root& root, const RivalClaim& claim);
// All that are in the log, the oldest first.
Result<std::vector<RivalClaim>> ReadRivalClaims(const Root& root);

// A station whose claims were ignored.
struct Claimant {
  MacAddress source;
  std::set<IpAddress> addresses;
  std::size_t claims = 0;
  std::string pod;                      // "namespace/name" of this node's pod with that MAC; "": unknown
  std::chrono::milliseconds latest{0};  // RivalClaim::boottime

  // "02:.. (pod jobs/a) claims 7 addresses, 10.0.0.4 among them"
  [[nodiscard]] std::string ToString() const;
};

// By what the log has later than `since`. Reads the journal for the pods.
Result<std::vector<Claimant>> ListClaimants(const Root& root, std::chrono::milliseconds since);

// Which answers to ADD's address probes are conflicts.
//
// A station with one or two addresses of a rail is a host: its address is in use. A station that claims more
// answers for whatever is asked: a pod that attacks, or a router's proxy ARP. If that were a conflict each
// time, one such pod would stop every ADD of its VLAN. So its claims are ignored and reported. Stations are
// told apart by the frame's source (AddressConflict::source), for each address family alone: a host has an
// address of each.

inline constexpr std::size_t kMostAddressesOfStation = 2;
// For how long a claim counts.
inline constexpr std::chrono::hours kClaimCounts{1};
// Between two claims of an address by one station that confirm each other.
inline constexpr std::chrono::seconds kClaimConfirms{60};

struct ConflictVerdict {
  std::vector<AddressConflict> conflicts;
  std::vector<IpAddress> confirmed;  // of those: the same station claimed it at an earlier time, too
  std::vector<AddressConflict> ignored;
};

// `earlier`: of this boot; `now`: as RivalClaim::boottime.
ConflictVerdict JudgeConflicts(const std::vector<AddressConflict>& found,
                               const std::vector<RivalClaim>& earlier, std::chrono::milliseconds now);

}  // namespace railhead
