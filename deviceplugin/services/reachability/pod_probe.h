// PodLook: what one interface of a pod reaches of its rail, looked at once from inside the pod's namespace.
//
// The gateway by ARP or neighbour discovery, stations by UDP, the gateway by ICMP echo as well. The first
// asks whether somebody is there; the others whether he finds back: who has an old MAC address for the pod's,
// as after that address was another pod's, answers the first alone. When the pod's address is announced anew
// and he then answers, that was it, and it is mended. Threads: any. Errors: what the kernel refused. Needs
// CAP_NET_RAW and CAP_SYS_ADMIN.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cni/state/journal.h"
#include "deviceplugin/support/keys/shared_keys.h"
#include "netns/base/ip_address.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead {

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

Result<PodLook> LookFromPod(Kernel& kernel, const NetNs& pod, const AttachedLink& link,
                            const PodTarget& target, const PodLookOptions& options);

}  // namespace railhead
