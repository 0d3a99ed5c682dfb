// The sender of a datagram, from the 40 bytes in front of the datagram.
#include "netns/verbs/datagrams.h"

#include <gtest/gtest.h>

#include <array>

namespace railhead::testing {
namespace {

using Headers = std::array<std::uint8_t, 40>;

// IPv4, 10.100.0.1 to 10.100.0.2, in the last 20 bytes; its checksum is right.
Headers Ipv4(std::uint8_t before) {
  Headers headers{};
  headers.fill(before);
  const std::array<std::uint8_t, 20> ip = {0x45, 0,    0,  60,  0, 1, 0,  0,   64, 17,
                                           0x65, 0xe6, 10, 100, 0, 1, 10, 100, 0,  2};
  std::copy(ip.begin(), ip.end(), headers.begin() + 20);
  return headers;
}

Headers Ipv6() {
  Headers headers{};
  headers[0] = 0x60;
  headers[8] = 0xfd;
  headers[23] = 7;
  return headers;
}

TEST(DatagramSenderTest, OfIpv4IsInTheLastPart) {
  EXPECT_EQ(SenderIn(Ipv4(0)), IpAddress::Parse("10.100.0.1"));
  EXPECT_EQ(SenderIn(Ipv4(0x6f)), IpAddress::Parse("10.100.0.1")) << "what stands before it may be anything";
}

TEST(DatagramSenderTest, OfIpv6IsInTheFirst) {
  EXPECT_EQ(SenderIn(Ipv6()), IpAddress::Parse("fd00::7"));
  Headers like_ipv4 = Ipv6();
  like_ipv4[20] = 0x45;
  EXPECT_EQ(SenderIn(like_ipv4), IpAddress::Parse("fd00::4500:7"))
      << "an address that begins as an IPv4 header does";
}

TEST(DatagramSenderTest, OfAnythingElseIsNobody) {
  EXPECT_FALSE(SenderIn(Headers{}));
  const Headers ipv6 = Ipv6();
  EXPECT_FALSE(SenderIn(std::span(ipv6).first(39)));
  Headers options = Ipv4(0);
  options[20] = 0x46;
  EXPECT_FALSE(SenderIn(options));
}

}  // namespace
}  // namespace railhead::testing
