#include "tests/support/netns/stand_in.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "netns/nl/netlink_route.h"

namespace railhead::testing {
namespace {

nl::Message NewLink(const std::string& name) {
  nl::Message message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  message.Header(ifinfomsg{});
  message.PutString(IFLA_IFNAME, name);
  return message;
}

int Create(const NetNs& ns, nl::Message& message, const std::string& name) {
  nl::Socket socket = OpenRaw(ns);
  Must(socket.Request(message));
  return GetLink(*OpenRoute(ns), name).index;
}

}  // namespace

Deadline NetDeadline() {
  return std::chrono::steady_clock::now() + kLong;
}

void Die(const Error& error) {
  std::fprintf(stderr, "test set-up failed: %s\n", Describe(error).c_str());
  std::abort();
}

void Must(Result<void> result) {
  if (!result) Die(result.error());
}

NetNs MakeNetns() {
  // The calling thread stays in its namespace.
  std::optional<NetNs> made;
  std::thread([&] {
    if (unshare(CLONE_NEWNET) != 0) Die(SysError(errno, "making a network namespace"));
    made = Must(NetNs::Current());
  }).join();
  return std::move(*made);
}

NetNs Duplicate(const NetNs& ns) {
  return Must(NetNs::FromFd(UniqueFd(fcntl(ns.fd(), F_DUPFD_CLOEXEC, 0)), ns.path()));
}

std::unique_ptr<RouteApi> OpenRoute(const NetNs& ns) {
  return Must(OpenNetlinkRoute(ns));
}

nl::Socket OpenRaw(const NetNs& ns) {
  std::optional<nl::Socket> socket;
  Must(OpenSocketsIn(ns, [&]() -> Result<void> {
    socket = RH_TRY(nl::Socket::Open(NETLINK_ROUTE));
    return {};
  }));
  return std::move(*socket);
}

int AddVeth(const NetNs& ns, const std::string& name, const NetNs& peer_ns, const std::string& peer_name) {
  nl::Message message = NewLink(name);
  {
    const nl::Message::Nest info(message, IFLA_LINKINFO);
    message.PutString(IFLA_INFO_KIND, "veth");
    const nl::Message::Nest data(message, IFLA_INFO_DATA);
    const nl::Message::Nest peer(message, VETH_INFO_PEER);
    message.Header(ifinfomsg{});
    message.PutString(IFLA_IFNAME, peer_name);
    message.PutU32(IFLA_NET_NS_FD, static_cast<std::uint32_t>(peer_ns.fd()));
  }
  return Create(ns, message, name);
}

int AddMacvlan(const NetNs& ns, const std::string& name, int lower) {
  nl::Message message = NewLink(name);
  message.PutU32(IFLA_LINK, static_cast<std::uint32_t>(lower));
  {
    const nl::Message::Nest info(message, IFLA_LINKINFO);
    message.PutString(IFLA_INFO_KIND, "macvlan");
    const nl::Message::Nest data(message, IFLA_INFO_DATA);
    message.PutU32(IFLA_MACVLAN_MODE, MACVLAN_MODE_BRIDGE);
  }
  return Create(ns, message, name);
}

int AddBridge(const NetNs& ns, const std::string& name) {
  nl::Message message = NewLink(name);
  {
    const nl::Message::Nest info(message, IFLA_LINKINFO);
    message.PutString(IFLA_INFO_KIND, "bridge");
  }
  return Create(ns, message, name);
}

void DeleteLink(const NetNs& ns, int index) {
  nl::Message message(RTM_DELLINK, 0);
  ifinfomsg header{};
  header.ifi_index = index;
  message.Header(header);
  nl::Socket socket = OpenRaw(ns);
  Must(socket.Request(message));
}

Link GetLink(RouteApi& route, const std::string& name) {
  auto link = Must(route.FindLink(name));
  if (!link) Die(Error{ErrorCode::kNotFound, "there is no link " + name, "", 0});
  return *link;
}

Link GetLink(RouteApi& route, int index) {
  auto link = Must(route.FindLink(index));
  if (!link) Die(Error{ErrorCode::kNotFound, "there is no link " + std::to_string(index), "", 0});
  return *link;
}

void BringUp(RouteApi& route, int index) {
  LinkChange change;
  change.up = true;
  Must(route.ChangeLink(index, change));
}

void SendFrame(const NetNs& ns, int index, const std::vector<std::uint8_t>& frame) {
  UniqueFd fd;
  Must(OpenSocketsIn(ns, [&]() -> Result<void> {
    fd.Reset(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
    if (!fd.valid()) return FailSys(errno, "opening a packet socket");
    return {};
  }));
  sockaddr_ll to{};
  to.sll_family = AF_PACKET;
  to.sll_ifindex = index;
  if (sendto(fd.get(), frame.data(), frame.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) < 0)
    Die(SysError(errno, "sending a frame"));
}

Capture::Capture(const NetNs& ns, int index) {
  Must(OpenSocketsIn(ns, [&]() -> Result<void> {
    fd_.Reset(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
    if (!fd_.valid()) return FailSys(errno, "opening a packet socket");
    return {};
  }));
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = index;
  if (bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    Die(SysError(errno, "binding a packet socket"));
  }
}

std::optional<std::vector<std::uint8_t>> Capture::Next(std::uint16_t ether_type) {
  const Deadline deadline = NetDeadline();
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return std::nullopt;
    pollfd waiting{fd_.get(), POLLIN, 0};
    if (poll(&waiting, 1, static_cast<int>(left.count())) <= 0) continue;
    std::vector<std::uint8_t> frame(2048);
    sockaddr_ll from{};
    socklen_t from_size = sizeof(from);
    const ssize_t size = recvfrom(fd_.get(), frame.data(), frame.size(), MSG_DONTWAIT,
                                  reinterpret_cast<sockaddr*>(&from), &from_size);
    if (size < ETH_HLEN || from.sll_pkttype == PACKET_OUTGOING) continue;
    frame.resize(static_cast<std::size_t>(size));
    if (frame[12] == ether_type >> 8U && frame[13] == (ether_type & 0xffU)) return frame;
  }
}

}  // namespace railhead::testing
