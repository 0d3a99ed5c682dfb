// The MAC that a VF gets by the policy "derived". It does not depend on the node's other hardware, so
// switches, neighbours and DHCP recognize it after a reboot.
//
//   byte 0      H H H H 0 0 1 0
//   byte 1      H H H H H H H H
//
//   bytes 2-4   the last three bytes of the PF's permanent MAC
//   byte 5      the VF's index
//
// The last two bits of byte 0: local, unicast. The 0 0 before them select the administratively assigned
// quadrant of IEEE 802c's SLAP, which other schemes may not claim. H: 12 bits of a hash of the PF's OUI
// (FNV-1a over its three bytes, 32 bits, folded by xor). No two VFs of PFs with one OUI share a MAC, since
// the index has a byte of its own. It is not added to the PF's MAC: the ports of one NIC have consecutive
// MACs, so their VFs would meet. PFs of different OUIs meet only where both the hash and the last three bytes
// are equal. Changing any of this changes the addresses of running fabrics. Threads: pure function.
#pragma once

#include "netns/base/addresses.h"

namespace railhead::provision {

// How many VFs of a PF have a derived MAC.
inline constexpr int kDerivedVfMacs = 256;

// `index` is in 0..kDerivedVfMacs - 1.
MacAddress DerivedVfMac(const MacAddress& pf, int index);

}  // namespace railhead::provision
