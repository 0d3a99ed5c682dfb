// What the kernel counts: as bytes, and of interfaces of our own.
#include "netns/nl/counters.h"

#include <gtest/gtest.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>

#include "netns/nl/counter_messages.h"
#include "tests/support/netns/stand_in.h"

namespace railhead::testing {
namespace {

using nl::Message;

template <typename Parse>
auto Parsed(Message& message, Parse parse) {
  const auto bytes = message.Bytes().value();
  decltype(parse(nl::Received{})) result;
  nl::ForEachMessage(bytes, [&](const nl::Received& received) { result = parse(received); });
  return result;
}

void PutU64(Message& message, int type, std::uint64_t value) {
  message.PutStruct(type, value);
}

// An answer about a PF whose two VFs count in the way of their number.
Message AnswerAboutPf() {
  Message message(RTM_NEWLINK, 0);
  message.Header(ifinfomsg{});
  rtnl_link_stats64 stats{};
  stats.rx_bytes = 1'000'000'000'000;
  stats.tx_packets = 7;
  stats.rx_dropped = 3;
  stats.rx_missed_errors = 4;
  stats.tx_errors = 5;
  message.PutStruct(IFLA_STATS64, stats);
  message.PutU32(IFLA_CARRIER_CHANGES, 9);
  const Message::Nest list(message, IFLA_VFINFO_LIST);
  for (std::uint32_t vf = 0; vf < 2; ++vf) {
    const Message::Nest info(message, IFLA_VF_INFO);
    ifla_vf_mac mac{};
    mac.vf = vf;
    message.PutStruct(IFLA_VF_MAC, mac);
    const Message::Nest counted(message, IFLA_VF_STATS);
    PutU64(message, IFLA_VF_STATS_RX_BYTES, 100 + vf);
    PutU64(message, IFLA_VF_STATS_TX_BYTES, 200 + vf);
    PutU64(message, IFLA_VF_STATS_BROADCAST, 300 + vf);
    if (vf == 1) PutU64(message, IFLA_VF_STATS_RX_DROPPED, 400);
  }
  return message;
}

TEST(CounterMessages, APfAndItsVfs) {
  Message answer = AnswerAboutPf();
  const auto pf = Parsed(answer, nl::ParseTraffic);
  ASSERT_TRUE(pf);
  EXPECT_EQ(pf->traffic.rx_bytes, 1'000'000'000'000U);
  EXPECT_EQ(pf->traffic.tx_packets, 7U);
  EXPECT_EQ(pf->traffic.rx_dropped, 7U) << "also what the NIC had no buffer for";
  EXPECT_EQ(pf->traffic.tx_errors, 5U);
  EXPECT_EQ(pf->carrier_changes, 9U);
  ASSERT_EQ(pf->vfs.size(), 2U);
  EXPECT_EQ(pf->vfs[0].vf, 0);
  EXPECT_EQ(pf->vfs[0].traffic.rx_dropped, std::nullopt);
  EXPECT_EQ(pf->vfs[1].traffic.rx_bytes, 101U);
  EXPECT_EQ(pf->vfs[1].traffic.tx_bytes, 201U);
  EXPECT_EQ(pf->vfs[1].traffic.rx_broadcast, 301U);
  EXPECT_EQ(pf->vfs[1].traffic.rx_dropped, 400U);
}

TEST(CounterMessages, AnOlderKernelsCountersAreFewer) {
  Message message(RTM_NEWLINK, 0);
  message.Header(ifinfomsg{});
  const std::array<std::uint64_t, 3> first{11, 12, 13};  // rx_packets, tx_packets, rx_bytes
  message.PutStruct(IFLA_STATS64, first);
  const auto pf = Parsed(message, nl::ParseTraffic);
  ASSERT_TRUE(pf);
  EXPECT_EQ(pf->traffic.rx_packets, 11U);
  EXPECT_EQ(pf->traffic.rx_bytes, 13U);
  EXPECT_EQ(pf->traffic.tx_bytes, 0U);
}

TEST(CounterMessages, RdmaCountersHaveNames) {
  Message message(static_cast<std::uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_STAT_GET)), 0);
  {
    const Message::Nest list(message, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
    for (const std::string name : {"out_of_sequence", "np_cnp_sent"}) {
      const Message::Nest entry(message, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);
      message.PutString(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, name);
      PutU64(message, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE, name.size());
    }
  }
  EXPECT_EQ(Parsed(message, nl::ParseRdmaCounters),
            (NamedCounters{{"out_of_sequence", 15U}, {"np_cnp_sent", 11U}}));
}

TEST(LinkCountersTest, CountWhatWasSentInTheirNamespace) {
  const NetNs ns = MakeNetns();
  const NetNs peer_ns = MakeNetns();
  const int index = AddVeth(ns, "net1", peer_ns, "peer");
  const auto route = OpenRoute(ns);
  const auto peer_route = OpenRoute(peer_ns);
  BringUp(*peer_route, GetLink(*peer_route, "peer").index);
  BringUp(*route, index);
  ASSERT_TRUE(Must(route->WaitCarrier(index, NetDeadline())));
  LinkCounters counters = Must(LinkCounters::Open(ns));
  const PfTraffic before = Must(counters.Read("net1")).value();
  Must(route->AddAddress(index, *IpPrefix::Parse("10.9.0.1/24")));
  Must(route->ResolveNeighbour(index, *IpAddress::Parse("10.9.0.2")));
  (void)Must(route->WaitNeighbour(index, *IpAddress::Parse("10.9.0.2"),
                                  std::chrono::steady_clock::now() + std::chrono::milliseconds(50)));
  const PfTraffic after = Must(counters.Read("net1")).value();
  EXPECT_GT(after.traffic.tx_packets, before.traffic.tx_packets) << "ARP requests";
  EXPECT_GT(after.traffic.tx_bytes, before.traffic.tx_bytes);
  EXPECT_GE(after.carrier_changes, 1U);
  EXPECT_TRUE(after.vfs.empty());
  EXPECT_EQ(Must(counters.Read("peer")), std::nullopt) << "is in the other namespace";
}

}  // namespace
}  // namespace railhead::testing
