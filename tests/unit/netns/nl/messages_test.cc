// Netlink messages as bytes. Parsers survive any input.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/fib_rules.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <rdma/rdma_netlink.h>

#include <algorithm>
#include <random>

#include "netns/nl/address_messages.h"
#include "netns/nl/link_messages.h"
#include "netns/nl/neighbour_messages.h"
#include "netns/nl/netlink_rdma.h"
#include "netns/nl/route_messages.h"
#include "netns/nl/rule_messages.h"
#include "netns/nl/socket.h"
#include "netns/nl/vf_messages.h"

namespace railhead::nl {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes Copy(Message& message) {
  const auto bytes = message.Bytes().value();
  return {bytes.begin(), bytes.end()};
}

// The message as a receiver sees it; `bytes` must outlive it.
Received AsReceived(const Bytes& bytes) {
  Received only;
  ForEachMessage(bytes, [&](const Received& received) { only = received; });
  return only;
}

// "18(27(1(1=...)))"-like paths: the payload of the first attribute at `path`.
std::optional<Bytes> At(BytesView attributes, std::vector<int> path) {
  std::optional<Bytes> found;
  const int wanted = path.front();
  path.erase(path.begin());
  ForEachAttribute(attributes, [&](int type, BytesView payload) {
    if (type != wanted || found) return;
    found = path.empty() ? Bytes(payload.begin(), payload.end()) : At(payload, path);
  });
  return found;
}

BytesView SkipLinkHeader(const Received& received) {
  return received.payload.subspan(sizeof(ifinfomsg));
}

template <typename T>
Bytes Of(const T& value) {
  Bytes bytes(sizeof(value));
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

TEST(Messages, MoveIsOneMessageOfThreeAttributes) {
  Message message = MoveLinkMessage(7, 9, "net1", 1500);
  const Bytes wanted = {// nlmsghdr: length 60, RTM_SETLINK, NLM_F_REQUEST
                        60, 0, 0, 0, 19, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                        // ifinfomsg: index 7
                        0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                        // IFLA_NET_NS_FD 9, IFLA_IFNAME "net1", IFLA_MTU 1500
                        8, 0, 28, 0, 9, 0, 0, 0,                     //
                        9, 0, 3, 0, 'n', 'e', 't', '1', 0, 0, 0, 0,  //
                        8, 0, 4, 0, 0xdc, 0x05, 0, 0};
  Bytes bytes = Copy(message);
  // Sequence and port id are the socket's.
  std::fill(bytes.begin() + 8, bytes.begin() + 16, std::uint8_t{0});
  EXPECT_EQ(bytes, wanted);
}

TEST(Messages, LinkSettingsAreNested) {
  LinkChange change;
  change.addr_gen_mode = AddrGenMode::kNone;
  change.ipv4 = {{Ipv4Conf::kArpAnnounce, 2}, {Ipv4Conf::kArpIgnore, 1}};
  change.up = true;
  Message message = ChangeLinkMessage(7, change);
  const Bytes bytes = Copy(message);
  const Received sent = AsReceived(bytes);
  const auto header = ReadStruct<ifinfomsg>(sent.payload);
  EXPECT_EQ(header->ifi_flags, 1U);
  EXPECT_EQ(header->ifi_change, 1U);
  EXPECT_EQ(At(SkipLinkHeader(sent), {IFLA_AF_SPEC, AF_INET, IFLA_INET_CONF, 18}), Of(std::uint32_t{2}));
  EXPECT_EQ(At(SkipLinkHeader(sent), {IFLA_AF_SPEC, AF_INET, IFLA_INET_CONF, 19}), Of(std::uint32_t{1}));
  EXPECT_EQ(At(SkipLinkHeader(sent), {IFLA_AF_SPEC, AF_INET6, IFLA_INET6_ADDR_GEN_MODE}), Bytes{1});
  EXPECT_EQ(At(SkipLinkHeader(sent), {IFLA_IFNAME}), std::nullopt);
}

TEST(Messages, LinkFlagsNameTheirBits) {
  LinkChange change;
  change.promiscuous = true;
  change.all_multicast = false;
  change.tx_queue_len = 500;
  change.alias = "a";
  Message message = ChangeLinkMessage(7, change);
  const Bytes bytes = Copy(message);
  const Received sent = AsReceived(bytes);
  const auto header = ReadStruct<ifinfomsg>(sent.payload);
  EXPECT_EQ(header->ifi_flags, 0x100U);
  EXPECT_EQ(header->ifi_change, 0x300U);
  EXPECT_EQ(At(SkipLinkHeader(sent), {IFLA_TXQLEN}), Of(std::uint32_t{500}));
  EXPECT_EQ(At(SkipLinkHeader(sent), {IFLA_IFALIAS}), Bytes{'a'}) << "without NUL";
  LinkChange none;
  none.alias = "";
  Message removal = ChangeLinkMessage(7, none);
  const Bytes removal_bytes = Copy(removal);
  EXPECT_EQ(At(SkipLinkHeader(AsReceived(removal_bytes)), {IFLA_IFALIAS}), Bytes{}) << "there, and empty";
}

TEST(Messages, AlternativeNamesAreAList) {
  Message message = AddAltNameMessage(7, "rail0");
  const Bytes bytes = Copy(message);
  const Received sent = AsReceived(bytes);
  EXPECT_EQ(sent.type, RTM_NEWLINKPROP);
  EXPECT_EQ(At(SkipLinkHeader(sent), {IFLA_PROP_LIST, IFLA_ALT_IFNAME}), (Bytes{'r', 'a', 'i', 'l', '0', 0}));
  Message removal = DeleteAltNameMessage(7, "rail0");
  const Bytes removal_bytes = Copy(removal);
  EXPECT_EQ(AsReceived(removal_bytes).type, RTM_DELLINKPROP);
}

TEST(Messages, EveryVfSettingIsOneNestedAttribute) {
  VfSettings change;
  change.mac = *MacAddress::Parse("02:00:00:00:00:05");
  change.vlan = VfVlan{100, 3, 0x8100};
  change.spoofchk = false;
  change.trust = true;
  change.link_state = VfLinkState::kDisable;
  change.rate = VfRate{10, 200};
  auto steps = SetVfMessages(4, 2, change);
  std::vector<std::string> what;
  std::vector<Bytes> payloads;
  const int types[] = {IFLA_VF_MAC,   IFLA_VF_VLAN,       IFLA_VF_SPOOFCHK,
                       IFLA_VF_TRUST, IFLA_VF_LINK_STATE, IFLA_VF_RATE};
  ASSERT_EQ(steps.size(), std::size(types));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    what.push_back(steps[i].what);
    const Bytes bytes = Copy(steps[i].message);
    const Received sent = AsReceived(bytes);
    EXPECT_EQ(sent.type, RTM_SETLINK);
    EXPECT_EQ(ReadStruct<ifinfomsg>(sent.payload)->ifi_index, 4);
    payloads.push_back(
        At(SkipLinkHeader(sent), {IFLA_VFINFO_LIST, IFLA_VF_INFO, types[i]}).value_or(Bytes{}));
  }
  EXPECT_EQ(what, (std::vector<std::string>{"mac 02:00:00:00:00:05", "vlan 100, QoS 3", "spoofchk off",
                                            "trust on", "link_state disable", "rate 10 to 200 Mbit/s"}));
  ifla_vf_mac mac{2, {2, 0, 0, 0, 0, 5}};
  EXPECT_EQ(payloads[0], Of(mac));
  EXPECT_EQ(payloads[1], Of(ifla_vf_vlan{2, 100, 3}));
  EXPECT_EQ(payloads[2], Of(ifla_vf_spoofchk{2, 0}));
  EXPECT_EQ(payloads[3], Of(ifla_vf_trust{2, 1}));
  EXPECT_EQ(payloads[4], Of(ifla_vf_link_state{2, 2}));
  EXPECT_EQ(payloads[5], Of(ifla_vf_rate{2, 10, 200}));
  EXPECT_TRUE(SetVfMessages(4, 2, VfSettings{}).empty());
}

TEST(Messages, ServiceVlanGoesAsAList) {
  VfSettings change;
  change.vlan = VfVlan{100, 3, 0x88a8};
  auto steps = SetVfMessages(4, 2, change);
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].what, "vlan 100, QoS 3, 802.1ad");
  const Bytes bytes = Copy(steps[0].message);
  const auto info = At(SkipLinkHeader(AsReceived(bytes)),
                       {IFLA_VFINFO_LIST, IFLA_VF_INFO, IFLA_VF_VLAN_LIST, IFLA_VF_VLAN_INFO});
  ASSERT_TRUE(info);
  const auto vlan = ReadStruct<ifla_vf_vlan_info>(*info);
  EXPECT_EQ(vlan->vlan, 100U);
  EXPECT_EQ(vlan->qos, 3U);
  EXPECT_EQ(ntohs(vlan->vlan_proto), 0x88a8);
}

TEST(Messages, OverlongRequestsAreAnErrorNotATruncation) {
  Message message = MoveLinkMessage(7, 9, std::string(5000, 'x'), 1500);
  EXPECT_EQ(message.Bytes().error().code, ErrorCode::kInternal);
}

// An RTM_NEWLINK as a driver that reports everything makes the kernel write it.
Bytes VfAnswer(std::uint32_t spoofchk, std::uint32_t trust) {
  Message message(RTM_NEWLINK, 0);
  ifinfomsg header{};
  header.ifi_index = 4;
  message.Header(header);
  message.PutString(IFLA_IFNAME, "pf0");
  const auto put_vf = [&](std::uint32_t vf) {
    const Message::Nest info(message, IFLA_VF_INFO);
    message.PutStruct(IFLA_VF_MAC, ifla_vf_mac{vf, {2, 0, 0, 0, 0, static_cast<std::uint8_t>(vf)}});
    message.PutStruct(IFLA_VF_VLAN, ifla_vf_vlan{vf, 100 + vf, 3});
    message.PutStruct(IFLA_VF_RATE, ifla_vf_rate{vf, 10, 200});
    message.PutStruct(IFLA_VF_SPOOFCHK, ifla_vf_spoofchk{vf, spoofchk});
    message.PutStruct(IFLA_VF_TRUST, ifla_vf_trust{vf, trust});
    message.PutStruct(IFLA_VF_LINK_STATE, ifla_vf_link_state{vf, 1});
    const Message::Nest list(message, IFLA_VF_VLAN_LIST);
    message.PutStruct(IFLA_VF_VLAN_INFO, ifla_vf_vlan_info{vf, 100 + vf, 3, htons(0x88a8)});
  };
  {
    const Message::Nest list(message, IFLA_VFINFO_LIST);
    for (std::uint32_t vf = 0; vf < 3; ++vf) put_vf(vf);
  }
  return Copy(message);
}

TEST(Parsers, SettingsOfVfs) {
  const Bytes answer = VfAnswer(1, 0);
  const auto vfs = ParseVfs(AsReceived(answer));
  ASSERT_EQ(vfs.size(), 3U);
  VfSettings wanted;
  wanted.mac = *MacAddress::Parse("02:00:00:00:00:02");
  wanted.vlan = VfVlan{102, 3, 0x88a8};
  wanted.spoofchk = true;
  wanted.trust = false;
  wanted.link_state = VfLinkState::kEnable;
  wanted.rate = VfRate{10, 200};
  EXPECT_EQ(vfs.at(2), wanted);
}

// A veth's IFLA_LINK is its peer, a tunnel's where it sends.
TEST(Parsers, WhatIsStackedOnAnother) {
  const auto parse = [](const char* kind, int lower, std::optional<int> nsid) {
    Message message(RTM_NEWLINK, 0);
    ifinfomsg header{};
    header.ifi_index = 7;
    message.Header(header);
    message.PutString(IFLA_IFNAME, "net1.7");
    if (lower != 0) message.PutU32(IFLA_LINK, static_cast<std::uint32_t>(lower));
    if (nsid) message.PutU32(IFLA_LINK_NETNSID, static_cast<std::uint32_t>(*nsid));
    {
      const Message::Nest info(message, IFLA_LINKINFO);
      message.PutString(IFLA_INFO_KIND, kind);
    }
    const Bytes bytes = Copy(message);
    return ParseStacked(AsReceived(bytes));
  };
  for (const char* kind : {"vlan", "macvlan", "macvtap", "ipvlan", "ipvtap"}) {
    const auto stacked = parse(kind, 3, std::nullopt);
    ASSERT_TRUE(stacked) << kind;
    EXPECT_EQ(stacked->link.name, "net1.7");
    EXPECT_EQ(stacked->lower, 3);
    EXPECT_EQ(stacked->lower_nsid, std::nullopt);
  }
  EXPECT_EQ(parse("vlan", 3, 0)->lower_nsid, 0);
  EXPECT_FALSE(parse("vlan", 0, std::nullopt)) << "on nothing";
  for (const char* kind : {"veth", "vxlan", "gretap", "vlanx", ""})
    EXPECT_FALSE(parse(kind, 3, std::nullopt)) << kind;
}

TEST(Parsers, WhatADriverDoesNotReportIsUnknown) {
  const Bytes answer = VfAnswer(~0U, ~0U);
  const VfSettings state = ParseVfs(AsReceived(answer)).at(0);
  EXPECT_EQ(state.spoofchk, std::nullopt);
  EXPECT_EQ(state.trust, std::nullopt);
}

TEST(Parsers, RulesBeyondOurWordsAreLeftOut) {
  const Rule rule{AF_INET, 1000, *IpPrefix::Parse("10.100.0.10/32"), "", 100};
  Message plain = AddRuleMessage(rule);
  Bytes bytes = Copy(plain);
  EXPECT_EQ(ParseRule(AsReceived(bytes)), rule);
  for (const int selector : std::initializer_list<int>{FRA_FWMARK, FRA_DST, FRA_UID_RANGE, 200}) {
    Message marked = AddRuleMessage(rule);
    marked.PutU32(selector, 7);
    bytes = Copy(marked);
    EXPECT_EQ(ParseRule(AsReceived(bytes)), std::nullopt) << selector;
  }
  Rule of_interfaces = rule;
  of_interfaces.iif = "rail0";
  of_interfaces.oif = "rail1";
  Message named = AddRuleMessage(of_interfaces);
  bytes = Copy(named);
  EXPECT_EQ(ParseRule(AsReceived(bytes)), of_interfaces);
  Message suppressing = AddRuleMessage(rule);
  suppressing.PutU32(FRA_SUPPRESS_PREFIXLEN, 0);
  bytes = Copy(suppressing);
  EXPECT_EQ(ParseRule(AsReceived(bytes)), std::nullopt);
  Message reported = AddRuleMessage(rule);
  reported.PutU32(FRA_SUPPRESS_PREFIXLEN, ~0U);
  bytes = Copy(reported);
  EXPECT_EQ(ParseRule(AsReceived(bytes)), rule);
}

Bytes Ack(std::int32_t status, std::uint16_t flags, const std::string& text, const Bytes& request) {
  Message message(NLMSG_ERROR, flags);
  nlmsgerr header{};
  header.error = status;
  header.msg.nlmsg_len = static_cast<std::uint32_t>(sizeof(nlmsghdr) + request.size());
  message.Header(header);
  Bytes bytes = Copy(message);
  bytes.insert(bytes.end(), request.begin(), request.end());
  Message attributes(NLMSG_ERROR, 0);
  attributes.PutString(NLMSGERR_ATTR_MSG, text);
  const Bytes tail = Copy(attributes);
  bytes.insert(bytes.end(), tail.begin() + sizeof(nlmsghdr), tail.end());
  const auto size = static_cast<std::uint32_t>(bytes.size());
  std::memcpy(bytes.data(), &size, sizeof(size));
  return bytes;
}

TEST(Parsers, AcknowledgementsAndTheirText) {
  const auto capped = Ack(-EINVAL, NLM_F_CAPPED | NLM_F_ACK_TLVS, "VLAN id out of range", {});
  EXPECT_EQ(ParseAck(AsReceived(capped))->message, "Invalid argument (VLAN id out of range)");
  EXPECT_EQ(ParseAck(AsReceived(capped))->sys_errno, EINVAL);
  const auto whole = Ack(-EBUSY, NLM_F_ACK_TLVS, "in use", Bytes(24, 0xff));
  EXPECT_EQ(ParseAck(AsReceived(whole))->message, "Device or resource busy (in use)");
  const auto bare = Ack(-EPERM, NLM_F_CAPPED, "not announced by the flags", {});
  EXPECT_EQ(ParseAck(AsReceived(bare))->message, "Operation not permitted");
  const auto good = Ack(0, NLM_F_CAPPED | NLM_F_ACK_TLVS, "only a warning", {});
  EXPECT_EQ(ParseAck(AsReceived(good)), std::nullopt);
  EXPECT_EQ(ParseAck(Received{})->code, ErrorCode::kIo);
  EXPECT_EQ(ParseAck(AsReceived(Ack(std::numeric_limits<std::int32_t>::min(), 0, "", {})))->sys_errno, EIO);
}

// Every parser, on one message of each type.
void ParseEverything(BytesView payload, std::uint16_t flags) {
  RdmaDevice device;
  for (const std::uint16_t type :
       std::initializer_list<std::uint16_t>{RTM_NEWLINK, RTM_DELLINK, RTM_NEWADDR, RTM_NEWROUTE, RTM_NEWRULE,
                                            RTM_NEWNEIGH, RTM_NEWNSID, NLMSG_ERROR, NLMSG_DONE}) {
    const Received received{type, flags, 0, payload};
    (void)ParseLink(received);
    (void)ParseLinkEvent(received);
    if (const auto stacked = ParseStacked(received)) {
      EXPECT_GT(stacked->lower, 0);
    }
    (void)ParseNsid(received);
    (void)ParseVfs(received);
    if (const auto address = ParseAddress(received)) {
      EXPECT_LE(address->prefix.length, address->prefix.address.Bits());
    }
    if (const auto route = ParseRoute(received)) {
      EXPECT_LE(route->destination.length, route->destination.address.Bits());
      (void)route->ToString();
    }
    if (const auto rule = ParseRule(received)) (void)rule->ToString();
    (void)ParseNeighbour(received);
    (void)ParseNetnsMode(received);
    (void)ParseRdmaDevice(received);
    ParseRdmaPort(received, device);
    for (const RdmaResourceKind& kind : RdmaResourceKinds()) (void)ParseRdmaOwners(kind, received);
    (void)ParseAck(received);
  }
}

// Copied to a heap block of its own size, so that AddressSanitizer sees every
// byte read beyond it.
void ParseExactly(const Bytes& bytes, std::size_t size) {
  const Bytes exact(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
  ForEachMessage(exact, [](const Received& received) { ParseEverything(received.payload, received.flags); });
  ParseEverything(exact, NLM_F_ACK_TLVS);
}

TEST(Parsers, TruncatedMessages) {
  Message address = AddAddressMessage(3, *IpPrefix::Parse("10.0.0.1/24"));
  Route route;
  route.destination = *IpPrefix::Parse("10.0.0.0/8");
  route.gateway = *IpAddress::Parse("fd00::1");
  Message way = AddRouteMessage(route);
  Message rule = AddRuleMessage({AF_INET6, 1, *IpPrefix::Parse("fd00::/8"), "net1", 1000});
  Message names = AddAltNameMessage(3, "rail0");
  for (const Bytes& bytes :
       {VfAnswer(1, 1), Copy(address), Copy(way), Copy(rule), Copy(names), Ack(-EINVAL, 0x300, "text", {})}) {
    for (std::size_t size = 0; size <= bytes.size(); ++size) {
      // As it is, and with a header that claims to be whole.
      ParseExactly(bytes, size);
      Bytes shorter = bytes;
      const auto length = static_cast<std::uint32_t>(size);
      if (size >= sizeof(nlmsghdr)) std::memcpy(shorter.data(), &length, sizeof(length));
      ParseExactly(shorter, size);
    }
  }
}

TEST(Parsers, RandomAndDamagedBytes) {
  std::mt19937 random(20240607);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same bytes each time
  const Bytes good = VfAnswer(1, 1);
  for (int round = 0; round < 20'000; ++round) {
    Bytes bytes = good;
    if (round % 2 == 0) {
      bytes.resize(random() % 200);
      std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::uint8_t>(random()); });
    } else {
      for (int i = 0; i < 4; ++i) bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random() % 40);
    }
    ParseExactly(bytes, bytes.size());
  }
}

}  // namespace
}  // namespace railhead::nl
