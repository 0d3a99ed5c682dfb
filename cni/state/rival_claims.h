// What ADD's address probes heard from others: lines in the log of attach timings (attach_log.h).
//
// The next ADD compares with them (cni/attachment/rivals.h); railheadd and `railctl doctor` report stations
// that claim many addresses. Bounded and lost with the boot, as the log is. What cannot be logged is dropped.
// Threads: thread-safe. Errors: as ReadFile().
#pragma once

#include <chrono>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "netns/base/ip_address.h"
#include "netns/base/mac_address.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

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

}  // namespace railhead
