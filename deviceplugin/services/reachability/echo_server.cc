#include "deviceplugin/services/reachability/echo_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "deviceplugin/services/reachability/probe_message.h"
#include "deviceplugin/services/reachability/udp_socket.h"

namespace railhead {
namespace {

constexpr std::size_t kProbesAtOnce = 64;
constexpr std::size_t kSessionsOfPeer = 8;
// For what comes while this thread has to wait for a CPU.
constexpr int kReceiveBuffer = 4 << 20;
// What is sent to a neighbour that the kernel still looks for stays in the buffer (neighbour_queue.h). It has
// room for two thousand of those, so that peers that are gone cost those that are there no answer.
constexpr int kSendBuffer = 32 << 20;

void SetBuffer(int fd, int forced, int allowed, int size) {
  if (setsockopt(fd, SOL_SOCKET, forced, &size, sizeof size) != 0)
    (void)setsockopt(fd, SOL_SOCKET, allowed, &size, sizeof size);
}

}  // namespace

struct EchoServer::Question {
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
  // Full means that a wake-up is pending already.
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

void EchoServer::TellQueuePair(const std::string& rail, std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  const auto service = services_.find(rail);
  if (service != services_.end()) service->second->queue_pair = number;
}

// The thread holds the socket until it looks again, and a poll that waits keeps it alive, too.
void EchoServer::Drop(const std::string& rail) {
  std::unique_lock lock(mutex_);
  if (services_.erase(rail) == 0) return;
  const std::uint64_t own = ++drops_;
  Wake();
  changed_.wait(lock, [&] { return drops_taken_ >= own; });
}

std::optional<EchoServer::Clock::time_point> EchoServer::Heard(const std::string& rail,
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

std::optional<ProbeMessage> EchoServer::AnswerTo(const Question& question, Service& service) {
  const auto now = Clock::now();
  if (!service.limits.May(question.sender, now)) return std::nullopt;
  const std::uint64_t session = question.probe.session;
  if (!service.limits.IsPeer(question.sender)) return ProbeMessage{true, session, question.probe.token, 0, 0};
  Peer& peer = service.heard[question.sender];
  peer.heard = now;
  // Of a sender that began anew the old ones are over.
  if (peer.sessions.size() >= kSessionsOfPeer && !peer.sessions.contains(session)) peer.sessions.clear();
  return ProbeMessage{true, session, question.probe.token, ++peer.sessions[session], service.queue_pair};
}

// System calls are made and signatures computed without the lock: under a flood nobody else would get it.
// What is not signed as it has to be takes nothing of its sender's limit: others can send in his name.
void EchoServer::Answer(Service& service) {
  std::shared_ptr<const SharedKeys> keys;
  {
    const std::lock_guard lock(mutex_);
    keys = keys_;
  }
  std::vector<Question> questions;
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
    questions.push_back({probe->message, probe->is_signed, sender->address, from});
  }
  std::vector<std::optional<ProbeMessage>> answers;
  {
    const std::lock_guard lock(mutex_);
    for (const Question& question : questions) answers.push_back(AnswerTo(question, service));
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i]) continue;
    const UdpSocketAddress& to = questions[i].from;
    const auto bytes = questions[i].is_signed
                           ? SignedBytesOf(*answers[i], *keys, {service.own, questions[i].sender})
                           : BytesOf(*answers[i]);
    // Full: it counts as lost.
    (void)sendto(service.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT, to.data(), to.size);
  }
}

}  // namespace railhead
