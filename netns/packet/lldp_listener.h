// LldpListener: hears the LLDP frames that arrive on one network device. It sends nothing.
//
// A packet socket for that protocol and that device alone, which joins the three groups that LLDP is sent
// to (IEEE 802.1AB-2016 table 7-1): the NIC lets these frames pass only while somebody has joined. Others
// that listen, lldpd for one, hear the same frames. What the host itself sends and what a VLAN of the
// device carries is not heard. Some NICs' firmware keeps LLDP to itself: docs/fabric-topology.md.
//
// While the device is down nothing comes, and nothing has to be done when it is up again; once it has left
// the namespace, or is gone, nothing will come any more, which this does not tell
// (packet_notifier in net/packet/af_packet.c). Names may change: the socket goes by the number.
// Ownership: move-only, owns the socket; closing it waits for an RCU grace period. Threads: one at a time.
// Needs CAP_NET_RAW. Errors: kNotFound without such a device, kPermission, else what the kernel refused.
#pragma once

#include <chrono>
#include <optional>
#include <utility>

#include "netns/base/result.h"
#include "netns/base/unique_fd.h"
#include "netns/ns/netns.h"
#include "netns/packet/lldp.h"

namespace railhead {

class LldpListener {
 public:
  // `link`: the device's number in `ns`.
  static Result<LldpListener> Open(const NetNs& ns, int link);

  // Becomes readable when there is something to Receive().
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] int link() const { return link_; }

  // The next frame that is one, whatever else came before it; nullopt: none by the deadline. With a deadline
  // that has passed it takes what is there and does not wait. Looks at 64 frames at most, so that a flood of
  // such that are none does not hold it up; then it is as if there were none.
  Result<std::optional<LldpNeighbour>> Receive(std::chrono::steady_clock::time_point deadline);

 private:
  LldpListener(UniqueFd fd, int link) : fd_(std::move(fd)), link_(link) {}
  UniqueFd fd_;
  int link_;
};

}  // namespace railhead
