#include "deviceplugin/services/reachability/echo_request.h"

#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>

#include "deviceplugin/services/reachability/udp_socket.h"
#include "netns/base/unique_fd.h"

namespace railhead::reachability {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kEchoHeader = 8;
constexpr int kRequests = 2;
// A raw socket gets every ICMP message that comes to its address.
constexpr int kMostMessages = 64;

std::uint16_t ChecksumOf(std::span<const std::uint8_t> bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) sum += std::uint32_t{bytes[i]} << (i % 2 == 0 ? 8U : 0U);
  while ((sum >> 16U) != 0) sum = (sum & 0xffffU) + (sum >> 16U);
  return static_cast<std::uint16_t>(~sum);
}

void Put16(std::vector<std::uint8_t>* bytes, std::size_t at, std::uint16_t value) {
  (*bytes)[at] = static_cast<std::uint8_t>(value >> 8U);
  (*bytes)[at + 1] = static_cast<std::uint8_t>(value & 0xffU);
}

Result<UniqueFd> OpenRawHere(const std::string& device, const IpAddress& own) {
  const int protocol = own.IsV4() ? int{IPPROTO_ICMP} : int{IPPROTO_ICMPV6};
  UniqueFd fd(socket(own.Family(), SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol));
  if (!fd.valid()) return FailSys(errno, "opening an ICMP socket");
  if (setsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, device.c_str(),
                 static_cast<socklen_t>(device.size())) != 0)
    return FailSys(errno, "binding an ICMP socket to " + device);
  const UdpSocketAddress address({own, 0});
  if (bind(fd.get(), address.data(), address.size) != 0)
    return FailSys(errno, "binding an ICMP socket to " + own.ToString());
  return fd;
}

// Reads the packets that have arrived.
bool HasAnswer(int fd, const IpAddress& other, std::uint16_t id) {
  std::array<std::uint8_t, 128> packet{};
  for (int i = 0; i < kMostMessages; ++i) {
    UdpSocketAddress from;
    const ssize_t size = recvfrom(fd, packet.data(), packet.size(), 0, from.data(), &from.size);
    if (size < 0) return false;
    const auto end = from.End();
    if (end && end->address == other &&
        AnswersRequest({packet.data(), static_cast<std::size_t>(size)}, other.IsV4(), id))
      return true;
  }
  return false;
}

}  // namespace

std::vector<std::uint8_t> EchoRequest(bool v4, std::uint16_t id, std::uint16_t sequence) {
  std::vector<std::uint8_t> message(kEchoHeader);
  message[0] = v4 ? ICMP_ECHO : ICMP6_ECHO_REQUEST;
  Put16(&message, 4, id);
  Put16(&message, 6, sequence);
  if (v4) Put16(&message, 2, ChecksumOf(message));
  return message;
}

bool AnswersRequest(std::span<const std::uint8_t> packet, bool v4, std::uint16_t id) {
  std::size_t header = 0;
  if (v4) {
    if (packet.empty()) return false;
    header = std::size_t{4} * (packet[0] & 0x0fU);
  }
  if (packet.size() < header + kEchoHeader) return false;
  const auto message = packet.subspan(header);
  return message[0] == (v4 ? ICMP_ECHOREPLY : ICMP6_ECHO_REPLY) && message[1] == 0 &&
         (message[4] << 8U | message[5]) == id;
}

Result<bool> AnswersEcho(const NetNs& ns, const std::string& device, const IpAddress& own,
                         const IpAddress& other, milliseconds limit) {
  UniqueFd fd;
  const auto open = [&]() -> Result<void> {
    fd = RH_TRY(OpenRawHere(device, own));
    return {};
  };
  RH_TRY_WRAP(OpenSocketsIn(ns, open), "in " + ns.path());
  const auto id = static_cast<std::uint16_t>(std::random_device{}());
  const UdpSocketAddress to({other, 0});
  const auto begin = Clock::now();
  for (int i = 0; i < kRequests; ++i) {
    const auto request = EchoRequest(own.IsV4(), id, static_cast<std::uint16_t>(i));
    // A request that cannot be sent counts as one without an answer.
    (void)sendto(fd.get(), request.data(), request.size(), MSG_DONTWAIT, to.data(), to.size);
    const auto until = begin + limit * (i + 1) / kRequests;
    for (auto now = Clock::now(); now < until; now = Clock::now()) {
      pollfd waiting{fd.get(), POLLIN, 0};
      const auto left = std::chrono::ceil<milliseconds>(until - now).count();
      const int ready = ::poll(&waiting, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)));
      if (ready < 0 && errno != EINTR) return FailSys(errno, "waiting for an ICMP echo reply");
      if (ready > 0 && HasAnswer(fd.get(), other, id)) return true;
    }
  }
  return false;
}

}  // namespace railhead::reachability
