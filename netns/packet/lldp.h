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

namespace railhead {

struct LldpNeighbour {
  std::string chassis;           // its id as text: a MAC, an address, a name; never empty
  std::string port;              // likewise
  std::chrono::seconds ttl{0};   // how long this holds; 0: the neighbour says that it ends
  std::string port_description;  // "": not told
  std::string system_name;       // "": not told
  bool port_is_mac = false;      // the port's id is a MAC, which says little to people
  std::optional<int> port_vlan;  // of untagged frames
  std::optional<int> max_frame;  // bytes of the largest frame, headers included

  // What people call the switch and its port: the system's name, else the chassis id; the port's id, but
  // for a MAC its description, where there is one.
  [[nodiscard]] const std::string& Leaf() const { return system_name.empty() ? chassis : system_name; }
  [[nodiscard]] const std::string& Port() const {
    return port_is_mac && !port_description.empty() ? port_description : port;
  }
  // Whether both are of one port: what the standard tells neighbours apart by.
  [[nodiscard]] bool IsSamePort(const LldpNeighbour& other) const {
    return chassis == other.chassis && port == other.port;
  }

  bool operator==(const LldpNeighbour&) const = default;
};

// `frame` begins with its Ethernet header.
std::optional<LldpNeighbour> ParseLldp(std::span<const std::uint8_t> frame);

}  // namespace railhead
