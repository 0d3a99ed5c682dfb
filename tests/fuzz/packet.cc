// Ethernet frames that any host may have sent: ARP and neighbour discovery.
#include "netns/packet/conflict.h"
#include "netns/packet/received_frames.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using railhead::fuzz::Require;
  const std::span<const std::uint8_t> frame(data, size);
  const auto arp = railhead::ParseArp(frame);
  const auto neighbour = railhead::ParseNeighbourMessage(frame);
  Require(!arp || !neighbour, "a frame is ARP or neighbour discovery, not both");
  Require(!arp || (arp->sender.IsV4() && arp->target.IsV4()), "ARP is about IPv4");
  Require(!neighbour || (neighbour->target.IsV6() && !neighbour->target.IsMulticast()),
          "neighbour discovery is about IPv6 unicast addresses");
  const railhead::MacAddress own{{0x02, 0, 0, 0, 0, 1}};
  for (const char* address : {"10.100.0.10", "fd00::10"}) {
    const railhead::ProbeTarget target{1, own, *railhead::IpAddress::Parse(address)};
    const auto conflict = railhead::ConflictIn(frame, target, {own});
    Require(conflict != own, "our own frames are no conflict");
  }
  return 0;
}
