#include "tests/namespace/reachability/fake_switch.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "netns/packet/received_frames.h"

namespace railhead::testing {
namespace {

constexpr std::size_t kLargest = 65536;
constexpr MacAddress kSwitchMac{{0x02, 0, 0, 0, 0, 0xfe}};

UniqueFd OpenPort(const NetNs& ns, int link) {
  UniqueFd fd;
  Must(OpenSocketsIn(ns, [&]() -> Result<void> {
    fd = UniqueFd(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd.valid()) return FailSys(errno, "opening a packet socket");
    return {};
  }));
  const int on = 1;
  const int room = 8 << 20;
  (void)setsockopt(fd.get(), SOL_PACKET, PACKET_AUXDATA, &on, sizeof on);
  if (setsockopt(fd.get(), SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) != 0)
    Die(SysError(errno, "PACKET_IGNORE_OUTGOING"));
  (void)setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = link;
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    Die(SysError(errno, "binding a packet socket"));
  return fd;
}

std::uint16_t Word(const std::vector<std::uint8_t>& frame, std::size_t at) {
  return static_cast<std::uint16_t>((frame[at] << 8U) | frame[at + 1]);
}

bool IsUdp4(const std::vector<std::uint8_t>& frame) {
  return frame.size() >= 42 && Word(frame, 12) == ETH_P_IP && frame[14] == 0x45 && frame[23] == IPPROTO_UDP;
}

bool IsUdp6(const std::vector<std::uint8_t>& frame) {
  return frame.size() >= 62 && Word(frame, 12) == ETH_P_IPV6 && frame[20] == IPPROTO_UDP;
}

// The kernel expects a NIC to fill in the UDP checksum, but a veth does not. IPv4 works without it. IPv6
// needs it (RFC 8200, 8.1): the sum of addresses, length, protocol and what follows.
void SumUdp6(std::vector<std::uint8_t>* frame) {
  const std::size_t end = std::min(frame->size(), std::size_t{54} + Word(*frame, 18));
  (*frame)[60] = (*frame)[61] = 0;
  std::uint64_t sum = Word(*frame, 18) + IPPROTO_UDP;
  for (std::size_t at = 22; at < end; ++at)
    sum += at % 2 == 0 ? static_cast<unsigned>((*frame)[at]) << 8U : (*frame)[at];
  while (sum > 0xffff) sum = (sum & 0xffffU) + (sum >> 16U);
  const auto word = static_cast<std::uint16_t>(sum == 0xffff ? sum : ~sum);
  (*frame)[60] = static_cast<std::uint8_t>(word >> 8U);
  (*frame)[61] = static_cast<std::uint8_t>(word & 0xffU);
}

// The kernel has taken the tag out of the frame (net/core/skbuff.c, skb_vlan_untag). -1: nothing there.
int Receive(int port, std::vector<std::uint8_t>* frame) {
  frame->resize(kLargest);
  iovec bytes{frame->data(), frame->size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(tpacket_auxdata))> control{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = recvmsg(port, &message, 0);
  if (size < 0) return -1;
  frame->resize(static_cast<std::size_t>(size));
  for (const cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr;
       one = CMSG_NXTHDR(&message, const_cast<cmsghdr*>(one))) {
    if (one->cmsg_level != SOL_PACKET || one->cmsg_type != PACKET_AUXDATA) continue;
    tpacket_auxdata data{};
    std::memcpy(&data, CMSG_DATA(one), sizeof data);
    if ((data.tp_status & TP_STATUS_VLAN_VALID) != 0) return data.tp_vlan_tci & 0xfff;
  }
  return 0;
}

}  // namespace

FakeSwitch::FakeSwitch(const Wires& wires, int ports) {
  for (int port = 0; port < ports; ++port) ports_.push_back(OpenPort(wires.the_switch(), wires.Far(port)));
  thread_ = std::thread([this] { Loop(); });
}

FakeSwitch::~FakeSwitch() {
  stopped_ = true;
  thread_.join();
}

void FakeSwitch::Drop(std::function<bool(const Passing&)> drops) {
  const std::lock_guard lock(mutex_);
  drops_ = std::move(drops);
}

void FakeSwitch::Own(Owns owns) {
  const std::lock_guard lock(mutex_);
  owns_ = std::move(owns);
}

void FakeSwitch::Loop() {
  std::vector<std::uint8_t> frame;
  while (!stopped_) {
    std::vector<pollfd> waiting;
    {
      const std::lock_guard lock(mutex_);
      for (const UniqueFd& port : ports_) waiting.push_back({port.get(), POLLIN, 0});
    }
    if (poll(waiting.data(), waiting.size(), 20) <= 0) continue;
    const std::lock_guard lock(mutex_);
    for (std::size_t port = 0; port < ports_.size(); ++port) {
      for (int i = 0; i < 64; ++i) {
        const int vlan = Receive(ports_[port].get(), &frame);
        if (vlan < 0) break;
        Forward(static_cast<int>(port), vlan, &frame);
      }
    }
  }
}

void FakeSwitch::Forward(int from, int vlan, std::vector<std::uint8_t>* frame) {
  AnswerArp(from, vlan, *frame);
  Passing passing{from, 0, frame->size(), 0, 0, vlan, 0};
  if (IsUdp4(*frame)) {
    passing.source_port = Word(*frame, 34);
    passing.to_port = Word(*frame, 36);
    passing.traffic_class = (*frame)[15];
    (*frame)[40] = (*frame)[41] = 0;
  }
  if (IsUdp6(*frame)) {
    passing.source_port = Word(*frame, 54);
    passing.to_port = Word(*frame, 56);
    passing.traffic_class = (Word(*frame, 14) >> 4) & 0xff;
    SumUdp6(frame);
  }
  for (std::size_t port = 0; port < ports_.size(); ++port) {
    passing.to = static_cast<int>(port);
    if (passing.to != from && !(drops_ && drops_(passing))) Send(passing.to, vlan, *frame);
  }
}

void FakeSwitch::Send(int port, int vlan, std::vector<std::uint8_t> frame) {
  if (vlan != 0) {
    const std::array<std::uint8_t, 4> tag = {0x81, 0, static_cast<std::uint8_t>(vlan >> 8),
                                             static_cast<std::uint8_t>(vlan & 0xff)};
    frame.insert(frame.begin() + 12, tag.begin(), tag.end());
  }
  (void)send(ports_[static_cast<std::size_t>(port)].get(), frame.data(), frame.size(), 0);
}

void FakeSwitch::AnswerArp(int port, int vlan, const std::vector<std::uint8_t>& frame) {
  const auto arp = ParseArp(frame);
  if (!arp || arp->reply || !owns_ || !owns_(port, vlan, arp->target)) return;
  if (drops_ && drops_({-1, port, frame.size(), 0, 0, vlan, 0})) return;
  std::vector<std::uint8_t> answer(frame.begin(), frame.begin() + 42);
  std::copy(frame.begin() + 6, frame.begin() + 12, answer.begin());
  std::copy(kSwitchMac.bytes.begin(), kSwitchMac.bytes.end(), answer.begin() + 6);
  answer[21] = 2;  // a reply
  std::copy(kSwitchMac.bytes.begin(), kSwitchMac.bytes.end(), answer.begin() + 22);
  std::copy_n(arp->target.Data(), 4, answer.begin() + 28);
  std::copy(arp->sender_mac.bytes.begin(), arp->sender_mac.bytes.end(), answer.begin() + 32);
  std::copy_n(arp->sender.Data(), 4, answer.begin() + 38);
  Send(port, vlan, std::move(answer));
}

}  // namespace railhead::testing
