#include "deviceplugin/services/reachability/echo_server.h"

#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>
#include <utility>
#include <vector>

#include "deviceplugin/services/reachability/udp_socket.h"

namespace railhead::reachability {
namespace {

constexpr std::size_t kProbesAtOnce = 64;
constexpr std::size_t kSessionsOfPeer = 8;
// Holds the probes that arrive while this thread waits for a CPU.
constexpr int kReceiveBuffer = 4 << 20;
// Packets to an unresolved neighbour stay in the buffer. It has room for two thousand of them, so that absent
// peers cost the others no answer.
constexpr int kSendBuffer = 32 << 20;

void SetBuffer(int fd, int forced, int allowed, int size) {
  if (setsockopt(fd, SOL_SOCKET, forced, &size, sizeof size) != 0)
    (void)setsockopt(fd, SOL_SOCKET, allowed, &size, sizeof size);
}

}  // namespace

struct EchoServer::Request {
  ProbeMessage probe;
  bool is_signed;
  IpAddress sender;
  UdpSocketAddress from;
};

EchoServer::Service::Service(UniqueFd its_socket, const Rail& rail)
    : socket(std::move(its_socket)),
      own(OwnEnd(socket.get()).address),
      subnet(rail.subnet),
      limits(rail.peer_answers, kOtherAnswers) {
  limits.SetPeers(rail.peers);
}

Result<std::unique_ptr<EchoServer>> EchoServer::Start() {
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return FailSys(errno, "making an eventfd descriptor");
  return std::unique_ptr<EchoServer>(new EchoServer(std::move(wake)));
}

EchoServer::EchoServer(UniqueFd wake) : wake_(std::move(wake)), thread_([this] { Loop(); }) {}

EchoServer::~EchoServer() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  Wake();
  thread_.join();
}

void EchoServer::Wake() const {
  const std::uint64_t one = 1;
  // A full counter means that a wake-up is pending already.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void EchoServer::Serve(const std::string& name, const Rail& rail, UniqueFd socket) {
  SetBuffer(socket.get(), SO_RCVBUFFORCE, SO_RCVBUF, kReceiveBuffer);
  SetBuffer(socket.get(), SO_SNDBUFFORCE, SO_SNDBUF, kSendBuffer);
  const auto service = std::make_shared<Service>(std::move(socket), rail);
  Drop(name);
  {
    const std::lock_guard lock(mutex_);
    services_[name] = service;
  }
  Wake();
}

void EchoServer::SetKeys(std::shared_ptr<const SharedKeys> keys) {
  const std::lock_guard lock(mutex_);
  keys_ = std::move(keys);
}

void EchoServer::SetPeers(const std::string& rail, const std::set<IpAddress>& peers) {
  const std::lock_guard lock(mutex_);
  const auto service = services_.find(rail);
  if (service == services_.end()) return;
  service->second->limits.SetPeers(peers);
  std::erase_if(service->second->heard, [&](const auto& one) { return !peers.contains(one.first); });
}

void EchoServer::SetQueuePair(const std::string& rail, std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  const auto service = services_.find(rail);
  if (service != services_.end()) service->second->queue_pair = number;
}

// The thread holds the socket until its next turn, and a waiting poll keeps it alive, too.
void EchoServer::Drop(const std::string& rail) {
  std::unique_lock lock(mutex_);
  if (services_.erase(rail) == 0) return;
  const std::uint64_t own = ++drops_;
  Wake();
  changed_.wait(lock, [&] { return drops_taken_ >= own; });
}

std::optional<EchoServer::Clock::time_point> EchoServer::LastProbeFrom(const std::string& rail,
                                                                       const IpAddress& peer) const {
  const std::lock_guard lock(mutex_);
  const auto service = services_.find(rail);
  if (service == services_.end()) return std::nullopt;
  const auto found = service->second->heard.find(peer);
  if (found == service->second->heard.end()) return std::nullopt;
  return found->second.heard;
}

bool EchoServer::TakeServices(std::vector<std::shared_ptr<Service>>* services) {
  services->clear();
  const std::lock_guard lock(mutex_);
  for (const auto& [rail, service] : services_) services->push_back(service);
  drops_taken_ = drops_;
  changed_.notify_all();
  return !stopped_;
}

void EchoServer::Loop() {
  std::vector<std::shared_ptr<Service>> services;
  while (TakeServices(&services)) {
    std::vector<pollfd> waiting = {{wake_.get(), POLLIN, 0}};
    for (const auto& service : services) waiting.push_back({service->socket.get(), POLLIN, 0});
    if (::poll(waiting.data(), waiting.size(), -1) < 0) continue;
    std::uint64_t count = 0;
    if (waiting[0].revents != 0 && ::read(wake_.get(), &count, sizeof count) < 0) continue;
    for (std::size_t i = 0; i < services.size(); ++i) {
      if (waiting[i + 1].revents != 0) Answer(*services[i]);
    }
  }
}

std::optional<ProbeMessage> EchoServer::AnswerTo(const Request& request, Service& service) {
  const auto now = Clock::now();
  if (!service.limits.Allow(request.sender, now)) return std::nullopt;
  const std::uint64_t session = request.probe.session;
  if (!service.limits.IsPeer(request.sender)) return ProbeMessage{true, session, request.probe.token, 0, 0};
  Peer& peer = service.heard[request.sender];
  peer.heard = now;
  // A sender that has restarted no longer uses its old sessions.
  if (peer.sessions.size() >= kSessionsOfPeer && !peer.sessions.contains(session)) peer.sessions.clear();
  return ProbeMessage{true, session, request.probe.token, ++peer.sessions[session], service.queue_pair};
}

// System calls and signatures are done without the lock: in a flood no other thread would get it. A probe
// with a wrong signature does not count towards its sender's limit: its source address may be forged.
void EchoServer::Answer(Service& service) {
  std::shared_ptr<const SharedKeys> keys;
  {
    const std::lock_guard lock(mutex_);
    keys = keys_;
  }
  std::vector<Request> requests;
  std::array<std::uint8_t, kSignedProbe> begin{};
  for (std::size_t i = 0; i < kProbesAtOnce; ++i) {
    UdpSocketAddress from;
    const ssize_t size =
        recvfrom(service.socket.get(), begin.data(), begin.size(), 0, from.data(), &from.size);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) break;
    const auto sender = from.End();
    if (!sender || !service.subnet.Contains(sender->address)) continue;
    const auto probe = CheckProbe({begin.data(), static_cast<std::size_t>(size)}, keys.get(),
                                  {sender->address, service.own});
    if (!probe || probe->message.answer) continue;
    requests.push_back({probe->message, probe->is_signed, sender->address, from});
  }
  std::vector<std::optional<ProbeMessage>> answers;
  {
    const std::lock_guard lock(mutex_);
    for (const Request& request : requests) answers.push_back(AnswerTo(request, service));
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i]) continue;
    const UdpSocketAddress& to = requests[i].from;
    const auto bytes = requests[i].is_signed
                           ? SignedBytesOf(*answers[i], *keys, {service.own, requests[i].sender})
                           : BytesOf(*answers[i]);
    // If the buffer is full, the answer counts as lost.
    (void)sendto(service.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT, to.data(), to.size);
  }
}

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

void AnswerLimits::SetPeers(const std::set<IpAddress>& peers) {
  std::erase_if(peers_, [&](const auto& one) { return !peers.contains(one.first); });
  for (const IpAddress& peer : peers) peers_.try_emplace(peer);
}

bool AnswerLimits::Use(Used* used, int most, Clock::time_point now) {
  if (now - used->since >= std::chrono::seconds(1)) *used = {now, 0};
  if (used->answers == most) return false;
  ++used->answers;
  return true;
}

bool AnswerLimits::Allow(const IpAddress& sender, Clock::time_point now) {
  const auto peer = peers_.find(sender);
  if (peer != peers_.end()) return Use(&peer->second, of_peer_, now);
  if (now - others_since_ >= kOthersTime) {
    others_since_ = now;
    others_.clear();
  }
  if (others_.size() == kOthers && !others_.contains(sender)) return false;
  if (!Use(&by_others_, of_others_, now)) return false;
  others_.insert(sender);
  return true;
}

}  // namespace railhead::reachability
