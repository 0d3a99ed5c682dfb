// ARP and neighbour discovery frames: the parser accepts complete ones, refuses others, and does not read
// beyond a frame.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "netns/packet/conflict.h"
#include "netns/packet/frames.h"
#include "netns/packet/received_frames.h"

namespace railhead {
namespace {

using Frame = std::vector<std::uint8_t>;

const MacAddress kMac = *MacAddress::Parse("02:11:22:33:44:55");
const IpAddress kV4 = *IpAddress::Parse("10.100.0.7");
const IpAddress kV6 = *IpAddress::Parse("fd00:100::7");

Frame With(Frame frame, std::size_t at, std::uint8_t value) {
  frame.at(at) = value;
  return frame;
}

// Frames of neighbour discovery carry a checksum: changes alone would all fail there.
Frame Summed(Frame frame) {
  frame[56] = 0;
  frame[57] = 0;
  std::uint32_t sum = static_cast<std::uint32_t>(frame.size()) - 54 + 58;
  for (std::size_t i = 22; i < frame.size(); ++i) {
    sum += i % 2 == 0 ? std::uint32_t{frame[i]} << 8U : frame[i];
  }
  sum = (sum & 0xffffU) + (sum >> 16U);
  sum = ~((sum & 0xffffU) + (sum >> 16U));
  frame[56] = static_cast<std::uint8_t>(sum >> 8U);
  frame[57] = static_cast<std::uint8_t>(sum);
  return frame;
}

TEST(ReceivedArp, RequestAndReply) {
  ArpPacket wanted;
  wanted.ethernet_to = *MacAddress::Parse("ff:ff:ff:ff:ff:ff");
  wanted.sender_mac = kMac;
  wanted.sender = kV4;
  wanted.target = kV4;
  const Frame frame = GratuitousArp(kMac, kV4);
  EXPECT_EQ(ParseArp(frame), wanted);
  wanted.reply = true;
  EXPECT_EQ(ParseArp(With(frame, 21, 2)), wanted);
  wanted.reply = false;
  wanted.sender = IpAddress();
  EXPECT_EQ(ParseArp(ArpProbe(kMac, kV4)), wanted);
  Frame padded = ArpProbe(kMac, kV4);
  padded.resize(60);
  EXPECT_EQ(ParseArp(padded), wanted);
}

TEST(ReceivedArp, WhatIsNoArpOfEthernetAndIpv4) {
  const Frame good = GratuitousArp(kMac, kV4);
  for (const std::size_t at : {12, 13, 14, 15, 16, 17, 18, 19, 20}) {
    EXPECT_EQ(ParseArp(With(good, at, good[at] ^ 0x40U)), std::nullopt) << at;
  }
  EXPECT_EQ(ParseArp(With(good, 21, 3)), std::nullopt) << "neither request nor reply";
  EXPECT_EQ(ParseArp(With(good, 22, 0x03)), std::nullopt) << "sent by a group";
  Frame nobody = good;
  std::fill_n(nobody.begin() + 22, 6, std::uint8_t{0});
  EXPECT_EQ(ParseArp(nobody), std::nullopt);
}

TEST(ReceivedNeighbourMessage, SolicitationAndAdvertisement) {
  NeighbourMessage wanted;
  wanted.ethernet_from = kMac;
  wanted.source = *IpAddress::Parse("::");
  wanted.target = kV6;
  EXPECT_EQ(ParseNeighbourMessage(NeighbourProbe(kMac, kV6)), wanted);
  Frame padded = NeighbourProbe(kMac, kV6);
  padded.resize(padded.size() + 9, 0xaa);
  EXPECT_EQ(ParseNeighbourMessage(padded), wanted);
  wanted.advertisement = true;
  wanted.source = kV6;
  wanted.target_mac = kMac;
  EXPECT_EQ(ParseNeighbourMessage(UnsolicitedAdvertisement(kMac, kV6)), wanted);
}

TEST(ReceivedNeighbourMessage, WhatAReceiverMustRefuse) {
  const Frame good = UnsolicitedAdvertisement(kMac, kV6);
  const std::vector<std::pair<std::string, std::function<void(Frame&)>>> damages = {
      {"hop limit: it came through a router", [](Frame& f) { f[21] = 254; }},
      {"IP version", [](Frame& f) { f[14] = 0x40; }},
      {"next header", [](Frame& f) { f[20] = 0; }},
      {"too short", [](Frame& f) { f[19] = 23; }},
      {"longer than the frame", [](Frame& f) { f[19] = 33; }},
      {"type", [](Frame& f) { f[54] = 134; }},
      {"code", [](Frame& f) { f[55] = 1; }},
      {"target is a group", [](Frame& f) { f[62] = 0xff; }},
      {"solicited, but to a group", [](Frame& f) { f[58] = 0x60; }},
      {"option of length 0", [](Frame& f) { f[79] = 0; }},
      {"option longer than the message", [](Frame& f) { f[79] = 2; }},
      {"sent by a group", [](Frame& f) { f[6] = 0x03; }},
  };
  ASSERT_TRUE(ParseNeighbourMessage(Summed(good)));
  for (const auto& [what, damage] : damages) {
    Frame bad = good;
    damage(bad);
    EXPECT_EQ(ParseNeighbourMessage(Summed(bad)), std::nullopt) << what;
  }
  EXPECT_EQ(ParseNeighbourMessage(With(good, 57, good[57] ^ 1U)), std::nullopt) << "checksum";
}

TEST(ReceivedNeighbourMessage, ProbesGoToTheirGroupWithoutOptions) {
  const Frame good = NeighbourProbe(kMac, kV6);
  EXPECT_EQ(ParseNeighbourMessage(Summed(With(good, 50, 0))), std::nullopt) << "another group";
  Frame with_option = good;
  with_option.insert(with_option.end(), {1, 1, 2, 0, 0, 0, 0, 9});
  with_option[19] = 32;
  EXPECT_EQ(ParseNeighbourMessage(Summed(with_option)), std::nullopt);
}

TEST(AddressConflicts, OfAnIpv4Address) {
  const ProbeTarget target{5, kMac, kV4};
  const MacAddress other = *MacAddress::Parse("02:00:00:00:00:99");
  const IpAddress another = *IpAddress::Parse("10.100.0.8");
  EXPECT_EQ(ConflictIn(GratuitousArp(other, kV4), target, {kMac}), other);
  EXPECT_EQ(ConflictIn(With(GratuitousArp(other, kV4), 21, 2), target, {kMac}), other) << "a reply";
  EXPECT_EQ(ConflictIn(ArpProbe(other, kV4), target, {kMac}), other);
  EXPECT_EQ(ConflictIn(ArpProbe(other, another), target, {kMac}), std::nullopt);
  EXPECT_EQ(ConflictIn(GratuitousArp(other, another), target, {kMac}), std::nullopt);
  EXPECT_EQ(ConflictIn(GratuitousArp(kMac, kV4), target, {kMac}), std::nullopt) << "reflected";
  EXPECT_EQ(ConflictIn(ArpProbe(kMac, kV4), target, {kMac}), std::nullopt) << "reflected";
  ProbeTarget router = target;
  router.of_router = true;
  EXPECT_EQ(ConflictIn(GratuitousArp(other, kV4), router, {kMac}), other);
  EXPECT_EQ(ConflictIn(ArpProbe(other, kV4), router, {kMac}), std::nullopt) << "another node asks, too";
  EXPECT_EQ(ConflictIn(ArpProbe(other, kV4), target, {kMac, other}), std::nullopt) << "another link of ours";
  // A host that asks for the address wants to talk to it.
  Frame question = GratuitousArp(other, another);
  std::copy_n(kV4.Data(), 4, question.begin() + 38);
  EXPECT_EQ(ConflictIn(question, target, {kMac}), std::nullopt);
  // Device tracking asks one host.
  Frame tracking = ArpProbe(other, kV4);
  std::copy_n(kMac.bytes.begin(), 6, tracking.begin());
  EXPECT_EQ(ConflictIn(tracking, target, {kMac}), std::nullopt);
  EXPECT_EQ(ConflictIn(NeighbourProbe(other, kV6), target, {kMac}), std::nullopt);
}

TEST(AddressConflicts, OfAnIpv6Address) {
  const ProbeTarget target{5, kMac, kV6};
  const MacAddress other = *MacAddress::Parse("02:00:00:00:00:99");
  const IpAddress another = *IpAddress::Parse("fd00:100::1:7");  // of the same group
  EXPECT_EQ(ConflictIn(UnsolicitedAdvertisement(other, kV6), target, {kMac}), other);
  EXPECT_EQ(ConflictIn(NeighbourProbe(other, kV6), target, {kMac}), other);
  EXPECT_EQ(ConflictIn(UnsolicitedAdvertisement(other, another), target, {kMac}), std::nullopt);
  EXPECT_EQ(ConflictIn(NeighbourProbe(other, another), target, {kMac}), std::nullopt);
  EXPECT_EQ(ConflictIn(UnsolicitedAdvertisement(kMac, kV6), target, {kMac}), std::nullopt) << "reflected";
  EXPECT_EQ(ConflictIn(NeighbourProbe(kMac, kV6), target, {kMac}), std::nullopt) << "reflected";
  EXPECT_EQ(ConflictIn(NeighbourProbe(other, kV6), target, {kMac, other}), std::nullopt);
  ProbeTarget router = target;
  router.of_router = true;
  EXPECT_EQ(ConflictIn(UnsolicitedAdvertisement(other, kV6), router, {kMac}), other);
  EXPECT_EQ(ConflictIn(NeighbourProbe(other, kV6), router, {kMac}), std::nullopt) << "another node asks, too";
  EXPECT_EQ(ConflictIn(NeighbourSolicitation(other, another, kV6), target, {kMac}), std::nullopt);
  // Someone who has an address and looks for this one.
  Frame question = NeighbourProbe(other, kV6);
  std::copy_n(another.Data(), 16, question.begin() + 22);
  EXPECT_EQ(ConflictIn(Summed(question), target, {kMac}), std::nullopt);
  // Without the option the sender's own address counts.
  Frame bare = UnsolicitedAdvertisement(other, kV6);
  bare.resize(78);
  bare[19] = 24;
  EXPECT_EQ(ConflictIn(Summed(bare), target, {kMac}), other);
}

// On a heap block of its own size, so that AddressSanitizer sees every byte read
// beyond it.
void ParseExactly(const Frame& frame, std::size_t size) {
  const Frame exact(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(size));
  const auto arp = ParseArp(exact);
  EXPECT_FALSE(arp && arp->sender_mac.IsMulticast());
  const auto message = ParseNeighbourMessage(exact);
  EXPECT_FALSE(message && message->target.IsMulticast());
  (void)ConflictIn(exact, {1, kMac, kV4}, {});
  (void)ConflictIn(exact, {1, kMac, kV6}, {});
}

TEST(Received, TruncatedFrames) {
  for (const Frame& frame : {GratuitousArp(kMac, kV4), ArpProbe(kMac, kV4), NeighbourProbe(kMac, kV6),
                             NeighbourSolicitation(kMac, kV6, kV6), UnsolicitedAdvertisement(kMac, kV6)}) {
    for (std::size_t size = 0; size <= frame.size(); ++size) ParseExactly(frame, size);
    const Frame shorter(frame.begin(), frame.end() - 1);
    EXPECT_EQ(ParseArp(shorter), std::nullopt);
    EXPECT_EQ(ParseNeighbourMessage(shorter), std::nullopt);
  }
}

}  // namespace
}  // namespace railhead
