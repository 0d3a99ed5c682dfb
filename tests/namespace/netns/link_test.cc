// RouteApi's links on the real kernel, in private namespaces.
#include <gtest/gtest.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

#include "netns/base/text.h"
#include "netns/nl/uevents.h"
#include "netns/ns/netns.h"
#include "netns/ns/sysctl.h"
#include "tests/support/netns/stand_in.h"

namespace railhead::testing {
namespace {

using Names = std::vector<std::string>;

class LinkTest : public ::testing::Test {
 protected:
  NetNs host_ = MakeNetns();
  NetNs pod_ = MakeNetns();
  std::unique_ptr<RouteApi> host_route_ = OpenRoute(host_);
  std::unique_ptr<RouteApi> pod_route_ = OpenRoute(pod_);
};

TEST_F(LinkTest, FindsByNameAndIndex) {
  const int index = AddVeth(host_, "nic0", host_, "far0");
  const Link link = GetLink(*host_route_, "nic0");
  EXPECT_EQ(link.index, index);
  EXPECT_EQ(link.name, "nic0");
  EXPECT_EQ(link.kind, "veth");
  EXPECT_EQ(link.mtu, 1500);
  EXPECT_FALSE(link.up);
  EXPECT_FALSE(link.carrier);
  EXPECT_FALSE(link.mac.IsZero());
  EXPECT_EQ(link.master, 0);
  EXPECT_EQ(link.parent_device, "");
  EXPECT_EQ(GetLink(*host_route_, index), link);
}

TEST_F(LinkTest, AbsentLinksAreNoErrors) {
  EXPECT_EQ(Must(host_route_->FindLink("nosuch")), std::nullopt);
  EXPECT_EQ(Must(host_route_->FindLink("")), std::nullopt);
  EXPECT_EQ(Must(host_route_->FindLink("a-name-longer-than-any-interface")), std::nullopt);
  EXPECT_EQ(Must(host_route_->FindLink(4242)), std::nullopt);
  EXPECT_EQ(Must(host_route_->FindLink(0)), std::nullopt);
  EXPECT_EQ(Must(host_route_->FindLink(-1)), std::nullopt);
  EXPECT_EQ(Must(host_route_->FindLinkOfDevice("0000:43:10.0")), std::nullopt);
  EXPECT_EQ(Must(host_route_->FindLinkOfDevice("")), std::nullopt);
}

TEST_F(LinkTest, ListsAllLinksOfItsNamespaceOnly) {
  for (int i = 0; i < 100; ++i) {
    AddVeth(host_, "nic" + std::to_string(i), pod_, "far" + std::to_string(i));
  }
  const auto links = Must(host_route_->ListLinks());
  EXPECT_EQ(links.size(), 101U);  // and lo
  for (int i = 0; i < 100; ++i) {
    const auto found = std::find_if(links.begin(), links.end(),
                                    [&](const Link& link) { return link.name == "nic" + std::to_string(i); });
    ASSERT_NE(found, links.end()) << i;
    EXPECT_EQ(*found, GetLink(*host_route_, found->index));
  }
}

TEST_F(LinkTest, ChangesNameMacMtuAndState) {
  const int index = AddVeth(host_, "nic0", pod_, "far0");
  LinkChange change;
  change.name = "nic1";
  change.mac = *MacAddress::Parse("02:00:00:00:12:34");
  change.mtu = 9000;
  change.up = true;
  Must(host_route_->ChangeLink(index, change));
  const Link link = GetLink(*host_route_, index);
  EXPECT_EQ(link.name, "nic1");
  EXPECT_EQ(link.mac, change.mac);
  EXPECT_EQ(link.mtu, 9000);
  EXPECT_TRUE(link.up);

  LinkChange down;
  down.up = false;
  Must(host_route_->ChangeLink(index, down));
  EXPECT_FALSE(GetLink(*host_route_, index).up);
}

TEST_F(LinkTest, LeavesAloneWhatIsNotAsked) {
  const int index = AddVeth(host_, "nic0", pod_, "far0");
  const Link before = GetLink(*host_route_, index);
  LinkChange change;
  change.mtu = 1400;
  Must(host_route_->ChangeLink(index, change));
  Link after = GetLink(*host_route_, index);
  EXPECT_EQ(after.mtu, 1400);
  after.mtu = before.mtu;
  EXPECT_EQ(after, before);
}

TEST_F(LinkTest, RefusedMtuCarriesTheKernelsWords) {
  const int index = AddVeth(host_, "nic0", pod_, "far0");
  LinkChange change;
  change.mtu = 20;
  const auto refused = host_route_->ChangeLink(index, change);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(refused.error().sys_errno, EINVAL);
  EXPECT_EQ(refused.error().message, "changing interface " + std::to_string(index) +
                                         ": Invalid argument (mtu less than device minimum)");
}

TEST_F(LinkTest, ChangingWhatIsGoneIsNotFound) {
  LinkChange change;
  change.up = true;
  const auto refused = host_route_->ChangeLink(4242, change);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kNotFound);
}

TEST_F(LinkTest, SetsIpv4DeviceSettingsWithoutProc) {
  const int index = AddVeth(host_, "nic0", pod_, "far0");
  LinkChange change;
  change.ipv4 = {{Ipv4Conf::kArpAnnounce, 2}, {Ipv4Conf::kArpIgnore, 1},  {Ipv4Conf::kRpFilter, 2},
                 {Ipv4Conf::kArpFilter, 1},   {Ipv4Conf::kForwarding, 1}, {Ipv4Conf::kArpNotify, 1}};
  Must(host_route_->ChangeLink(index, change));
  const std::string conf = "net/ipv4/conf/nic0/";
  EXPECT_EQ(Must(ReadSysctls(host_, {conf + "arp_announce", conf + "arp_ignore", conf + "rp_filter"})),
            (std::vector<std::optional<std::string>>{"2", "1", "2"}));
  EXPECT_EQ(Must(ReadSysctls(host_, {conf + "arp_filter", conf + "forwarding", conf + "arp_notify"})),
            (std::vector<std::optional<std::string>>{"1", "1", "1"}));
}

TEST_F(LinkTest, NoLinkLocalAddressWhenBroughtUpWithoutAddrGenMode) {
  const int index = AddVeth(host_, "nic0", pod_, "far0");
  if (!GetLink(*host_route_, index).addr_gen_mode) GTEST_SKIP() << "this kernel has no IPv6";
  LinkChange change;
  change.addr_gen_mode = AddrGenMode::kNone;
  change.ipv4 = {{Ipv4Conf::kArpIgnore, 1}};
  change.up = true;
  Must(host_route_->ChangeLink(index, change));
  BringUp(*pod_route_, GetLink(*pod_route_, "far0").index);
  ASSERT_TRUE(Must(host_route_->WaitCarrier(index, NetDeadline())));
  const Link link = GetLink(*host_route_, index);
  EXPECT_TRUE(link.up);
  EXPECT_EQ(link.addr_gen_mode, AddrGenMode::kNone);
  EXPECT_TRUE(Must(host_route_->ListAddresses(index)).empty());
  // The peer, left alone, has one: the check above can fail.
  EXPECT_FALSE(Must(pod_route_->ListAddresses(GetLink(*pod_route_, "far0").index)).empty());
}

TEST_F(LinkTest, MovesWithNameAndMtuInOneStep) {
  const int index = AddVeth(host_, "nic0", host_, "far0");
  const Link before = GetLink(*host_route_, index);
  Must(host_route_->MoveLink(index, pod_, "net1", 4000));
  EXPECT_EQ(Must(host_route_->FindLink("nic0")), std::nullopt);
  const Link after = GetLink(*pod_route_, "net1");
  EXPECT_EQ(after.mtu, 4000);
  EXPECT_EQ(after.mac, before.mac);
  EXPECT_FALSE(after.up);
}

// "add nic0", "move nic1": what udev of the namespace hears of links.
Names LinkEvents(const Uevents& uevents) {
  Names events;
  std::array<char, 8192> buffer{};
  for (;;) {
    const ssize_t got = ::recv(uevents.fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0) return events;
    std::string interface;
    const auto fields = Split({buffer.data(), static_cast<std::size_t>(got)}, '\0');
    for (const std::string& field : fields) {
      if (field.starts_with("INTERFACE=")) interface = field.substr(field.find('=') + 1);
    }
    events.push_back(fields[0].substr(0, fields[0].find('@')) + " " + interface);
  }
}

// DEL renames before the move: a name that the move has to change on the host is an event there.
TEST_F(LinkTest, ANewNamespaceHearsOfANameThatTheMoveChanges) {
  std::optional<Uevents> on_host;
  Must(OpenSocketsIn(host_, [&]() -> Result<void> {
    on_host = RH_TRY(Uevents::Open());
    return {};
  }));
  AddVeth(host_, "taken", host_, "peer");
  const auto move = [&](const std::string& in_pod, const std::string& name) {
    const int nic = AddVeth(pod_, in_pod, pod_, "far-" + in_pod);
    (void)LinkEvents(*on_host);
    Must(pod_route_->MoveLink(nic, host_, name, std::nullopt));
    Names events = LinkEvents(*on_host);
    std::erase_if(events, [](const std::string& event) { return event.starts_with("remove"); });
    return events;
  };
  EXPECT_EQ(move("net1", "nic1"), (Names{"add net1", "move nic1"}));
  EXPECT_EQ(move("nic2", "nic2"), Names{"add nic2"});
  EXPECT_EQ(move("taken", "nic3"), Names{"add nic3"}) << "the kernel cannot use its present name";
}

TEST_F(LinkTest, MoveWithoutMtuKeepsIt) {
  const int index = AddMacvlan(host_, "nic0", AddVeth(host_, "low0", host_, "far0"));
  LinkChange change;
  change.mtu = 1300;
  Must(host_route_->ChangeLink(index, change));
  Must(host_route_->MoveLink(index, pod_, "net1", std::nullopt));
  EXPECT_EQ(GetLink(*pod_route_, "net1").mtu, 1300);
  EXPECT_EQ(GetLink(*pod_route_, "net1").kind, "macvlan");
}

// After a failed move exactly one of the two namespaces has the device. Its MAC address identifies it.
int CountByMac(RouteApi& route, const MacAddress& mac) {
  int count = 0;
  for (const Link& link : Must(route.ListLinks())) count += link.mac == mac ? 1 : 0;
  return count;
}

TEST_F(LinkTest, MoveToATakenNameFailsAndTheDeviceIsInOneOfBoth) {
  const int index = AddVeth(host_, "nic0", host_, "far0");
  const Link before = GetLink(*host_route_, index);
  AddVeth(pod_, "net1", host_, "far1");
  const auto refused = host_route_->MoveLink(index, pod_, "net1", std::nullopt);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kExists);
  EXPECT_NE(refused.error().hint.find("net1"), std::string::npos) << refused.error().hint;
  EXPECT_NE(refused.error().message.find("net1"), std::string::npos) << refused.error().message;
  EXPECT_EQ(CountByMac(*host_route_, before.mac) + CountByMac(*pod_route_, before.mac), 1);
}

TEST_F(LinkTest, MoveWithRefusedMtuLeavesTheDeviceInTheTarget) {
  const int lower = AddVeth(host_, "low0", host_, "far0");
  const int index = AddMacvlan(host_, "nic0", lower);
  const Link before = GetLink(*host_route_, index);
  // A macvlan's MTU cannot exceed its lower link's MTU.
  const auto refused = host_route_->MoveLink(index, pod_, "net1", 9000);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_NE(refused.error().message.find("MTU 9000"), std::string::npos) << refused.error().message;
  EXPECT_EQ(CountByMac(*host_route_, before.mac), 0);
  EXPECT_EQ(CountByMac(*pod_route_, before.mac), 1);
}

std::vector<std::string> NamesOf(const std::vector<Link>& links) {
  std::vector<std::string> names;
  names.reserve(links.size());
  for (const Link& link : links) names.push_back(link.name);
  return names;
}

// ListUppers() exists because of what the kernel does with a macvlan when its lower device moves.
TEST_F(LinkTest, UppersStayWhereTheyAreWhenTheirLowerMoves) {
  const int nic = AddVeth(pod_, "net1", pod_, "peer");
  AddMacvlan(pod_, "mv0", nic);
  AddMacvlan(pod_, "mv1", nic);
  AddMacvlan(pod_, "other", GetLink(*pod_route_, "peer").index);
  EXPECT_EQ(NamesOf(Must(pod_route_->ListUppers(nic, pod_))), (Names{"mv0", "mv1"}));
  EXPECT_EQ(NamesOf(Must(pod_route_->ListUppers(nic, host_))), Names{});

  Must(pod_route_->MoveLink(nic, host_, "pf0v0", std::nullopt));
  const int on_host = GetLink(*host_route_, "pf0v0").index;
  EXPECT_EQ(NamesOf(Must(pod_route_->ListUppers(on_host, host_))), (Names{"mv0", "mv1"}));
  EXPECT_EQ(NamesOf(Must(pod_route_->ListUppers(on_host, pod_))), Names{});
  EXPECT_EQ(NamesOf(Must(host_route_->ListUppers(on_host, host_))), Names{}) << "of another namespace";
  const NetNs third = MakeNetns();
  EXPECT_EQ(NamesOf(Must(pod_route_->ListUppers(on_host, third))), Names{}) << "the same index elsewhere";

  const int upper = GetLink(*pod_route_, "mv0").index;
  EXPECT_TRUE(Must(pod_route_->DeleteLink(upper)));
  EXPECT_FALSE(Must(pod_route_->DeleteLink(upper)));
  EXPECT_EQ(NamesOf(Must(pod_route_->ListUppers(on_host, host_))), Names{"mv1"});
}

// "upper" on that link, in `target`; with the ID 0 for a VLAN. false: the kernel does not have the kind.
bool MakeUpper(const NetNs& ns, int lower, const std::string& kind, const NetNs& target) {
  nl::Message message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  message.Header(ifinfomsg{});
  message.PutString(IFLA_IFNAME, "upper");
  message.PutU32(IFLA_LINK, static_cast<std::uint32_t>(lower));
  message.PutU32(IFLA_NET_NS_FD, static_cast<std::uint32_t>(target.fd()));
  {
    const nl::Message::Nest info(message, IFLA_LINKINFO);
    message.PutString(IFLA_INFO_KIND, kind);
    const nl::Message::Nest data(message, IFLA_INFO_DATA);
    if (kind == "vlan") message.PutStruct(IFLA_VLAN_ID, std::uint16_t{0});
  }
  const auto made = OpenRaw(ns).Request(message);
  if (!made && made.error().sys_errno != EOPNOTSUPP) Die(made.error());
  return made.has_value();
}

// Whatever kind it is and wherever it is, also in a namespace that only a descriptor keeps alive.
TEST_F(LinkTest, UppersAreFoundInEveryNamespace) {
  const int nic = AddVeth(pod_, "net1", pod_, "peer");
  AddVeth(host_, "pf0", host_, "wire");
  const auto before = Must(pod_route_->ListLinks()).size();
  const auto has = [&](const char* taken) { return pod_route_->HasUppers(nic, host_, taken); };
  ASSERT_FALSE(Must(has("pf0")));
  EXPECT_FALSE(Must(has("pf0"))) << "asking leaves nothing";
  EXPECT_EQ(Must(pod_route_->ListLinks()).size(), before);
  const NetNs third = MakeNetns();
  const auto third_route = OpenRoute(third);
  int kinds = 0;  // that the kernel has
  for (const std::string kind : {"macvlan", "ipvlan", "vlan"}) {
    SCOPED_TRACE(kind);
    if (!MakeUpper(pod_, nic, kind, third)) continue;
    ++kinds;
    EXPECT_TRUE(Must(has("pf0")));
    Must(third_route->DeleteLink(GetLink(*third_route, "upper").index));
    EXPECT_FALSE(Must(has("pf0")));
  }
  EXPECT_GT(kinds, 0);
  EXPECT_EQ(has("lo").error().code, ErrorCode::kExists) << "both have it";
  EXPECT_EQ(has("nowhere").error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(Must(host_route_->FindLink("nowhere"))) << "what was made by mistake is gone";
}

TEST_F(LinkTest, WaitCarrierSeesThePeerComeUpLater) {
  const int index = AddVeth(host_, "nic0", pod_, "far0");
  BringUp(*host_route_, index);
  std::thread peer([&] {
    auto route = OpenRoute(pod_);
    // Other links' events come first.
    for (int i = 0; i < 20; ++i) {
      AddVeth(host_, "noise" + std::to_string(i), pod_, "noise" + std::to_string(i));
    }
    BringUp(*route, GetLink(*route, "far0").index);
  });
  const Deadline deadline = NetDeadline();
  const auto waited = host_route_->WaitCarrier(index, deadline);
  EXPECT_LT(std::chrono::steady_clock::now(), deadline);  // an event ended the wait
  peer.join();
  EXPECT_TRUE(Must(waited));
  const Link link = GetLink(*host_route_, index);
  EXPECT_TRUE(link.up);
  EXPECT_TRUE(link.carrier);
}

TEST_F(LinkTest, WaitCarrierEndsAtTheDeadline) {
  const int index = AddVeth(host_, "nic0", pod_, "far0");
  BringUp(*host_route_, index);
  const auto soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  EXPECT_FALSE(Must(host_route_->WaitCarrier(index, soon)));
  EXPECT_GE(std::chrono::steady_clock::now(), soon);
  EXPECT_FALSE(Must(host_route_->WaitCarrier(index, soon)));  // one that has passed
}

TEST_F(LinkTest, WaitCarrierNoticesThatTheLinkIsGone) {
  const int index = AddVeth(host_, "nic0", pod_, "far0");
  BringUp(*host_route_, index);
  std::thread thief([&] { Must(OpenRoute(host_)->MoveLink(index, pod_, "net1", std::nullopt)); });
  const auto waited = host_route_->WaitCarrier(index, NetDeadline());
  thief.join();
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, ErrorCode::kNotFound);
}

TEST_F(LinkTest, LookUpsGoOnAfterErrors) {
  const int index = AddVeth(host_, "nic0", pod_, "far0");
  for (int i = 0; i < 50; ++i) {
    LinkChange change;
    change.mtu = 1;
    EXPECT_FALSE(host_route_->ChangeLink(index, change));
    EXPECT_EQ(Must(host_route_->FindLink("nosuch")), std::nullopt);
    EXPECT_EQ(GetLink(*host_route_, index).name, "nic0");
  }
}

TEST_F(LinkTest, VfsOfALinkThatHasNone) {
  const int index = AddVeth(host_, "nic0", pod_, "far0");
  EXPECT_EQ(Must(host_route_->GetVf(index, 0)), std::nullopt);
  VfSettings change;
  change.vlan = VfVlan{100, 3, 0x8100};
  const auto refused = host_route_->SetVf(index, 2, change);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(refused.error().message.find("setting vlan 100, QoS 3 on VF 2"), std::string::npos)
      << refused.error().message;
  EXPECT_FALSE(refused.error().hint.empty());
  EXPECT_EQ(host_route_->GetVf(4242, 0).error().code, ErrorCode::kNotFound);
}

// Alias, queue length, flags and alternative names of links on the real kernel.

class LinkSettingsTest : public ::testing::Test {
 protected:
  [[nodiscard]] Link Get() const { return GetLink(*host_route_, index_); }
  NetNs host_ = MakeNetns();
  NetNs pod_ = MakeNetns();
  std::unique_ptr<RouteApi> host_route_ = OpenRoute(host_);
  std::unique_ptr<RouteApi> pod_route_ = OpenRoute(pod_);
  const int index_ = AddVeth(host_, "nic0", host_, "far0");
};

TEST_F(LinkSettingsTest, Alias) {
  LinkChange change;
  change.alias = "rail0 of team a";
  Must(host_route_->ChangeLink(index_, change));
  EXPECT_EQ(Get().alias, "rail0 of team a");
  change.alias = "";
  Must(host_route_->ChangeLink(index_, change));
  EXPECT_EQ(Get().alias, "");
  change.alias = std::string(300, 'x');
  EXPECT_FALSE(host_route_->ChangeLink(index_, change));
}

TEST_F(LinkSettingsTest, QueueLength) {
  const int before = Get().tx_queue_len;
  EXPECT_GT(before, 0);
  LinkChange change;
  change.tx_queue_len = before + 7;
  Must(host_route_->ChangeLink(index_, change));
  EXPECT_EQ(Get().tx_queue_len, before + 7);
}

// Only the named flag changes, since each message lists its flags.
TEST_F(LinkSettingsTest, FlagsOneByOne) {
  LinkChange up;
  up.up = true;
  LinkChange promiscuous;
  promiscuous.promiscuous = true;
  LinkChange all_multicast;
  all_multicast.all_multicast = true;
  EXPECT_FALSE(Get().promiscuous);
  EXPECT_FALSE(Get().all_multicast);
  Must(host_route_->ChangeLink(index_, promiscuous));
  EXPECT_TRUE(Get().promiscuous && !Get().all_multicast && !Get().up);
  Must(host_route_->ChangeLink(index_, up));
  EXPECT_TRUE(Get().promiscuous && !Get().all_multicast && Get().up);
  Must(host_route_->ChangeLink(index_, all_multicast));
  EXPECT_TRUE(Get().promiscuous && Get().all_multicast && Get().up);
  promiscuous.promiscuous = false;
  Must(host_route_->ChangeLink(index_, promiscuous));
  EXPECT_TRUE(!Get().promiscuous && Get().all_multicast && Get().up);
  all_multicast.all_multicast = false;
  up.up = false;
  all_multicast.up = false;
  Must(host_route_->ChangeLink(index_, all_multicast));
  EXPECT_TRUE(!Get().promiscuous && !Get().all_multicast && !Get().up);
}

TEST_F(LinkSettingsTest, SettingsOutliveAMove) {
  LinkChange change;
  change.alias = "of the host";
  change.tx_queue_len = 77;
  change.promiscuous = true;
  Must(host_route_->ChangeLink(index_, change));
  Must(host_route_->AddAltName(index_, "a-name-longer-than-any-first-one"));
  Must(host_route_->MoveLink(index_, pod_, "net1", {}));
  const Link moved = GetLink(*pod_route_, "net1");
  EXPECT_EQ(moved.alias, "of the host");
  EXPECT_EQ(moved.tx_queue_len, 77);
  EXPECT_TRUE(moved.promiscuous);
  EXPECT_EQ(moved.alt_names, Names{"a-name-longer-than-any-first-one"});
  EXPECT_EQ(GetLink(*pod_route_, "a-name-longer-than-any-first-one"), moved);
  EXPECT_EQ(Must(host_route_->FindLink("a-name-longer-than-any-first-one")), std::nullopt);
}

TEST_F(LinkSettingsTest, AlternativeNamesComeAndGo) {
  EXPECT_EQ(Get().alt_names, Names{});
  Must(host_route_->AddAltName(index_, "rail0"));
  Must(host_route_->AddAltName(index_, "enp67s0f0v3-of-the-first-rail"));
  Names names = Get().alt_names;
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (Names{"enp67s0f0v3-of-the-first-rail", "rail0"}));
  EXPECT_EQ(GetLink(*host_route_, "rail0"), Get());
  const auto links = Must(host_route_->ListLinks());
  EXPECT_NE(std::find(links.begin(), links.end(), Get()), links.end()) << "lists show them too";
  EXPECT_TRUE(Must(host_route_->DeleteAltName(index_, "rail0")));
  EXPECT_FALSE(Must(host_route_->DeleteAltName(index_, "rail0")));
  EXPECT_EQ(Get().alt_names, Names{"enp67s0f0v3-of-the-first-rail"});
}

TEST_F(LinkSettingsTest, NamesAreTakenOnlyOnce) {
  Must(host_route_->AddAltName(index_, "rail0"));
  const int other = GetLink(*host_route_, "far0").index;
  const auto taken = host_route_->AddAltName(other, "rail0");
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, ErrorCode::kExists);
  EXPECT_NE(taken.error().hint.find("rail0"), std::string::npos);
  EXPECT_EQ(host_route_->AddAltName(other, "nic0").error().code, ErrorCode::kExists) << "a first name";
  LinkChange rename;
  rename.name = "rail0";
  EXPECT_EQ(host_route_->ChangeLink(index_, rename).error().code, ErrorCode::kExists)
      << "also where it is the link's own";
  EXPECT_FALSE(Must(host_route_->DeleteAltName(other, "rail0"))) << "another link's";
  EXPECT_FALSE(Must(host_route_->DeleteAltName(index_, "nic0"))) << "its first name";
  EXPECT_EQ(Get().alt_names, Names{"rail0"});
  EXPECT_EQ(host_route_->AddAltName(4242, "rail1").error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(Must(host_route_->DeleteAltName(4242, "rail0")));
}

// Since the change "net: check for altname conflicts when changing netdev's netns" of
// Linux 6.6, which older stable series have too.
TEST_F(LinkSettingsTest, MoveIsRefusedWholeWhereAnAlternativeNameIsTaken) {
  Must(host_route_->AddAltName(index_, "rail0"));
  const int there = AddVeth(pod_, "eth0", pod_, "eth1");
  Must(pod_route_->AddAltName(there, "rail0"));
  EXPECT_EQ(host_route_->MoveLink(index_, pod_, "net1", {}).error().code, ErrorCode::kExists);
  EXPECT_EQ(Get().name, "nic0");
  EXPECT_TRUE(Must(pod_route_->DeleteAltName(there, "rail0")));
  Must(host_route_->MoveLink(index_, pod_, "net1", {}));
}

}  // namespace
}  // namespace railhead::testing
