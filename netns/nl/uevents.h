// The kernel's announcements of devices that come, go, are renamed, bound or unbound.
//
// NETLINK_KOBJECT_UEVENT, group 1: the kernel's own, not udev's. A message is "ACTION@DEVPATH" and then
// KEY=VALUE, each ended by a zero (lib/kobject_uevent.c). Announcements of network devices reach only sockets
// in the device's own network namespace. Those of PCI functions reach every network namespace of the first
// user namespace.
// Ownership: move-only, owns the descriptor. Threads: one at a time.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/base/unique_fd.h"
#include "netns/nl/socket.h"
#include "netns/ns/netns.h"

namespace railhead {

class Uevents {
 public:
  // In the calling thread's network namespace.
  static Result<Uevents> Open();

  // Becomes readable with the next announcement.
  [[nodiscard]] int fd() const { return fd_.get(); }
  // Takes all pending messages. true: one is about a NIC, an accelerator or an RDMA device, or the kernel had
  // to drop some.
  bool TakeRelevant();

 private:
  explicit Uevents(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

// Whether one message is about such a device. Network devices without a bus (veth, bridges: two for each pod)
// do not count.
bool IsRelevantUevent(std::string_view message);

}  // namespace railhead

namespace railhead::nl {

// Waiting for links and neighbours by the kernel's events. Internal to netns/nl.
//
// Each function first asks by `socket`. If it has to wait, it opens a second socket in `ns`, which hears
// events. It asks again after the subscription, and again after lost events. So it misses no change.
// Errors are the kernel's words alone: the caller adds what it was waiting for.
// Threads: one at a time per socket.

// As RouteApi::WaitCarrier.
Result<bool> WaitCarrier(Socket& socket, const NetNs& ns, int index,
                         std::chrono::steady_clock::time_point deadline);

// As RouteApi::WaitNeighbour. Calls `ask` every second, and when the kernel has given up asking (after about
// 3 s). If no entry exists, it only waits.
Result<std::optional<MacAddress>> WaitNeighbour(Socket& socket, const NetNs& ns, int index,
                                                const IpAddress& address,
                                                const std::function<Result<void>()>& ask,
                                                std::chrono::steady_clock::time_point deadline);

}  // namespace railhead::nl
