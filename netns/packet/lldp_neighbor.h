// LLDP frames: a switch port's description of itself, from the other end of a cable.
//
// A valid frame begins with the three mandatory TLVs (chassis id, port id, time to live), in this order and
// once each. No TLV reaches beyond the end. Of the others this reads those that are named below. As the
// standard requires, it ignores unknown ones and ones of a wrong length. Of two of a kind the first counts.
// Management addresses are not read.
// Texts come from another machine: at most 255 characters, all printable ASCII. Each other byte is a '?';
// blanks and zeroes at the ends are cut off. Binary ids are written in hexadecimal.
// Source: IEEE 802.1AB-2016, 8 (format) and 9.2.8 (the receiver's checks); 802.1Q-2018 D.2.1 (port VLAN)
// and D.2.3 (VLAN names), 802.3-2018 79.3.4 (frame size).
// Threads: pure functions. Errors: none; a frame that is not LLDP is nullopt.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>

namespace railhead {

struct LldpNeighbor {
  std::string chassis;           // its id as text: a MAC, an address, a name; never empty
  std::string port;              // likewise
  std::chrono::seconds ttl{0};   // how long this holds; 0: the neighbor says that it ends
  std::string port_description;  // "": not sent
  std::string system_name;       // "": not sent
  bool port_is_mac = false;      // the port's id is a MAC, which says little to people
  std::optional<int> port_vlan;  // of untagged frames
  std::set<int> vlans;           // that the port names, port_vlan perhaps among them
  std::optional<int> max_frame;  // bytes of the largest frame, headers included

  // Names for people. The switch: the system's name, else the chassis id. The port: its id, but for a MAC the
  // port's description, if there is one.
  [[nodiscard]] const std::string& SwitchName() const { return system_name.empty() ? chassis : system_name; }
  [[nodiscard]] const std::string& Port() const {
    return port_is_mac && !port_description.empty() ? port_description : port;
  }
  // Whether both are of one port: the standard distinguishes neighbors by this.
  [[nodiscard]] bool IsSamePort(const LldpNeighbor& other) const {
    return chassis == other.chassis && port == other.port;
  }

  bool operator==(const LldpNeighbor&) const = default;
};

// `frame` begins with its Ethernet header.
std::optional<LldpNeighbor> ParseLldp(std::span<const std::uint8_t> frame);

}  // namespace railhead
