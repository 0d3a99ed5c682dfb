#include "deviceplugin/services/reachability/udp_socket.h"

#include <arpa/inet.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <string_view>

#include "netns/base/bytes.h"

namespace railhead::reachability {
namespace {

Result<UniqueFd> OpenUdpHere(const std::string& device, const UdpEnd& own, int traffic_class) {
  UniqueFd fd(socket(own.address.Family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return FailSys(errno, "opening a UDP socket");
  if (setsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, device.c_str(),
                 static_cast<socklen_t>(device.size())) != 0)
    return FailSys(errno, "binding a UDP socket to " + device);
  const bool v4 = own.address.IsV4();
  const int probe = IP_PMTUDISC_PROBE;
  static_assert(IP_PMTUDISC_PROBE == IPV6_PMTUDISC_PROBE);
  if (setsockopt(fd.get(), v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_MTU_DISCOVER : IPV6_MTU_DISCOVER, &probe,
                 sizeof probe) != 0)
    return FailSys(errno, "turning fragmentation off");
  if (setsockopt(fd.get(), v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TOS : IPV6_TCLASS, &traffic_class,
                 sizeof traffic_class) != 0)
    return FailSys(errno, "setting the traffic class " + std::to_string(traffic_class));
  const UdpSocketAddress address(own);
  if (bind(fd.get(), address.data(), address.size) != 0)
    return FailSys(errno,
                   "binding a UDP socket to " + own.address.ToString() + " port " + std::to_string(own.port));
  return fd;
}

}  // namespace

Result<UniqueFd> OpenUdp(const NetNs& ns, const std::string& device, const UdpEnd& own, int traffic_class) {
  UniqueFd fd;
  const auto open = [&]() -> Result<void> {
    fd = RH_TRY(OpenUdpHere(device, own, traffic_class));
    return {};
  };
  RH_TRY_WRAP(OpenSocketsIn(ns, open), "in " + ns.path());
  return fd;
}

UdpSocketAddress::UdpSocketAddress(const UdpEnd& end) {
  if (end.address.IsV4()) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(end.port);
    std::memcpy(&in.sin_addr, end.address.Data(), end.address.Size());
    std::memcpy(&storage, &in, sizeof in);
    size = sizeof in;
  } else {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(end.port);
    std::memcpy(&in.sin6_addr, end.address.Data(), end.address.Size());
    std::memcpy(&storage, &in, sizeof in);
    size = sizeof in;
  }
}

std::optional<UdpEnd> UdpSocketAddress::End() const {
  if (storage.ss_family == AF_INET && size >= sizeof(sockaddr_in)) {
    sockaddr_in in{};
    std::memcpy(&in, &storage, sizeof in);
    return UdpEnd{*IpAddress::FromBytes(&in.sin_addr, sizeof in.sin_addr), ntohs(in.sin_port)};
  }
  if (storage.ss_family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
    sockaddr_in6 in{};
    std::memcpy(&in, &storage, sizeof in);
    return UdpEnd{*IpAddress::FromBytes(&in.sin6_addr, sizeof in.sin6_addr), ntohs(in.sin6_port)};
  }
  return std::nullopt;
}

UdpEnd OwnEnd(int socket) {
  UdpSocketAddress own;
  if (::getsockname(socket, own.data(), &own.size) != 0) return {};
  return own.End().value_or(UdpEnd{});
}

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kSendsAtOnce = 32;
constexpr milliseconds kBreath{1};
constexpr int kAnswersAtOnce = 256;
constexpr std::size_t kUdpHeader = 8;

std::size_t PayloadOf(const Probe& probe) {
  const std::size_t headers = (probe.to.address.IsV4() ? 20 : 40) + kUdpHeader;
  return probe.packet > headers + kProbeHeader ? probe.packet - headers : kProbeHeader;
}

class ProbeSender {
 public:
  ProbeSender(std::vector<Probe>* probes, const SharedKeys* keys)
      : probes_(*probes), keys_(keys), sent_(probes->size()) {
    std::random_device random;
    base_ = (std::uint64_t{random()} << 32U) | random();
    for (const Probe& probe : probes_) sockets_.try_emplace(probe.socket);
    for (auto& [socket, own] : sockets_) own = OwnEnd(socket).address;
  }

  Result<void> Run(milliseconds limit) {
    for (std::size_t i = 0; i < probes_.size(); ++i) {
      Send(i);
      if (i % kSendsAtOnce == kSendsAtOnce - 1) RH_TRY(Take(Clock::now() + kBreath));
    }
    const auto end = Clock::now() + limit;
    while (open_ > 0 && Clock::now() < end) RH_TRY(Take(end));
    return {};
  }

 private:
  void Send(std::size_t i) {
    Probe& probe = probes_[i];
    const ProbeMessage message{false, probe.session, base_ + i, 0, 0};
    const ProbeEnds ends{sockets_[probe.socket], probe.to.address};
    const auto payload = keys_ == nullptr ? BytesOf(message, PayloadOf(probe))
                                          : SignedBytesOf(message, *keys_, ends, PayloadOf(probe));
    const UdpSocketAddress to(probe.to);
    sent_[i] = Clock::now();
    ssize_t size = 0;
    do {
      size = sendto(probe.socket, payload.data(), payload.size(), MSG_DONTWAIT, to.data(), to.size);
    } while (size < 0 && errno == EINTR);
    probe.too_large = size < 0 && errno == EMSGSIZE;
    if (size >= 0) ++open_;
  }

  Result<void> Take(Clock::time_point until) {
    std::vector<pollfd> waiting;
    waiting.reserve(sockets_.size());
    for (const auto& [socket, own] : sockets_) waiting.push_back({socket, POLLIN, 0});
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
    const int ready =
        ::poll(waiting.data(), waiting.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)));
    if (ready < 0 && errno != EINTR) return FailSys(errno, "waiting for answers to probes");
    for (const pollfd& one : waiting) {
      if (ready > 0 && one.revents != 0) Receive(one.fd);
    }
    return {};
  }

  void Receive(int socket) {
    std::array<std::uint8_t, kSignedProbe> begin{};
    for (int i = 0; i < kAnswersAtOnce; ++i) {
      UdpSocketAddress from;
      const ssize_t size = recvfrom(socket, begin.data(), begin.size(), 0, from.data(), &from.size);
      if (size < 0) return;
      const auto sender = from.End();
      if (!sender) continue;
      const auto answer = CheckProbe({begin.data(), static_cast<std::size_t>(size)}, keys_,
                                     {sender->address, sockets_[socket]});
      if (answer && answer->message.answer) Match(socket, answer->message, *sender);
    }
  }

  void Match(int socket, const ProbeMessage& answer, const UdpEnd& from) {
    const std::uint64_t i = answer.token - base_;
    if (i >= probes_.size()) return;
    Probe& probe = probes_[i];
    if (probe.rtt || probe.socket != socket || probe.session != answer.session || from != probe.to) return;
    probe.rtt = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - sent_[i]);
    probe.heard = answer.heard;
    probe.queue_pair = answer.queue_pair;
    --open_;
  }

  std::vector<Probe>& probes_;
  const SharedKeys* const keys_;
  std::vector<Clock::time_point> sent_;
  std::map<int, IpAddress> sockets_;  // and whose they are
  std::uint64_t base_ = 0;
  std::size_t open_ = 0;
};

}  // namespace

Result<void> SendProbes(std::vector<Probe>* probes, milliseconds limit, const SharedKeys* keys) {
  return ProbeSender(probes, keys).Run(limit);
}

namespace {

constexpr std::string_view kBegin = "RHrp\x01";
constexpr std::uint8_t kProbe = 1;
constexpr std::uint8_t kAnswer = 2;
constexpr std::uint16_t kReserved = 0;
constexpr std::uint32_t kQueuePairs = 0xffffff;

std::string SignedPart(std::span<const std::uint8_t> payload, const ProbeEnds& ends) {
  std::string part(payload.begin(), payload.begin() + kProbeHeader);
  return part.append(ends.from.ToString()).append("\n").append(ends.to.ToString());
}

}  // namespace

std::vector<std::uint8_t> BytesOf(const ProbeMessage& message, std::size_t size) {
  bytes::Writer header;
  header.PutRaw(kBegin).Put(message.answer ? kAnswer : kProbe).Put(kReserved);
  header.Put(message.session).Put(message.token).Put(message.heard).Put(message.queue_pair);
  std::vector<std::uint8_t> bytes(header.bytes().begin(), header.bytes().end());
  bytes.resize(std::max(size, kProbeHeader));
  return bytes;
}

std::optional<ProbeMessage> ParseProbe(std::span<const std::uint8_t> payload) {
  if (payload.size() < kProbeHeader) return std::nullopt;
  bytes::Reader from({reinterpret_cast<const char*>(payload.data()), payload.size()});
  if (from.Take(kBegin.size()) != kBegin) return std::nullopt;
  const auto kind = from.Number<std::uint8_t>();
  if (kind != kProbe && kind != kAnswer) return std::nullopt;
  (void)from.Take(sizeof(kReserved));
  ProbeMessage message;
  message.answer = kind == kAnswer;
  message.session = from.Number();
  message.token = from.Number();
  message.heard = from.Number<std::uint32_t>();
  message.queue_pair = from.Number<std::uint32_t>() & kQueuePairs;
  return message;
}

std::vector<std::uint8_t> SignedBytesOf(const ProbeMessage& message, const SharedKeys& keys,
                                        const ProbeEnds& ends, std::size_t size) {
  auto bytes = BytesOf(message, std::max(size, kSignedProbe));
  const auto signature = keys.Sign(SignedPart(bytes, ends));
  std::copy(signature.begin(), signature.end(), bytes.begin() + kProbeHeader);
  return bytes;
}

std::optional<CheckedProbe> CheckProbe(std::span<const std::uint8_t> payload, const SharedKeys* keys,
                                       const ProbeEnds& ends) {
  const auto message = ParseProbe(payload);
  if (!message) return std::nullopt;
  if (keys == nullptr) return CheckedProbe{*message, false};
  const bool is_signed =
      payload.size() >= kSignedProbe &&
      keys->Verify(SignedPart(payload, ends), payload.subspan(kProbeHeader, SharedKeys::kSignature));
  if (!is_signed && !keys->takes_unsigned()) return std::nullopt;
  return CheckedProbe{*message, is_signed};
}

}  // namespace railhead::reachability
