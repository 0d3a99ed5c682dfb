#include "tests/system/crash/raw_state.h"

#include <linux/fib_rules.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "netns/nl/attributes.h"
#include "netns/nl/message.h"
#include "netns/nl/socket.h"

namespace railhead::crash {
namespace {

constexpr std::size_t kMacLength = 6;

using Lines = std::vector<std::string>;

// An RTM_NEWLINK message as lines of text, attribute by attribute.
struct RawLink {
  int index = 0;
  std::string name;
  std::vector<std::string> lines;  // "mtu=dc050000", "vf 0 vlan=...", "ipv4 13=1 19=1"
};

std::optional<RawLink> ParseRawLink(const nl::Received& received);

// Attributes that the kernel counts or decides itself. QDISC: set when a link is first up.
const std::set<int>& ExcludedDevice() {
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

// "4=dc050000": an attribute that has no name here.
std::string Hex(int type, nl::BytesView payload) {
  return std::to_string(type) + "=" + Digits(payload);
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
      const bool numbered = number && type != IFLA_VF_VLAN_LIST && type != IFLA_VF_BROADCAST;
      // Linux 5.10 sends bytes of its stack behind the address (rtnl_fill_vfinfo).
      if (type == IFLA_VF_BROADCAST && payload.size() > kMacLength) payload = payload.first(kMacLength);
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
  if (ExcludedDevice().contains(type)) return;
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

std::optional<RawLink> ParseRawLink(const nl::Received& received) {
  nl::BytesView payload = received.payload;
  const auto header = nl::TakeHeader<ifinfomsg>(payload);
  if (received.type != RTM_NEWLINK || !header) return std::nullopt;
  RawLink link;
  link.index = header->ifi_index;
  // The kernel changes the flags that follow carrier by itself.
  constexpr unsigned kOwn = IFF_RUNNING | IFF_LOWER_UP | IFF_DORMANT;
  link.lines.push_back("flags=" + std::to_string(header->ifi_flags & ~kOwn));
  nl::ForEachAttribute(payload, [&](int type, nl::BytesView value) {
    if (type == IFLA_IFNAME) link.name = nl::ReadString(value);
    AddAttribute(type, value, link);
  });
  return link;
}

class Reader {
 public:
  Reader(nl::Socket socket, std::string prefix) : socket_(std::move(socket)), prefix_(std::move(prefix)) {}

  Result<Lines> Read() {
    RH_TRY(ReadLinks());
    RH_TRY(ReadAddresses());
    for (const int family : {AF_INET, AF_INET6}) {
      RH_TRY(ReadRoutes(family));
      RH_TRY(ReadRules(family));
    }
    return std::move(lines_);
  }

 private:
  void Add(const std::string& line) { lines_.push_back(prefix_ + " " + line); }

  std::string NameOf(nl::BytesView payload) const {
    const auto index = nl::ReadStruct<std::uint32_t>(payload);
    const auto name = index ? names_.find(static_cast<int>(*index)) : names_.end();
    return name == names_.end() ? "link?" : name->second;
  }

  Result<void> ReadLinks() {
    nl::Message message(RTM_GETLINK, 0);
    message.Header(ifinfomsg{});
    message.PutU32(IFLA_EXT_MASK, RTEXT_FILTER_VF | RTEXT_FILTER_SKIP_STATS);
    const auto links = RH_TRY(socket_.Dump<RawLink>(message, ParseRawLink));
    for (const auto& link : links) {
      names_[link.index] = link.name;
      for (const auto& line : link.lines) Add("link " + link.name + " " + line);
    }
    return {};
  }

  Result<void> ReadAddresses() {
    nl::Message message(RTM_GETADDR, 0);
    message.Header(ifaddrmsg{});
    return Collect<ifaddrmsg>(
        message, RTM_NEWADDR, "address", [&](const ifaddrmsg& header, nl::BytesView attributes) {
          const auto index = header.ifa_index;
          std::string line = NameOf({reinterpret_cast<const std::uint8_t*>(&index), sizeof(index)});
          line += "/" + std::to_string(header.ifa_prefixlen);
          nl::ForEachAttribute(attributes, [&](int type, nl::BytesView payload) {
            // Without flags, since they change at the end of duplicate address detection.
            if (type != IFA_CACHEINFO && type != IFA_FLAGS) line += " " + Hex(type, payload);
          });
          return std::optional(line);
        });
  }

  Result<void> ReadRoutes(int family) {
    nl::Message message(RTM_GETROUTE, 0);
    rtmsg request{};
    request.rtm_family = static_cast<unsigned char>(family);
    message.Header(request);
    return Collect<rtmsg>(message, RTM_NEWROUTE, "route", [&](const rtmsg& header, nl::BytesView attributes) {
      if ((header.rtm_flags & RTM_F_CLONED) != 0) return std::optional<std::string>();
      std::string line = std::to_string(header.rtm_family) + " /" + std::to_string(header.rtm_dst_len) +
                         " type " + std::to_string(header.rtm_type) + " scope " +
                         std::to_string(header.rtm_scope) + " protocol " +
                         std::to_string(header.rtm_protocol);
      nl::ForEachAttribute(attributes, [&](int type, nl::BytesView payload) {
        if (type == RTA_OIF || type == RTA_IIF)
          line += " dev " + NameOf(payload);
        else if (type != RTA_CACHEINFO)
          line += " " + Hex(type, payload);
      });
      return std::optional(line);
    });
  }

  Result<void> ReadRules(int family) {
    nl::Message message(RTM_GETRULE, 0);
    fib_rule_hdr request{};
    request.family = static_cast<unsigned char>(family);
    message.Header(request);
    return Collect<fib_rule_hdr>(
        message, RTM_NEWRULE, "rule", [&](const fib_rule_hdr& header, nl::BytesView attributes) {
          std::string line = std::to_string(header.family) + " /" + std::to_string(header.src_len) + " /" +
                             std::to_string(header.dst_len) + " action " + std::to_string(header.action);
          nl::ForEachAttribute(attributes, [&](int type, nl::BytesView payload) {
            if (type == FRA_OIFNAME || type == FRA_IIFNAME)
              line += " dev " + nl::ReadString(payload);
            else
              line += " " + Hex(type, payload);
          });
          return std::optional(line);
        });
  }

  template <typename Header, typename Describe>
  Result<void> Collect(nl::Message& message, std::uint16_t answer, const char* what,
                       const Describe& describe) {
    const auto found = RH_TRY(
        socket_.Dump<std::string>(message, [&](const nl::Received& received) -> std::optional<std::string> {
          nl::BytesView payload = received.payload;
          const auto header = nl::TakeHeader<Header>(payload);
          if (received.type != answer || !header) return std::nullopt;
          return describe(*header, payload);
        }));
    for (const auto& line : found) Add(std::string(what) + " " + line);
    return {};
  }

  nl::Socket socket_;
  std::string prefix_;
  std::map<int, std::string> names_;
  Lines lines_;
};

}  // namespace

Result<std::vector<std::string>> ReadRawState(const NetNs& ns, const std::string& prefix) {
  std::optional<nl::Socket> socket;
  const auto open = [&]() -> Result<void> {
    socket = RH_TRY(nl::Socket::Open(NETLINK_ROUTE));
    return {};
  };
  RH_TRY(OpenSocketsIn(ns, open));
  return Reader(std::move(*socket), prefix).Read();
}

}  // namespace railhead::crash
