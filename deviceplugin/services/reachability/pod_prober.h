// PodProber: what pods reach on their rails, looked at from inside their network namespaces: the gateway by
// ARP or neighbour discovery, and stations that this node itself reaches, by UDP from the pod's address; and
// whether they find back.
//
// A pod's namespace is held for one look only, so that its NICs come home when it ends.
// Ownership: borrows the kernel. Threads: one at a time. Needs CAP_NET_RAW and CAP_SYS_ADMIN.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "cni/state/journal_cache.h"
#include "deviceplugin/services/reachability/reach_report.h"
#include "deviceplugin/services/reachability/reachability_settings.h"
#include "deviceplugin/support/keys/shared_keys.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead::reachability {

// PodLook: what one interface of a pod reaches of its rail, looked at once from inside the pod's namespace.
//
// The gateway by ARP or neighbour discovery, stations by UDP, the gateway by ICMP echo as well. The first
// asks whether somebody is there; the others whether he finds back: who has an old MAC address for the pod's,
// as after that address was another pod's, answers the first alone. When the pod's address is announced anew
// and he then answers, that was it, and it is mended. Threads: any. Errors: what the kernel refused. Needs
// CAP_NET_RAW and CAP_SYS_ADMIN.

// What of a rail a pod is probed against.
struct PodTarget {
  std::optional<IpAddress> gateway;
  std::vector<IpAddress> stations;  // that the node itself reaches
  bool dead = false;                // on the node itself: then a pod's trouble is no news
  int traffic_class = 0;            // of what is sent to stations
};

struct PodLookOptions {
  std::uint16_t port = 0;            // of stations
  bool echo = true;                  // ask the gateway for an ICMP echo, too
  const SharedKeys* keys = nullptr;  // for Fire()
  bool may_announce = true;          // the pod's addresses, when somebody does not find back
};

struct PodLook {
  bool ready = false;                // the interface can send
  std::optional<bool> gateway;       // answers ARP or neighbour discovery
  std::optional<bool> gateway_echo;  // answers ICMP echo; nullopt: was not asked
  std::uint32_t sent = 0;            // to stations
  std::uint32_t answered = 0;
  bool announced = false;
  std::vector<IpAddress> stale;  // had an old MAC address for the pod's, and no more
};

Result<PodLook> LookFromPod(Kernel& kernel, const NetNs& pod, const AttachedDevice& link,
                            const PodTarget& target, const PodLookOptions& options);

class PodProber {
 public:
  using Clock = std::chrono::steady_clock;
  using Wall = std::chrono::system_clock;

  using Targets = std::map<std::string, PodTarget>;  // by rail

  explicit PodProber(Kernel& kernel) : kernel_(kernel) {}

  // Looks at those that are due, a few of them; forgets pods that are gone. `keys`: as for Fire().
  void Round(const JournalCache::Entries& attachments, const Targets& targets,
             const ConnectivitySettings& settings, const SharedKeys* keys);
  [[nodiscard]] std::vector<PodReach> Reaches() const;
  // How often, so far, somebody on the rail had an old MAC address for a pod's.
  [[nodiscard]] std::uint64_t StaleSoFar(const std::string& rail) const;
  // From any thread: the round ends after the look that it is at.
  void Stop() { stopped_ = true; }

 private:
  struct Known {
    PodReach reach;
    Clock::time_point due;
    int bad = 0;  // looks in a row
    int looks = 0;
    bool echoed = false;     // the gateway has answered an echo request
    bool announced = false;  // in vain: not again before all is well
  };
  Result<PodLook> LookFrom(const JournalEntry& entry, const AttachedDevice& link, const PodTarget& target,
                           const PodLookOptions& base, Known* known);

  static void NameOwner(const JournalEntry& entry, const AttachedDevice& link, PodReach* reach);
  static void Judge(const PodLook& look, const std::string& failure, const PodTarget& target, Known* known);

  Kernel& kernel_;
  std::atomic<bool> stopped_{false};
  std::map<std::string, Known> known_;          // by attachment and interface
  std::map<std::string, std::uint64_t> stale_;  // by rail
};

}  // namespace railhead::reachability
