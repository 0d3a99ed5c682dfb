// LLDP: frames as bytes, whole and damaged, and heard on the wire.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "netns/packet/lldp_listener.h"
#include "netns/packet/lldp_neighbor.h"
#include "tests/support/netns/lldp_frame.h"
#include "tests/support/netns/stand_in.h"

namespace railhead::testing {
namespace {

const Bytes kChassis = LldpTlv(1, {4, 0x02, 0, 0, 0, 0, 0xaa});
const Bytes kPort = LldpTlv(2, Bytes{5} + BytesOf("Ethernet4"));
const Bytes kTtl = LldpTlv(3, {0, 120});
const Bytes kEnd = LldpTlv(0, {});

std::optional<LldpNeighbor> Parse(const Bytes& tlvs) {
  return ParseLldp(LldpFrame(tlvs));
}

std::string ChassisOf(const Bytes& value) {
  const auto neighbor = Parse(LldpTlv(1, value) + kPort + kTtl + kEnd);
  return neighbor ? neighbor->chassis : "(none)";
}

std::string PortOf(const Bytes& value) {
  const auto neighbor = Parse(kChassis + LldpTlv(2, value) + kTtl + kEnd);
  return neighbor ? neighbor->port : "(none)";
}

// As a SONiC switch sends it.
TEST(LldpFrames, AllThatIsRead) {
  const auto neighbor =
      Parse(kChassis + LldpTlv(2, Bytes{7} + BytesOf("Ethernet4")) + kTtl + LldpTlv(4, BytesOf("etp2a")) +
            LldpTlv(5, BytesOf("leaf3.dc1")) + LldpTlv(6, BytesOf("SONiC")) + LldpTlv(7, {0, 0x14, 0, 0x14}) +
            LldpTlv(8, {5, 1, 10, 0, 0, 1, 2, 0, 0, 0, 1, 0}) + LldpTlv(127, {0x00, 0x80, 0xc2, 1, 0, 100}) +
            LldpTlv(127, {0x00, 0x12, 0x0f, 4, 0x24, 0x00}) + kEnd);
  ASSERT_TRUE(neighbor);
  EXPECT_EQ(neighbor->chassis, "02:00:00:00:00:aa");
  EXPECT_EQ(neighbor->port, "Ethernet4");
  EXPECT_EQ(neighbor->ttl.count(), 120);
  EXPECT_EQ(neighbor->port_description, "etp2a");
  EXPECT_EQ(neighbor->system_name, "leaf3.dc1");
  EXPECT_EQ(neighbor->port_vlan, 100);
  EXPECT_EQ(neighbor->max_frame, 9216);
  EXPECT_EQ(neighbor->SwitchName(), "leaf3.dc1");
  EXPECT_EQ(neighbor->Port(), "Ethernet4");
}

TEST(LldpFrames, FieldsWithoutATlvAreAbsent) {
  const auto neighbor = Parse(kChassis + kPort + kTtl + kEnd);
  ASSERT_TRUE(neighbor);
  EXPECT_EQ(neighbor->SwitchName(), "02:00:00:00:00:aa");
  EXPECT_FALSE(neighbor->port_vlan);
  EXPECT_FALSE(neighbor->max_frame);
  EXPECT_TRUE(Parse(kChassis + kPort + kTtl)) << "the last TLV is optional";
  Bytes padded = LldpFrame(kChassis + kPort + kTtl + kEnd);
  padded.resize(60, 0xff);
  EXPECT_EQ(ParseLldp(padded), neighbor);
}

TEST(LldpFrames, APortThatIsAMacIsCalledByItsDescription) {
  const auto neighbor =
      Parse(kChassis + LldpTlv(2, {3, 0x02, 0, 0, 0, 0, 0xbb}) + kTtl + LldpTlv(4, BytesOf("swp7")) + kEnd);
  ASSERT_TRUE(neighbor);
  EXPECT_EQ(neighbor->port, "02:00:00:00:00:bb");
  EXPECT_EQ(neighbor->Port(), "swp7");
  EXPECT_EQ(Parse(kChassis + LldpTlv(2, {3, 0x02, 0, 0, 0, 0, 0xbb}) + kTtl)->Port(), "02:00:00:00:00:bb");
}

TEST(LldpFrames, IdsOfAllKindsAreText) {
  EXPECT_EQ(ChassisOf(Bytes{1} + BytesOf("slot 3")), "slot 3");
  EXPECT_EQ(ChassisOf({4, 0x02, 0, 0, 0, 0, 1}), "02:00:00:00:00:01");
  EXPECT_EQ(ChassisOf({4, 0x02, 0, 0, 0, 1}), "0x0200000001") << "a MAC of five bytes is none";
  EXPECT_EQ(ChassisOf({5, 1, 10, 0, 0, 7}), "10.0.0.7");
  EXPECT_EQ(ChassisOf({5, 2, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7}), "fd00::7");
  EXPECT_EQ(ChassisOf({5, 1, 10, 0, 0}), "0x010a0000") << "an address that is too short is bytes";
  EXPECT_EQ(ChassisOf({5, 1}), "0x01");
  EXPECT_EQ(ChassisOf(Bytes{6} + BytesOf("mgmt0")), "mgmt0");
  EXPECT_EQ(ChassisOf(Bytes{7} + BytesOf("leaf\n3")), "0x6c6561660a33") << "not printable";
  EXPECT_EQ(ChassisOf({7, 0, 0}), "0x0000");
  EXPECT_EQ(ChassisOf(Bytes{99} + BytesOf("who knows")), "who knows");
  EXPECT_EQ(PortOf({3, 0x02, 0, 0, 0, 0, 2}), "02:00:00:00:00:02");
  EXPECT_EQ(PortOf({4, 1, 10, 0, 0, 8}), "10.0.0.8");
  EXPECT_EQ(PortOf(Bytes{5} + BytesOf("swp1")), "swp1");
  EXPECT_EQ(PortOf(Bytes{6} + BytesOf("circuit")), "circuit");
}

TEST(LldpFrames, TextsArePrintableAndBounded) {
  const auto name_of = [](const Bytes& value) {
    const auto neighbor = Parse(kChassis + kPort + kTtl + LldpTlv(5, value) + kEnd);
    return neighbor ? neighbor->system_name : "(none)";
  };
  EXPECT_EQ(name_of(BytesOf("leaf3") + Bytes{0, 0}), "leaf3") << "some switches send C strings";
  EXPECT_EQ(name_of(BytesOf("a\x1b[31m\"\xff")), "a?[31m\"?");
  EXPECT_EQ(name_of(Bytes(511, 'x')), std::string(255, 'x'));
  EXPECT_EQ(name_of({}), "");
  EXPECT_EQ(ChassisOf(Bytes{7} + Bytes(255, 1)).size(), 254U) << "in hexadecimal, as much as fits";
}

TEST(LldpFrames, TheFirstOfTwoCounts) {
  const auto neighbor =
      Parse(kChassis + kPort + kTtl + LldpTlv(5, BytesOf("one")) + LldpTlv(5, BytesOf("two")) +
            LldpTlv(127, {0x00, 0x80, 0xc2, 1, 0, 1}) + LldpTlv(127, {0x00, 0x80, 0xc2, 1, 0, 2}));
  ASSERT_TRUE(neighbor);
  EXPECT_EQ(neighbor->system_name, "one");
  EXPECT_EQ(neighbor->port_vlan, 1);
}

TEST(LldpFrames, NamesOfVlans) {
  const auto name = [](std::uint8_t vlan, const std::string& text) {
    return LldpTlv(
        127, Bytes{0x00, 0x80, 0xc2, 3, 0, vlan, static_cast<std::uint8_t>(text.size())} + BytesOf(text));
  };
  const auto neighbor =
      Parse(kChassis + kPort + kTtl + name(202, "rail") + name(201, "") + name(202, "again") +
            name(0, "none") + LldpTlv(127, {0x00, 0x80, 0xc2, 3, 0x0f, 0xff, 0}) + kEnd);
  ASSERT_TRUE(neighbor);
  EXPECT_EQ(neighbor->vlans, (std::set{201, 202}));
  EXPECT_FALSE(neighbor->port_vlan);
}

TEST(LldpFrames, OptionalOnesOfAWrongLengthArePassedOver) {
  for (const Bytes& value :
       {Bytes{}, Bytes{0}, Bytes{0, 0x80, 0xc2}, Bytes{0, 0x80, 0xc2, 1}, Bytes{0, 0x80, 0xc2, 1, 5},
        Bytes{0, 0x80, 0xc2, 1, 0, 5, 0}, Bytes{0, 0x80, 0xc2, 1, 0, 0}, Bytes{0, 0x80, 0xc2, 1, 0x0f, 0xff},
        Bytes{0, 0x80, 0xc2, 2, 0, 5}, Bytes{0, 0x12, 0x0f, 4, 0, 0}, Bytes{0, 0x80, 0xc2, 3, 0, 5},
        Bytes{0, 0x80, 0xc2, 3, 0, 5, 1}, Bytes{0, 0x80, 0xc2, 3, 0, 5, 0, 'x'}}) {
    const auto neighbor = Parse(kChassis + kPort + kTtl + LldpTlv(127, value) + LldpTlv(5, BytesOf("leaf")));
    ASSERT_TRUE(neighbor);
    EXPECT_FALSE(neighbor->port_vlan);
    EXPECT_TRUE(neighbor->vlans.empty());
    EXPECT_FALSE(neighbor->max_frame);
    EXPECT_EQ(neighbor->system_name, "leaf");
  }
}

TEST(LldpFrames, WhatIsNoneIsRefused) {
  EXPECT_FALSE(ParseLldp({}));
  EXPECT_FALSE(ParseLldp(BytesOf("too short")));
  EXPECT_FALSE(Parse({}));
  EXPECT_FALSE(Parse(kEnd));
  EXPECT_FALSE(Parse(kChassis + kPort)) << "no time to live";
  EXPECT_FALSE(Parse(kPort + kChassis + kTtl)) << "another order";
  EXPECT_FALSE(Parse(kChassis + kPort + kEnd + kTtl));
  EXPECT_FALSE(Parse(LldpTlv(5, BytesOf("x")) + kChassis + kPort + kTtl));
  EXPECT_FALSE(Parse(kChassis + kChassis + kPort + kTtl)) << "twice";
  EXPECT_FALSE(Parse(kChassis + kPort + kTtl + kPort)) << "twice, later";
  EXPECT_FALSE(Parse(kChassis + kPort + kTtl + LldpTlv(5, BytesOf("x"), 9))) << "reaches beyond the end";
  EXPECT_FALSE(Parse(kChassis + kPort + kTtl + Bytes{0x0a})) << "half a header";
  EXPECT_FALSE(Parse(LldpTlv(1, {4}) + kPort + kTtl)) << "an id of nothing";
  EXPECT_FALSE(Parse(LldpTlv(1, {}) + kPort + kTtl));
  EXPECT_FALSE(Parse(LldpTlv(1, Bytes(257, 'x')) + kPort + kTtl)) << "an id that is too long";
  EXPECT_FALSE(Parse(kChassis + kPort + LldpTlv(3, {1})));
  Bytes arp = LldpFrame(kChassis + kPort + kTtl);
  arp[12] = 0x08;
  EXPECT_FALSE(ParseLldp(arp));
}

// However a frame is cut or changed, the parser returns only printable text.
TEST(LldpFrames, DamagedFramesGiveNothingThatIsNotPrintable) {
  std::mt19937 random(20240901);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same bytes each time
  const Bytes whole = LldpFrame(kChassis + kPort + kTtl + LldpTlv(4, BytesOf("a port")) +
                                LldpTlv(5, BytesOf("leaf")) + LldpTlv(127, {0x00, 0x80, 0xc2, 1, 0, 100}) +
                                LldpTlv(127, {0x00, 0x80, 0xc2, 3, 0, 201, 1, 'v'}) + kEnd);
  int taken = 0;
  for (int i = 0; i < 20'000; ++i) {
    Bytes frame = whole;
    for (unsigned n = random() % 4; n > 0; --n)
      frame[14 + random() % (frame.size() - 14)] = static_cast<std::uint8_t>(random());
    frame.resize(random() % 3 == 0 ? random() % (frame.size() + 1) : frame.size());
    const auto neighbor = ParseLldp(frame);
    if (!neighbor) continue;
    ++taken;
    for (const std::string* text :
         {&neighbor->chassis, &neighbor->port, &neighbor->port_description, &neighbor->system_name}) {
      ASSERT_LE(text->size(), 255U);
      ASSERT_TRUE(std::all_of(text->begin(), text->end(), [](char c) { return c >= 0x20 && c < 0x7f; }))
          << *text;
    }
    ASSERT_FALSE(neighbor->chassis.empty() || neighbor->port.empty());
  }
  EXPECT_GT(taken, 100);
}

class LldpListenerTest : public ::testing::Test {
 protected:
  LldpListenerTest() {
    near_ = AddVeth(host_, "pf0", switch_, "swp1");
    far_ = GetLink(*switch_route_, "swp1").index;
    Up();
  }
  void Up() {
    BringUp(*host_route_, near_);
    BringUp(*switch_route_, far_);
    if (!Must(host_route_->WaitCarrier(near_, NetDeadline())) ||
        !Must(switch_route_->WaitCarrier(far_, NetDeadline())))
      Die(Error{ErrorCode::kTimeout, "the veth pair did not come up", "", 0});
  }
  void Send(const Bytes& frame) { SendFrame(switch_, far_, frame); }
  static std::chrono::steady_clock::time_point Past() { return {}; }

  NetNs host_ = MakeNetns();
  NetNs switch_ = MakeNetns();
  std::unique_ptr<RouteApi> host_route_ = OpenRoute(host_);
  std::unique_ptr<RouteApi> switch_route_ = OpenRoute(switch_);
  int near_ = 0;
  int far_ = 0;
};

TEST_F(LldpListenerTest, HearsTheNeighbour) {
  auto listener = Must(LldpListener::Open(host_, near_));
  EXPECT_EQ(Must(listener.Receive(Past())), std::nullopt) << "and does not wait";
  Send(LldpFrameOf("leaf3", "Ethernet4"));
  const auto heard = Must(listener.Receive(NetDeadline()));
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->SwitchName(), "leaf3");
  EXPECT_EQ(heard->Port(), "Ethernet4");
  // The other two groups, and damaged frames before a whole one.
  for (const std::uint8_t group : {0x00, 0x03}) {
    Bytes damaged = LldpFrame(kChassis);
    Bytes frame = LldpFrameOf("leaf" + std::to_string(group), "p");
    damaged[5] = frame[5] = group;
    Send(damaged);
    Send(frame);
    const auto next = Must(listener.Receive(NetDeadline()));
    ASSERT_TRUE(next);
    EXPECT_EQ(next->SwitchName(), "leaf" + std::to_string(group));
  }
}

TEST_F(LldpListenerTest, HearsNothingElse) {
  auto listener = Must(LldpListener::Open(host_, near_));
  SendFrame(host_, near_, LldpFrameOf("ourselves", "p"));
  Bytes tagged = LldpFrameOf("another-vlan", "p");
  tagged.insert(tagged.begin() + 12, {0x81, 0x00, 0x00, 0x05});
  Send(tagged);
  Bytes unicast = LldpFrameOf("to-one", "p");
  const MacAddress mac = GetLink(*host_route_, near_).mac;
  std::copy(mac.bytes.begin(), mac.bytes.end(), unicast.begin());
  Send(unicast);
  Send(LldpFrameOf("leaf3", "p"));
  const auto heard = Must(listener.Receive(NetDeadline()));
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->SwitchName(), "leaf3");
  EXPECT_EQ(Must(listener.Receive(Past())), std::nullopt);
}

TEST_F(LldpListenerTest, OtherInterfacesAreOthers) {
  const int other = AddVeth(host_, "pf1", switch_, "swp2");
  const int far = GetLink(*switch_route_, "swp2").index;
  BringUp(*host_route_, other);
  BringUp(*switch_route_, far);
  ASSERT_TRUE(Must(switch_route_->WaitCarrier(far, NetDeadline())));
  auto first = Must(LldpListener::Open(host_, near_));
  auto second = Must(LldpListener::Open(host_, other));
  SendFrame(switch_, far, LldpFrameOf("leaf1", "p"));
  ASSERT_TRUE(Must(second.Receive(NetDeadline())));
  EXPECT_EQ(Must(first.Receive(Past())), std::nullopt);
}

TEST_F(LldpListenerTest, SurvivesThatTheDeviceIsDownAndRenamed) {
  LinkChange down;
  down.up = false;
  Must(host_route_->ChangeLink(near_, down));
  auto listener = Must(LldpListener::Open(host_, near_));  // of a device that is down
  LinkChange renamed;
  renamed.name = "ens1f0";
  Must(host_route_->ChangeLink(near_, renamed));
  for (const char* name : {"leaf1", "leaf2"}) {
    Up();
    Send(LldpFrameOf(name, "p"));
    const auto heard = Must(listener.Receive(NetDeadline()));
    ASSERT_TRUE(heard);
    EXPECT_EQ(heard->SwitchName(), name);
    Must(host_route_->ChangeLink(near_, down));
    EXPECT_EQ(Must(listener.Receive(Past())), std::nullopt);
  }
}

TEST_F(LldpListenerTest, AFloodEnds) {
  auto listener = Must(LldpListener::Open(host_, near_));
  for (int i = 0; i < 100; ++i) Send(LldpFrame(kChassis));
  EXPECT_EQ(Must(listener.Receive(Past())), std::nullopt);
  Bytes large = LldpFrameOf("leaf", "p");
  large.resize(1514, 0);
  while (Must(listener.Receive(Past()))) {
  }
  Send(large);
  EXPECT_TRUE(Must(listener.Receive(NetDeadline())));
}

TEST_F(LldpListenerTest, RefusalsSayWhich) {
  for (const int link : {0, -1, 4242}) {
    const auto refused = LldpListener::Open(host_, link);
    ASSERT_FALSE(refused) << link;
    EXPECT_EQ(refused.error().code, ErrorCode::kNotFound) << Describe(refused.error());
    EXPECT_NE(refused.error().message.find(std::to_string(link)), std::string::npos);
  }
}

}  // namespace
}  // namespace railhead::testing
