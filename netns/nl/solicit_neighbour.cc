#include "netns/nl/solicit_neighbour.h"

#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <string>

#include "netns/base/unique_fd.h"

namespace railhead::nl {
namespace {

constexpr int kHopLimit = 255;

// It sends only: nothing is to be queued on it.
Result<UniqueFd> OpenSender(int index) {
  UniqueFd fd(socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6));
  if (!fd.valid()) return FailSys(errno, "opening an ICMPv6 socket");
  icmp6_filter nothing;
  ICMP6_FILTER_SETBLOCKALL(&nothing);
  const bool ready =
      setsockopt(fd.get(), IPPROTO_ICMPV6, ICMP6_FILTER, &nothing, sizeof(nothing)) == 0 &&
      setsockopt(fd.get(), IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof(index)) == 0 &&
      setsockopt(fd.get(), IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &kHopLimit, sizeof(kHopLimit)) == 0;
  if (!ready) return FailSys(errno, "setting up an ICMPv6 socket");
  return fd;
}

struct Solicitation {
  nd_neighbor_solicit header{};
  std::array<std::uint8_t, 2> option = {ND_OPT_SOURCE_LINKADDR, 1};  // its length in units of 8 bytes
  std::array<std::uint8_t, 6> mac{};
};
static_assert(sizeof(Solicitation) == 32);

}  // namespace

Result<bool> SolicitNeighbour(const NetNs& ns, int index, const MacAddress& mac, const IpAddress& target) {
  const std::string what =
      "soliciting neighbour " + target.ToString() + " on interface " + std::to_string(index);
  UniqueFd fd;
  const auto open = [&]() -> Result<void> {
    fd = RH_TRY(OpenSender(index));
    return {};
  };
  RH_TRY_WRAP(OpenSocketsIn(ns, open), what);
  Solicitation message;
  message.header.nd_ns_type = ND_NEIGHBOR_SOLICIT;
  std::copy_n(target.Data(), sizeof(in6_addr), message.header.nd_ns_target.s6_addr);
  message.mac = mac.bytes;
  sockaddr_in6 to{};
  to.sin6_family = AF_INET6;
  to.sin6_scope_id = static_cast<std::uint32_t>(index);
  const IpAddress group = target.SolicitedNode();
  std::copy_n(group.Data(), sizeof(in6_addr), to.sin6_addr.s6_addr);
  ssize_t sent = 0;
  do {
    sent = sendto(fd.get(), &message, sizeof(message), 0, reinterpret_cast<const sockaddr*>(&to), sizeof(to));
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && (errno == EADDRNOTAVAIL || errno == ENETUNREACH)) return false;
  if (sent < 0) return FailSys(errno, what);
  return true;
}

}  // namespace railhead::nl
