// ProbeFromPod: one probe of a rail from one interface of a pod.
//
// The gateway is probed by ARP or neighbour discovery and by ICMP echo, endpoints by UDP. An answer to ARP
// goes to the MAC that asked. All other answers go to the MAC that the other host has for the pod's address.
// If another pod had the address before, a host may have its stale MAC: then it answers ARP only. railheadd
// announces the address again. If the host answers after that, its entry was stale and is fixed now.
// Threads: any. Errors: the kernel's refusals. Needs CAP_NET_RAW and CAP_SYS_ADMIN.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

#include "cni/state/journal.h"
#include "deviceplugin/support/keys/shared_keys.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead::reachability {

// The targets that a pod of a rail probes.
struct PodTarget {
  std::optional<IpAddress> gateway;
  std::vector<IpAddress> endpoints;  // the node itself reaches them
  bool dead = false;                 // from the node itself, which explains a pod's fault
  int traffic_class = 0;             // of probes to endpoints
};

struct PodProbeOptions {
  std::uint16_t port = 0;            // of endpoints
  bool echo = true;                  // send the gateway an ICMP echo request, too
  const SharedKeys* keys = nullptr;  // for SendProbes()
  bool may_announce = true;          // the pod's addresses, when a host has a stale MAC
};

struct PodProbeResult {
  bool ready = false;                // the interface can send
  std::optional<bool> gateway;       // answers ARP or neighbour discovery
  std::optional<bool> gateway_echo;  // answers ICMP echo; nullopt: was not asked
  std::uint32_t sent = 0;            // to endpoints
  std::uint32_t answered = 0;
  bool announced = false;
  std::vector<IpAddress> stale;  // had a stale MAC for the pod, fixed now
};

Result<PodProbeResult> ProbeFromPod(Kernel& kernel, const NetNs& pod, const AttachedDevice& link,
                                    const PodTarget& target, const PodProbeOptions& options);

}  // namespace railhead::reachability
