// The MAC that a VF gets by the policy "derived": always the same, whatever the node's
// other hardware is, so that switches, neighbours and DHCP know it again after a reboot.
//
//   byte 0      H H H H 0 0 1 0    local, unicast; 0 0: administratively assigned (the
//   byte 1      H H H H H H H H    SLAP of IEEE 802c), so in no quadrant that others may claim
//   bytes 2-4   the last three bytes of the PF's permanent MAC
//   byte 5      the VF's index
//
// H: 12 bits of a hash of the PF's OUI (FNV-1a over its three bytes, 32 bits, folded by xor).
// No two VFs of PFs with one OUI share a MAC, for the index has a byte of its own: it is
// not added to the PF's MAC, with which the ports of one NIC (consecutive MACs) would meet.
// PFs of different OUIs meet only where both the hash and the last three bytes are equal.
// Changing any of this changes the addresses of running fabrics.
// Threads: pure function.
#pragma once

#include "netns/base/mac_address.h"

namespace railhead {

// How many VFs of a PF have a derived MAC.
inline constexpr int kDerivedVfMacs = 256;

// `index` is in 0..kDerivedVfMacs - 1.
MacAddress DerivedVfMac(const MacAddress& pf, int index);

}  // namespace railhead
