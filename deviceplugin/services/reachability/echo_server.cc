#include "deviceplugin/services/reachability/echo_server.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "deviceplugin/services/reachability/probe_message.h"
#include "deviceplugin/services/reachability/udp_socket.h"
#include "netns/base/mutex.h"

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

EchoServer::Endpoint::Endpoint(UniqueFd its_socket, const Rail& rail)
    : socket(std::move(its_socket)),
      own(OwnEnd(socket.get()).address),
      subnets(rail.subnets),
      limits(rail.peer_answers, kOtherAnswers) {
  limits.SetPeers(rail.peers);
}

void EchoServer::Serve(const std::string& name, const Rail& rail, UniqueFd socket) {
  SetBuffer(socket.get(), SO_RCVBUFFORCE, SO_RCVBUF, kReceiveBuffer);
  SetBuffer(socket.get(), SO_SNDBUFFORCE, SO_SNDBUF, kSendBuffer);
  const auto endpoint = std::make_shared<Endpoint>(std::move(socket), rail);
  Drop(name);
  {
    const MutexLock lock(mutex_);
    endpoints_[name] = endpoint;
    if (worker_ != nullptr) worker_->Wake();
  }
}

void EchoServer::SetKeys(std::shared_ptr<const SharedKeys> keys) {
  const MutexLock lock(mutex_);
  keys_ = std::move(keys);
}

void EchoServer::SetPeers(const std::string& rail, const std::set<IpAddress>& peers) {
  const MutexLock lock(mutex_);
  const auto endpoint = endpoints_.find(rail);
  if (endpoint == endpoints_.end()) return;
  endpoint->second->limits.SetPeers(peers);
  std::erase_if(endpoint->second->heard, [&](const auto& one) { return !peers.contains(one.first); });
}

void EchoServer::SetQueuePair(const std::string& rail, std::uint32_t number) {
  const MutexLock lock(mutex_);
  const auto endpoint = endpoints_.find(rail);
  if (endpoint != endpoints_.end()) endpoint->second->queue_pair = number;
}

// The thread holds the socket until its next turn, and a waiting poll keeps it alive, too.
void EchoServer::Drop(const std::string& rail) {
  MutexLock lock(mutex_);
  if (endpoints_.erase(rail) == 0) return;
  const std::uint64_t own = ++drops_;
  if (worker_ != nullptr) worker_->Wake();
  changed_.wait(lock, [&]() RH_REQUIRES(mutex_) { return worker_ == nullptr || drops_taken_ >= own; });
}

std::optional<EchoServer::Clock::time_point> EchoServer::LastProbeFrom(const std::string& rail,
                                                                       const IpAddress& peer) const {
  const MutexLock lock(mutex_);
  const auto endpoint = endpoints_.find(rail);
  if (endpoint == endpoints_.end()) return std::nullopt;
  const auto found = endpoint->second->heard.find(peer);
  if (found == endpoint->second->heard.end()) return std::nullopt;
  return found->second.heard;
}

std::vector<std::shared_ptr<EchoServer::Endpoint>> EchoServer::TakeEndpoints() {
  std::vector<std::shared_ptr<Endpoint>> endpoints;
  const MutexLock lock(mutex_);
  for (const auto& [rail, endpoint] : endpoints_) endpoints.push_back(endpoint);
  drops_taken_ = drops_;
  changed_.notify_all();
  return endpoints;
}

Result<void> EchoServer::Run(Worker& worker) {
  {
    const MutexLock lock(mutex_);
    worker_ = &worker;
  }
  while (!worker.StopRequested()) {
    const auto endpoints = TakeEndpoints();
    std::vector<pollfd> waiting;
    waiting.reserve(endpoints.size());
    for (const auto& endpoint : endpoints) waiting.push_back({endpoint->socket.get(), POLLIN, 0});
    worker.Wait(Worker::Clock::time_point::max(), waiting);
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
      if (waiting[i].revents != 0) Answer(*endpoints[i]);
    }
  }
  const MutexLock lock(mutex_);
  worker_ = nullptr;
  changed_.notify_all();
  return {};
}

std::optional<ProbeMessage> EchoServer::AnswerTo(const Request& request, Endpoint& endpoint) {
  const auto now = Clock::now();
  if (!endpoint.limits.Allow(request.sender, now)) return std::nullopt;
  const std::uint64_t session = request.probe.session;
  if (!endpoint.limits.IsPeer(request.sender)) return ProbeMessage{true, session, request.probe.token, 0, 0};
  Peer& peer = endpoint.heard[request.sender];
  peer.heard = now;
  // A sender that has restarted no longer uses its old sessions.
  if (peer.sessions.size() >= kSessionsOfPeer && !peer.sessions.contains(session)) peer.sessions.clear();
  return ProbeMessage{true, session, request.probe.token, ++peer.sessions[session], endpoint.queue_pair};
}

// System calls and signatures are done without the lock: in a flood no other thread would get it. A probe
// with a wrong signature does not count towards its sender's limit: its source address may be forged.
void EchoServer::Answer(Endpoint& endpoint) {
  std::shared_ptr<const SharedKeys> keys;
  {
    const MutexLock lock(mutex_);
    keys = keys_;
  }
  std::vector<Request> requests;
  std::array<std::uint8_t, kSignedProbe> begin{};
  for (std::size_t i = 0; i < kProbesAtOnce; ++i) {
    UdpSocketAddress from;
    const ssize_t size =
        recvfrom(endpoint.socket.get(), begin.data(), begin.size(), 0, from.data(), &from.size);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) break;
    const auto sender = from.End();
    if (!sender || !endpoint.Serves(sender->address)) continue;
    const auto probe = CheckProbe({begin.data(), static_cast<std::size_t>(size)}, keys.get(),
                                  {sender->address, endpoint.own});
    if (!probe || probe->message.answer) continue;
    requests.push_back({probe->message, probe->is_signed, sender->address, from});
  }
  std::vector<std::optional<ProbeMessage>> answers;
  {
    const MutexLock lock(mutex_);
    for (const Request& request : requests) answers.push_back(AnswerTo(request, endpoint));
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i]) continue;
    const UdpSocketAddress& to = requests[i].from;
    const auto bytes = requests[i].is_signed
                           ? SignedBytesOf(*answers[i], *keys, {endpoint.own, requests[i].sender})
                           : BytesOf(*answers[i]);
    // If the buffer is full, the answer counts as lost.
    (void)sendto(endpoint.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT, to.data(), to.size);
  }
}

}  // namespace railhead::reachability
