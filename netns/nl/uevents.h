// The kernel's announcements of devices that come, go, are renamed, bound or unbound.
//
// NETLINK_KOBJECT_UEVENT, group 1: the kernel's own, not udev's. A message is "ACTION@DEVPATH" and then
// KEY=VALUE, each ended by a zero (lib/kobject_uevent.c). Announcements of network devices reach only sockets
// in the device's own network namespace. Those of PCI functions reach every network namespace of the first
// user namespace.
// Ownership: move-only, owns the descriptor. Threads: one at a time.
#pragma once

#include <string_view>
#include <utility>

#include "netns/base/result.h"
#include "netns/base/unique_fd.h"

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
