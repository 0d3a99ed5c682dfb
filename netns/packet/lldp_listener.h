// LldpListener: hears the LLDP frames that arrive on one network device. It sends nothing.
//
// A packet socket for that protocol and that device alone. It joins the three groups that LLDP is sent to
// (IEEE 802.1AB-2016 table 7-1): the NIC lets these frames pass only while somebody has joined. Other
// listeners, such as lldpd, hear the same frames. The socket does not hear the host's own frames, nor frames
// of a VLAN of the device. Some NICs' firmware keeps LLDP to itself: docs/operate/switch-ports.md.
//
// While the device is down nothing comes. When it is up again, frames come without further action. Once the
// device has left the namespace, or is gone, nothing comes, and this class does not report that
// (packet_notifier in net/packet/af_packet.c). Names may change: the socket goes by the number.
// Ownership: move-only, owns the socket; closing it waits for an RCU grace period. Threads: one at a time.
// Needs CAP_NET_RAW. Errors: kNotFound without such a device, kPermission, else the kernel's refusal.
#pragma once

#include <chrono>
#include <optional>
#include <utility>

#include "netns/base/result.h"
#include "netns/base/unique_fd.h"
#include "netns/ns/netns.h"
#include "netns/packet/lldp_neighbor.h"

namespace railhead {

class LldpListener {
 public:
  // `link`: the device's number in `ns`.
  static Result<LldpListener> Open(const NetNs& ns, int link);

  // Becomes readable when there is something to Receive().
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] int link() const { return link_; }

  // The next LLDP frame, whatever else came before it; nullopt: none by the deadline. After the deadline it
  // takes a frame that has come already and does not wait. It reads 64 frames at most, so that a flood of
  // other frames does not hold it up; then the result is nullopt, too.
  Result<std::optional<LldpNeighbor>> Receive(std::chrono::steady_clock::time_point deadline);

 private:
  LldpListener(UniqueFd fd, int link) : fd_(std::move(fd)), link_(link) {}
  UniqueFd fd_;
  int link_;
};

}  // namespace railhead
