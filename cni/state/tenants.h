// Who had each device last: the pods of one namespace are one tenant.
//
// One small file per device below /run/railhead, so that a record lives as long as the boot: VFs are made
// anew by it, and a record that outlived it would say nothing. A device without a record has been nobody's
// since it was made anew. ADD writes the record before its first change, and only if it says something else;
// who resets the device removes it. A process that is killed in between costs another reset and nothing else.
//
// A record that cannot be read counts as somebody else's, of whom something may be left.
// Threads and processes: callers hold the device's lock. Errors: kIo.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cni/protocol/plugin.h"
#include "cni/state/journal.h"
#include "netns/base/addresses.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/json/record.h"

namespace railhead {

struct Tenant {
  std::string pod_namespace;  // "": a call without a pod
  std::string pod;            // "NAMESPACE/NAME", for messages; "": likewise
  std::string left;           // why something of it may still work on the device; "": nothing is known

  bool operator==(const Tenant&) const = default;
};

template <>
struct Shape<Tenant> {
  static void List(auto& f) {
    f("namespace", &Tenant::pod_namespace, kPresentField);
    f("pod", &Tenant::pod, kPresentField);
    f("left", &Tenant::left, kSparseField);
  }
};

Tenant TenantOf(const CniArgs& args);
// "pod jobs/train-0", "a container without a pod"
std::string Describe(const Tenant& tenant);

Result<std::optional<Tenant>> ReadTenant(const Root& root, const std::string& device);
Result<void> WriteTenant(const Root& root, const std::string& device, const Tenant& tenant);
Result<void> RemoveTenant(const Root& root, const std::string& device);
// Sets `left` of a device that has a record.
Result<void> MarkLeft(const Root& root, const std::string& device, const std::string& why);
// The devices that have a record.
Result<std::vector<std::string>> ListTenantDevices(const Root& root);

// What ADD's address probes heard from others: lines in the log of attach timings (attach_log.h).
//
// The next ADD compares with them (cni/attachment/conflicts.h); railheadd and `railctl doctor` report
// stations that claim many addresses. Bounded and lost with the boot, as the log is. What cannot be logged is
// dropped. Threads: thread-safe. Errors: as ReadFile().

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

}  // namespace railhead
