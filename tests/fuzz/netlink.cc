// A datagram from a netlink socket: split into messages, each through every parser.
#include "netns/nl/address_messages.h"
#include "netns/nl/counter_messages.h"
#include "netns/nl/dcb_messages.h"
#include "netns/nl/device_messages.h"
#include "netns/nl/devlink_messages.h"
#include "netns/nl/ethtool_messages.h"
#include "netns/nl/link_messages.h"
#include "netns/nl/neighbour_messages.h"
#include "netns/nl/netlink_rdma.h"
#include "netns/nl/route_messages.h"
#include "netns/nl/rule_messages.h"
#include "netns/nl/uevents.h"
#include "netns/nl/vf_messages.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace nl = railhead::nl;
  nl::ForEachMessage({data, size}, [](const nl::Received& received) {
    (void)nl::ParseAck(received);
    (void)nl::ParseAddress(received);
    (void)nl::ParseLink(received);
    (void)nl::ParseLinkEvent(received);
    const auto stacked = nl::ParseStacked(received);
    railhead::fuzz::Require(!stacked || stacked->lower > 0, "what is stacked is on something");
    const auto nsid = nl::ParseNsid(received);
    railhead::fuzz::Require(!nsid || *nsid >= 0, "a namespace that has a number has one");
    (void)nl::ParseNeighbour(received);
    (void)nl::ParseTraffic(received);
    for (const auto& [name, value] : nl::ParseRdmaCounters(received))
      railhead::fuzz::Require(!name.empty(), "a counter has a name");
    (void)nl::ParseRoute(received);
    (void)nl::ParseRule(received);
    (void)nl::ParseNetnsMode(received);
    if (const auto dcb = nl::ParseDcb(received)) {
      for (const auto& [dscp, priority] : dcb->dscp)
        railhead::fuzz::Require(dscp < 64 && priority < 8, "DSCP and priority are in range");
    }
    railhead::DeviceState settings;
    nl::ParseDevice(received, settings);
    nl::ParseDcbSettings(received, settings);
    for (const auto source : nl::EthtoolSources()) nl::ParseEthtool(received, source, settings);
    if (const auto qdisc = nl::ParseQdisc(received)) settings.values["qdisc.root"] = *qdisc;
    for (const auto& [name, value] : settings.values) {
      const auto* field = railhead::FindDeviceField(name);
      railhead::fuzz::Require(field != nullptr && railhead::IsDeviceValue(*field, value),
                              "what is read of a device can be stored and read again");
    }
    (void)nl::ParseDcbAnswer(received);
    (void)nl::ParseEthtoolFamily(received);
    (void)nl::ParseChangeableFeatures(received);
    (void)nl::ParseDevlinkFamily(received);
    const auto news = nl::ParseDevlinkNews(received);
    railhead::fuzz::Require(!news || news->instance || !news->reporter.empty(), "news are about something");
    if (auto device = nl::ParseRdmaDevice(received)) nl::ParseRdmaPort(received, *device);
    for (const auto& kind : nl::RdmaResourceKinds()) (void)nl::ParseRdmaOwners(kind, received);
    for (const auto& one : nl::ParseVfs(received))
      railhead::fuzz::Require(one.first >= 0, "a VF has a number");
  });
  // The kernel's other announcements, on a socket of their own.
  (void)railhead::IsRelevantUevent({reinterpret_cast<const char*>(data), size});
  return 0;
}
