#include "netns/packet/conflict.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>
#include <string>

#include "netns/base/text.h"
#include "netns/base/unique_fd.h"
#include "netns/packet/frames.h"
#include "netns/packet/received_frames.h"

namespace railhead {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kProbes = 3;
// Of the RFC's seconds (see the header): at most 1 + 2 + 2, and 2 to listen.
constexpr int kSeconds = 7;
constexpr int kListen = 2;
// Until a full queue takes another frame.
constexpr std::chrono::milliseconds kRetry{1};
// Frames read between two readings of the clock: a flood must not keep us from sending.
constexpr int kFramesAtOnce = 64;
constexpr std::size_t kFrameSize = 2048;

// ARP, neighbour solicitations and advertisements that others sent to us or to all.
// PACKET_OTHERHOST marks the frames to another host that a promiscuous link sees. It also marks every frame
// of a VLAN that the link does not have (__netif_receive_skb_core).
constexpr std::array<sock_filter, 12> kFilter = {{
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(SKF_AD_OFF + SKF_AD_PKTTYPE)),
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, PACKET_OTHERHOST, 9, 0),
    BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_ARP, 6, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IPV6, 0, 6),
    BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 20),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_ICMPV6, 0, 4),
    BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 54),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 135, 1, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 136, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, kFrameSize),
    BPF_STMT(BPF_RET | BPF_K, 0),
}};

// Hears one protocol on all links of the calling thread's namespace.
Result<UniqueFd> OpenPacketSocket(std::uint16_t protocol) {
  // Protocol 0: nothing comes in before the filter is there.
  UniqueFd fd(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) {
    Error error = SysError(errno, "opening a packet socket");
    if (error.sys_errno == EPERM) error.hint = "this needs CAP_NET_RAW";
    return Fail(std::move(error));
  }
  auto filter = kFilter;
  const sock_fprog program{filter.size(), filter.data()};
  if (setsockopt(fd.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) != 0) {
    return FailSys(errno, "filtering a packet socket");
  }
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(protocol);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return FailSys(errno, "binding a packet socket");
  }
  return fd;
}

std::string TextOf(const ProbeTarget& target) {
  return target.address.ToString() + " on interface " + std::to_string(target.link);
}

// RFC 4291 appendix A, as Linux makes it of a MAC (addrconf_ifid_eui48).
IpAddress LinkLocalOf(const MacAddress& mac) {
  const auto& b = mac.bytes;
  const std::array<std::uint8_t, 16> bytes = {
      0xfe, 0x80, 0,    0,    0,    0,    0,   0, static_cast<std::uint8_t>(b[0] ^ 2U),
      b[1], b[2], 0xff, 0xfe, b[3], b[4], b[5]};
  return *IpAddress::FromBytes(bytes.data(), bytes.size());
}

std::vector<std::uint8_t> FrameFor(const ProbeTarget& target) {
  if (target.address.IsV4()) return ArpProbe(target.mac, target.address);
  if (!target.of_router) return NeighbourProbe(target.mac, target.address);
  return NeighbourSolicitation(target.mac, LinkLocalOf(target.mac), target.address);
}

struct Probe {
  ProbeTarget target;
  std::vector<std::uint8_t> frame;
  Clock::time_point due;
  int sent = 0;
  std::optional<MacAddress> other;
  MacAddress source;  // of the frame that says so

  [[nodiscard]] bool HasMore() const { return !other && sent < kProbes; }
};

// The sockets and what is to be sent and heard on them.
class Prober {
 public:
  Prober(const std::vector<ProbeTarget>& targets, std::chrono::milliseconds budget);
  Result<void> Open(const NetNs& ns);
  Result<void> Run();
  [[nodiscard]] std::vector<AddressConflict> Conflicts() const;

 private:
  [[nodiscard]] const UniqueFd& SocketOf(const ProbeTarget& target) const {
    return target.address.IsV4() ? arp_ : ipv6_;
  }
  Result<void> JoinGroups(const ProbeTarget& target);
  Result<void> SendDue(Clock::time_point now);
  Result<void> Send(Probe& one, Clock::time_point now);
  Result<void> Wait(Clock::time_point now);
  Result<void> Receive(int fd);
  void FindConflicts(std::span<const std::uint8_t> frame, int link);
  [[nodiscard]] bool IsOver(Clock::time_point now) const;
  Clock::duration Within() {
    return std::chrono::microseconds(
        std::uniform_int_distribution<std::int64_t>(0, second_.count())(random_));
  }

  std::minstd_rand random_{std::random_device{}()};
  std::chrono::microseconds second_;  // replaces the RFC's
  std::vector<Probe> all_;
  std::vector<MacAddress> own_;
  Clock::time_point end_;
  UniqueFd arp_;
  UniqueFd ipv6_;
};

Prober::Prober(const std::vector<ProbeTarget>& targets, std::chrono::milliseconds budget)
    : second_(std::chrono::duration_cast<std::chrono::microseconds>(budget) / kSeconds) {
  const auto start = Clock::now();
  end_ = start + budget;
  for (const ProbeTarget& target : targets) {
    Probe one;
    one.target = target;
    one.frame = FrameFor(target);
    one.due = start + Within();
    all_.push_back(std::move(one));
    own_.push_back(target.mac);
  }
}

Result<void> Prober::Open(const NetNs& ns) {
  const auto has = [&](bool v4) {
    return std::ranges::any_of(all_, [&](const Probe& one) { return one.target.address.IsV4() == v4; });
  };
  const auto open = [&]() -> Result<void> {
    if (has(true)) arp_ = RH_TRY(OpenPacketSocket(ETH_P_ARP));
    if (has(false)) ipv6_ = RH_TRY(OpenPacketSocket(ETH_P_IPV6));
    return {};
  };
  RH_TRY_WRAP(OpenSocketsIn(ns, open), "probing addresses in " + ns.path());
  for (const Probe& one : all_) {
    if (one.target.address.IsV6()) RH_TRY_WRAP(JoinGroups(one.target), "probing " + TextOf(one.target));
  }
  return {};
}

// Other hosts send solicitations to the address's group, and advertisements in defence to all nodes. The NIC
// lets both pass only while someone has joined.
Result<void> Prober::JoinGroups(const ProbeTarget& target) {
  constexpr MacAddress kAllNodesGroup{{0x33, 0x33, 0, 0, 0, 1}};
  for (const MacAddress& group : {SolicitedNodeMac(target.address), kAllNodesGroup}) {
    packet_mreq membership{};
    membership.mr_ifindex = target.link;
    membership.mr_type = PACKET_MR_MULTICAST;
    membership.mr_alen = group.bytes.size();
    std::copy(group.bytes.begin(), group.bytes.end(), std::begin(membership.mr_address));
    if (setsockopt(ipv6_.get(), SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership, sizeof(membership)) != 0) {
      return FailSys(errno, "joining multicast group " + group.ToString());
    }
  }
  return {};
}

Result<void> Prober::SendDue(Clock::time_point now) {
  for (Probe& one : all_) {
    if (one.HasMore() && one.due <= now) RH_TRY_WRAP(Send(one, now), "probing " + TextOf(one.target));
  }
  return {};
}

// The times count from the actual sending: a process that is held up must not end without having listened.
Result<void> Prober::Send(Probe& one, Clock::time_point now) {
  sockaddr_ll to{};
  to.sll_family = AF_PACKET;
  to.sll_ifindex = one.target.link;
  const ssize_t sent = sendto(SocketOf(one.target).get(), one.frame.data(), one.frame.size(), 0,
                              reinterpret_cast<const sockaddr*>(&to), sizeof(to));
  if (sent < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOBUFS) && now < end_) {
    one.due = now + kRetry;
    return {};
  }
  if (sent < 0) {
    Error error = SysError(errno, "sending a frame");
    if (error.sys_errno == ENETDOWN) error.hint = "the interface must be up";
    return Fail(std::move(error));
  }
  ++one.sent;
  one.due = now + second_ + Within();
  if (one.sent == kProbes) end_ = std::max(end_, now + kListen * second_);
  return {};
}

// Until something comes in, the next probe is due or, after all of them, time is over.
Result<void> Prober::Wait(Clock::time_point now) {
  auto until = Clock::time_point::max();
  for (const Probe& one : all_) {
    if (one.HasMore()) until = std::min(until, one.due);
  }
  if (until == Clock::time_point::max()) until = end_;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
  // A descriptor of -1 is skipped.
  std::array<pollfd, 2> waiting = {{{arp_.get(), POLLIN, 0}, {ipv6_.get(), POLLIN, 0}}};
  const int ready =
      poll(waiting.data(), waiting.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)));
  if (ready < 0 && errno != EINTR) return FailSys(errno, "waiting for answers to address probes");
  for (const pollfd& one : waiting) {
    if (ready > 0 && one.revents != 0) RH_TRY(Receive(one.fd));
  }
  return {};
}

Result<void> Prober::Receive(int fd) {
  std::array<std::uint8_t, kFrameSize> frame{};
  for (int i = 0; i < kFramesAtOnce; ++i) {
    sockaddr_ll from{};
    socklen_t from_size = sizeof(from);
    const ssize_t size =
        recvfrom(fd, frame.data(), frame.size(), 0, reinterpret_cast<sockaddr*>(&from), &from_size);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (size < 0) return FailSys(errno, "receiving answers to address probes");
    FindConflicts({frame.data(), static_cast<std::size_t>(size)}, from.sll_ifindex);
  }
  return {};
}

void Prober::FindConflicts(std::span<const std::uint8_t> frame, int link) {
  for (Probe& one : all_) {
    if (one.other || one.target.link != link) continue;
    one.other = ConflictIn(frame, one.target, own_);
    // ConflictIn() has seen that there is a whole Ethernet header.
    if (one.other) std::copy_n(frame.begin() + ETH_ALEN, ETH_ALEN, one.source.bytes.begin());
  }
}

bool Prober::IsOver(Clock::time_point now) const {
  const auto is_found = [](const Probe& one) { return one.other.has_value(); };
  const auto has_more = [](const Probe& one) { return one.HasMore(); };
  return std::ranges::all_of(all_, is_found) || (now >= end_ && std::ranges::none_of(all_, has_more));
}

Result<void> Prober::Run() {
  for (;;) {
    const auto now = Clock::now();
    RH_TRY(SendDue(now));
    // The last read comes after the end: everything that arrived before the end counts.
    RH_TRY(Wait(now));
    if (IsOver(now)) return {};
  }
}

std::vector<AddressConflict> Prober::Conflicts() const {
  std::vector<AddressConflict> conflicts;
  for (const Probe& one : all_) {
    if (one.other) conflicts.push_back({one.target, *one.other, one.source});
  }
  return conflicts;
}

Result<void> Check(const ProbeTarget& target) {
  const bool address = !target.address.IsUnspecified() && !target.address.IsMulticast();
  if (address && target.link > 0 && !target.mac.IsZero() && !target.mac.IsMulticast()) return {};
  return Fail(ErrorCode::kInvalid, "probing " + TextOf(target) + ": " + target.address.ToString() +
                                       " with MAC " + target.mac.ToString() + " cannot be used by one host");
}

}  // namespace

std::optional<MacAddress> ConflictIn(std::span<const std::uint8_t> frame, const ProbeTarget& target,
                                     const std::vector<MacAddress>& own) {
  const auto is_ours = [&](const MacAddress& mac) { return mac == target.mac || Contains(own, mac); };
  if (target.address.IsV4()) {
    const auto arp = ParseArp(frame);
    if (!arp || arp->sender_mac == target.mac) return std::nullopt;
    if (arp->sender == target.address) return arp->sender_mac;
    const bool probe =
        !target.of_router && !arp->reply && arp->sender.IsUnspecified() && arp->ethernet_to.IsMulticast();
    if (!probe || arp->target != target.address || is_ours(arp->sender_mac)) return std::nullopt;
    return arp->sender_mac;
  }
  const auto message = ParseNeighbourMessage(frame);
  if (!message || message->target != target.address) return std::nullopt;
  if (message->advertisement) {
    const MacAddress who = message->target_mac.value_or(message->ethernet_from);
    return who == target.mac ? std::nullopt : std::optional(who);
  }
  if (target.of_router || !message->source.IsUnspecified() || is_ours(message->ethernet_from))
    return std::nullopt;
  return message->ethernet_from;
}

Result<std::vector<AddressConflict>> ProbeAddresses(const NetNs& ns, const std::vector<ProbeTarget>& targets,
                                                    std::chrono::milliseconds budget) {
  if (targets.empty() || budget.count() <= 0) return std::vector<AddressConflict>{};
  for (const ProbeTarget& target : targets) RH_TRY(Check(target));
  Prober prober(targets, budget);
  RH_TRY(prober.Open(ns));
  RH_TRY(prober.Run());
  return prober.Conflicts();
}

}  // namespace railhead
