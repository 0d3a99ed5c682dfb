// LLDP frames: what the switch port at the other end of a cable says of itself.
//
// A frame is taken when it begins with the three TLVs that each must (chassis id, port id, time to
// live), in this order and once each, and no TLV reaches beyond the end. Of the others those are read
// that are named below; unknown ones and ones of a wrong length are passed over, as the standard
// has it, and of two of a kind the first counts. Management addresses are not read.
// Texts are what another machine chose: at most 255 characters, all printable ASCII; each other byte is
// a '?', blanks and zeroes at their ends are cut off. Ids that are binary are written in hexadecimal.
// Source: IEEE 802.1AB-2016, 8 (format) and 9.2.8 (what a receiver checks); 802.1Q-2018 D.2.1 (port
// VLAN), 802.3-2018 79.3.4 (frame size).
// Threads: pure functions. Errors: none; what is no LLDP frame is nullopt.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "netns/base/result.h"
#include "netns/base/unique_fd.h"
#include "netns/ns/netns.h"

namespace railhead {

struct LldpNeighbor {
  std::string chassis;           // its id as text: a MAC, an address, a name; never empty
  std::string port;              // likewise
  std::chrono::seconds ttl{0};   // how long this holds; 0: the neighbor says that it ends
  std::string port_description;  // "": not told
  std::string system_name;       // "": not told
  bool port_is_mac = false;      // the port's id is a MAC, which says little to people
  std::optional<int> port_vlan;  // of untagged frames
  std::optional<int> max_frame;  // bytes of the largest frame, headers included

  // What people call the switch and its port: the system's name, else the chassis id; the port's id, but
  // for a MAC its description, where there is one.
  [[nodiscard]] const std::string& SwitchName() const { return system_name.empty() ? chassis : system_name; }
  [[nodiscard]] const std::string& Port() const {
    return port_is_mac && !port_description.empty() ? port_description : port;
  }
  // Whether both are of one port: what the standard tells neighbors apart by.
  [[nodiscard]] bool IsSamePort(const LldpNeighbor& other) const {
    return chassis == other.chassis && port == other.port;
  }

  bool operator==(const LldpNeighbor&) const = default;
};

// `frame` begins with its Ethernet header.
std::optional<LldpNeighbor> ParseLldp(std::span<const std::uint8_t> frame);

// LldpListener: hears the LLDP frames that arrive on one network device. It sends nothing.
//
// A packet socket for that protocol and that device alone, which joins the three groups that LLDP is sent
// to (IEEE 802.1AB-2016 table 7-1): the NIC lets these frames pass only while somebody has joined. Others
// that listen, lldpd for one, hear the same frames. What the host itself sends and what a VLAN of the
// device carries is not heard. Some NICs' firmware keeps LLDP to itself: docs/operate/switch-ports.md.
//
// While the device is down nothing comes, and nothing has to be done when it is up again; once it has left
// the namespace, or is gone, nothing will come any more, which this does not tell
// (packet_notifier in net/packet/af_packet.c). Names may change: the socket goes by the number.
// Ownership: move-only, owns the socket; closing it waits for an RCU grace period. Threads: one at a time.
// Needs CAP_NET_RAW. Errors: kNotFound without such a device, kPermission, else what the kernel refused.

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
  Result<std::optional<LldpNeighbor>> Receive(std::chrono::steady_clock::time_point deadline);

 private:
  LldpListener(UniqueFd fd, int link) : fd_(std::move(fd)), link_(link) {}
  UniqueFd fd_;
  int link_;
};

}  // namespace railhead
