// The kernel's announcements of devices that come, go, are renamed, bound or unbound.
//
// NETLINK_KOBJECT_UEVENT, group 1: the kernel's own, not udev's. A message is
// "ACTION@DEVPATH" and then KEY=VALUE, each ended by a zero (lib/kobject_uevent.c). Those of
// network devices reach only sockets in the device's own network namespace; those of PCI
// functions all that belong to the first user namespace.
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
  // Takes all that has come; whether some of it is about a NIC, an accelerator or an RDMA
  // device. Also true when the kernel had to drop some: then nobody knows.
  bool TakeRelevant();

 private:
  explicit Uevents(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

// Whether one message is about such a device. Network devices that are on no bus (veth,
// bridges: two for each pod) are none.
bool IsRelevantUevent(std::string_view message);

}  // namespace railhead

namespace railhead::nl {

// Waiting for links and neighbours by the kernel's events. Internal to netns/nl.
//
// Each looks first, by `socket`; only what is not there yet costs a second socket,
// opened in `ns`, that hears events. What changes between the first look and the
// subscription is found by looking again, and so is what the kernel says it dropped.
// Errors are the kernel's words alone: the caller says what it was waiting for.
// Threads: one at a time per socket.

// As RouteApi::WaitCarrier.
Result<bool> WaitCarrier(Socket& socket, const NetNs& ns, int index,
                         std::chrono::steady_clock::time_point deadline);

// As RouteApi::WaitNeighbour. `ask` is called every second, and when the kernel has
// given up asking (after about 3 s); an entry that does not exist is only waited for.
Result<std::optional<MacAddress>> WaitNeighbour(Socket& socket, const NetNs& ns, int index,
                                                const IpAddress& address,
                                                const std::function<Result<void>()>& ask,
                                                std::chrono::steady_clock::time_point deadline);

}  // namespace railhead::nl
