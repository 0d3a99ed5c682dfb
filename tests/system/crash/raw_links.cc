#include "tests/system/crash/raw_links.h"

#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <map>
#include <set>

namespace railhead::crash {
namespace {

// What the kernel counts or decides itself. QDISC: set when a link is first up.
const std::set<int>& LeftOut() {
  static const std::set<int> left_out = {IFLA_IFNAME,
                                         IFLA_STATS,
                                         IFLA_STATS64,
                                         IFLA_CARRIER,
                                         IFLA_OPERSTATE,
                                         IFLA_QDISC,
                                         IFLA_LINK,
                                         IFLA_LINK_NETNSID,
                                         IFLA_NEW_NETNSID,
                                         IFLA_NEW_IFINDEX,
                                         IFLA_CARRIER_CHANGES,
                                         IFLA_CARRIER_UP_COUNT,
                                         IFLA_EVENT,
                                         IFLA_MAP,
                                         IFLA_TARGET_NETNSID,
                                         IFLA_CARRIER_DOWN_COUNT};
  return left_out;
}

const char* NameOf(int type) {
  static const std::map<int, const char*> names = {
      {IFLA_ADDRESS, "mac"},         {IFLA_BROADCAST, "broadcast"}, {IFLA_MTU, "mtu"},
      {IFLA_MASTER, "master"},       {IFLA_TXQLEN, "txqlen"},       {IFLA_IFALIAS, "alias"},
      {IFLA_PROMISCUITY, "promisc"}, {IFLA_GROUP, "group"},         {IFLA_PERM_ADDRESS, "permanent-mac"}};
  const auto found = names.find(type);
  return found == names.end() ? nullptr : found->second;
}

const char* NameOfVf(int type) {
  static const std::map<int, const char*> names = {{IFLA_VF_MAC, "mac"},
                                                   {IFLA_VF_VLAN, "vlan"},
                                                   {IFLA_VF_TX_RATE, "tx-rate"},
                                                   {IFLA_VF_SPOOFCHK, "spoofchk"},
                                                   {IFLA_VF_LINK_STATE, "link-state"},
                                                   {IFLA_VF_RATE, "rate"},
                                                   {IFLA_VF_TRUST, "trust"},
                                                   {IFLA_VF_VLAN_LIST, "vlan-list"}};
  const auto found = names.find(type);
  return found == names.end() ? nullptr : found->second;
}

std::string Digits(nl::BytesView payload) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : payload) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 0xfU];
  }
  return text;
}

std::string Line(const char* name, int type, nl::BytesView payload) {
  return name == nullptr ? Hex(type, payload) : std::string(name) + "=" + Digits(payload);
}

// IPV4_DEVCONF_* and DEVCONF_*: one number each.
std::string Settings(const char* family, nl::BytesView payload) {
  std::string line = family;
  for (std::size_t i = 0; (i + 1) * 4 <= payload.size(); ++i) {
    const auto value = nl::ReadStruct<std::int32_t>(payload.subspan(i * 4)).value_or(0);
    if (value != 0) line += " " + std::to_string(i) + "=" + std::to_string(value);
  }
  return line;
}

void AddVfs(nl::BytesView list, std::vector<std::string>& lines) {
  nl::ForEachAttribute(list, [&](int, nl::BytesView vf) {
    nl::ForEachAttribute(vf, [&](int type, nl::BytesView payload) {
      if (type == IFLA_VF_STATS) return;
      const auto number = nl::ReadStruct<std::uint32_t>(payload);
      const bool numbered = number && type != IFLA_VF_VLAN_LIST;
      lines.push_back("vf " + (numbered ? std::to_string(*number) : "?") + " " +
                      Line(NameOfVf(type), type, payload));
    });
  });
}

void AddFamilies(nl::BytesView families, std::vector<std::string>& lines) {
  nl::ForEachAttribute(families, [&](int family, nl::BytesView attributes) {
    nl::ForEachAttribute(attributes, [&](int type, nl::BytesView payload) {
      if (family == AF_INET && type == IFLA_INET_CONF) lines.push_back(Settings("ipv4", payload));
      if (family == AF_INET6 && type == IFLA_INET6_CONF) lines.push_back(Settings("ipv6", payload));
      if (family == AF_INET6 && (type == IFLA_INET6_ADDR_GEN_MODE || type == IFLA_INET6_TOKEN))
        lines.push_back("ipv6-" + Hex(type, payload));
    });
  });
}

void AddAttribute(int type, nl::BytesView payload, RawLink& link) {
  if (LeftOut().contains(type)) return;
  switch (type) {
    case IFLA_VFINFO_LIST:
      return AddVfs(payload, link.lines);
    case IFLA_AF_SPEC:
      return AddFamilies(payload, link.lines);
    case IFLA_PROP_LIST:
      return nl::ForEachAttribute(payload, [&](int property, nl::BytesView value) {
        link.lines.push_back(property == IFLA_ALT_IFNAME ? "altname " + nl::ReadString(value)
                                                         : "property " + Hex(property, value));
      });
    case IFLA_LINKINFO:
      return nl::ForEachAttribute(payload, [&](int info, nl::BytesView value) {
        if (info == IFLA_INFO_KIND) link.lines.push_back("kind " + nl::ReadString(value));
        if (info == IFLA_INFO_DATA) link.lines.push_back("kind-data " + Digits(value));
      });
    default:
      link.lines.push_back(Line(NameOf(type), type, payload));
  }
}

}  // namespace

std::string Hex(int type, nl::BytesView payload) {
  return std::to_string(type) + "=" + Digits(payload);
}

std::optional<RawLink> ParseRawLink(const nl::Received& received) {
  nl::BytesView payload = received.payload;
  const auto header = nl::TakeHeader<ifinfomsg>(payload);
  if (received.type != RTM_NEWLINK || !header) return std::nullopt;
  RawLink link;
  link.index = header->ifi_index;
  // What follows carrier comes by itself.
  constexpr unsigned kOwn = IFF_RUNNING | IFF_LOWER_UP | IFF_DORMANT;
  link.lines.push_back("flags=" + std::to_string(header->ifi_flags & ~kOwn));
  nl::ForEachAttribute(payload, [&](int type, nl::BytesView value) {
    if (type == IFLA_IFNAME) link.name = nl::ReadString(value);
    AddAttribute(type, value, link);
  });
  return link;
}

}  // namespace railhead::crash
