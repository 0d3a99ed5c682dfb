// PodProber: probes the rails from inside the pods' network namespaces.
//
// It probes the gateway by ARP or neighbour discovery. It probes endpoints that this node itself reaches by
// UDP from the pod's address. It also finds hosts with a stale MAC address for the pod. A pod's namespace is
// held for one probe only, so that its NICs can return to the host when the pod ends.
// Ownership: borrows the kernel. Threads: one at a time. Needs CAP_NET_RAW and CAP_SYS_ADMIN.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "cni/state/journal_cache.h"
#include "deviceplugin/services/reachability/probe_from_pod.h"
#include "deviceplugin/services/reachability/reachability_report.h"
#include "deviceplugin/services/reachability/reachability_settings.h"
#include "deviceplugin/support/keys/shared_keys.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead::reachability {

class PodProber {
 public:
  using Clock = std::chrono::steady_clock;
  using Wall = std::chrono::system_clock;

  using Targets = std::map<std::string, PodTarget>;  // by rail

  explicit PodProber(Kernel& kernel) : kernel_(kernel) {}

  // Probes a few of the pods that are due; drops pods that are gone. `keys`: as for SendProbes(). After
  // `stop` the round ends with the current pod.
  void Round(const JournalCache::Entries& attachments, const Targets& targets,
             const ReachabilitySettings& settings, const SharedKeys* keys, const std::stop_token& stop);
  [[nodiscard]] std::vector<PodReachability> Pods() const;
  // How many hosts of the rail had a stale MAC for a pod so far.
  [[nodiscard]] std::uint64_t StaleSoFar(const std::string& rail) const;

 private:
  struct PodRecord {
    PodReachability reach;
    Clock::time_point due;
    int bad = 0;  // probes in a row
    int probes = 0;
    bool echoed = false;     // the gateway has answered an echo request
    bool announced = false;  // without success: not again before every probe succeeds
  };
  Result<PodProbeResult> ProbeFrom(const JournalEntry& entry, const AttachedDevice& link,
                                   const PodTarget& target, const PodProbeOptions& base, PodRecord* record);

  static void NameOwner(const JournalEntry& entry, const AttachedDevice& link, PodReachability* reach);
  static void Judge(const PodProbeResult& result, const std::string& failure, const PodTarget& target,
                    PodRecord* record);

  Kernel& kernel_;
  std::map<std::string, PodRecord> records_;    // by attachment and interface
  std::map<std::string, std::uint64_t> stale_;  // by rail
};

}  // namespace railhead::reachability
