#include "netns/packet/lldp_listener.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include "netns/base/addresses.h"

namespace railhead {
namespace {

constexpr int kLldpAtOnce = 64;
// An LLDP frame fits into any Ethernet frame; larger frames are not LLDP.
constexpr std::size_t kLldpFrame = 1600;
// A few of the largest. A flood fills this buffer, and not the node's memory.
constexpr int kLldpBuffer = 32 * 1024;

// Nearest bridge, nearest non-TPMR bridge, nearest customer bridge.
constexpr std::array<MacAddress, 3> kLldpGroups = {{{{0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e}},
                                                    {{0x01, 0x80, 0xc2, 0x00, 0x00, 0x03}},
                                                    {{0x01, 0x80, 0xc2, 0x00, 0x00, 0x00}}}};

// Frames to a group that the device has joined, and that are the device's own. Frames of VLANs that it does
// not have look as if they were for another host; those of VLANs that it has are the VLAN interface's when
// they come here (__netif_receive_skb_core in net/core/dev.c). A VF can send in its VLAN.
std::array<sock_filter, 6> LldpFilter(int link) {
  return {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(SKF_AD_OFF + SKF_AD_PKTTYPE)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_MULTICAST, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(SKF_AD_OFF + SKF_AD_IFINDEX)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(link), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, 0x40000),
      BPF_STMT(BPF_RET | BPF_K, 0),
  }};
}

Result<void> JoinLldpGroups(int fd, int link) {
  for (const MacAddress& group : kLldpGroups) {
    packet_mreq membership{};
    membership.mr_ifindex = link;
    membership.mr_type = PACKET_MR_MULTICAST;
    membership.mr_alen = group.bytes.size();
    std::copy(group.bytes.begin(), group.bytes.end(), std::begin(membership.mr_address));
    if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership, sizeof(membership)) != 0)
      return FailSys(errno, "joining multicast group " + group.ToString());
  }
  return {};
}

Result<UniqueFd> OpenLldpSocket(int link) {
  // Protocol 0: nothing comes in before the filter is there.
  UniqueFd fd(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) {
    Error error = SysError(errno, "opening a packet socket");
    if (error.sys_errno == EPERM) error.hint = "this needs CAP_NET_RAW";
    return Fail(std::move(error));
  }
  auto filter = LldpFilter(link);
  const sock_fprog program{filter.size(), filter.data()};
  if (setsockopt(fd.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) != 0)
    return FailSys(errno, "filtering a packet socket");
  (void)setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &kLldpBuffer, sizeof(kLldpBuffer));
  RH_TRY(JoinLldpGroups(fd.get(), link));
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_LLDP);
  address.sll_ifindex = link;
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return FailSys(errno, "binding a packet socket");
  return fd;
}

}  // namespace

Result<LldpListener> LldpListener::Open(const NetNs& ns, int link) {
  const std::string what = "listening for LLDP on interface " + std::to_string(link);
  // A socket that is bound to 0 would hear all of them.
  if (link <= 0) return Fail(ErrorCode::kNotFound, what + ": the interface does not exist");
  UniqueFd fd;
  const auto open = [&]() -> Result<void> {
    fd = RH_TRY(OpenLldpSocket(link));
    return {};
  };
  RH_TRY_WRAP(OpenSocketsIn(ns, open), what);
  return LldpListener(std::move(fd), link);
}

Result<std::optional<LldpNeighbor>> LldpListener::Receive(std::chrono::steady_clock::time_point deadline) {
  std::array<std::uint8_t, kLldpFrame> frame{};
  for (int i = 0; i < kLldpAtOnce;) {
    const ssize_t size = recv(fd_.get(), frame.data(), frame.size(), MSG_TRUNC);
    // The device went down: the kernel reports this once, and nothing has to be done.
    if (size < 0 && (errno == EINTR || errno == ENETDOWN)) continue;
    if (size < 0 && errno != EAGAIN)
      return FailSys(errno, "receiving LLDP on interface " + std::to_string(link_));
    if (size >= 0) {
      ++i;
      if (static_cast<std::size_t>(size) > frame.size()) continue;
      auto neighbor = ParseLldp({frame.data(), static_cast<std::size_t>(size)});
      if (neighbor) return neighbor;
      continue;
    }
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    pollfd waiting{fd_.get(), POLLIN, 0};
    const int limit = static_cast<int>(std::min<std::int64_t>(left.count(), 60'000));
    if (poll(&waiting, 1, limit) < 0 && errno != EINTR)
      return FailSys(errno, "waiting for LLDP on interface " + std::to_string(link_));
  }
  return std::nullopt;
}

}  // namespace railhead
