#include "tests/system/crash/raw_state.h"

#include <linux/fib_rules.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <map>
#include <optional>

#include "netns/nl/socket.h"
#include "tests/system/crash/raw_links.h"

namespace railhead::crash {
namespace {

using Lines = std::vector<std::string>;

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
            // Flags: whether duplicate address detection is over is a matter of time.
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
