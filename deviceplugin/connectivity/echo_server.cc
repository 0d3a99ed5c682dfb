#include "deviceplugin/connectivity/echo_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "deviceplugin/connectivity/probe_message.h"
#include "deviceplugin/connectivity/udp_socket.h"

namespace railhead {
namespace {

constexpr int kProbesAtOnce = 256;
constexpr std::size_t kSessionsOfOne = 8;

}  // namespace

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

void EchoServer::Serve(const std::string& rail, const IpPrefix& subnet, UniqueFd socket) {
  {
    const std::lock_guard lock(mutex_);
    services_[rail] = Service{std::move(socket), subnet, {}, 0, {}};
  }
  Wake();
}

void EchoServer::TellQueuePair(const std::string& rail, std::uint32_t number, std::set<IpAddress> peers) {
  const std::lock_guard lock(mutex_);
  const auto service = services_.find(rail);
  if (service == services_.end()) return;
  service->second.queue_pair = number;
  service->second.told = std::move(peers);
}

// A poll that waits for the descriptor keeps the socket alive, and with it its namespace: hence the wake-up.
void EchoServer::Drop(const std::string& rail) {
  {
    const std::lock_guard lock(mutex_);
    services_.erase(rail);
  }
  Wake();
}

std::optional<EchoServer::Clock::time_point> EchoServer::Heard(const std::string& rail,
                                                               const IpAddress& sender) const {
  const std::lock_guard lock(mutex_);
  const auto service = services_.find(rail);
  if (service == services_.end()) return std::nullopt;
  const auto found = service->second.senders.find(sender);
  if (found == service->second.senders.end()) return std::nullopt;
  return found->second.heard;
}

void EchoServer::Loop() {
  for (;;) {
    std::vector<pollfd> waiting = {{wake_.get(), POLLIN, 0}};
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) return;
      for (const auto& [rail, service] : services_) waiting.push_back({service.socket.get(), POLLIN, 0});
    }
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) continue;
    std::uint64_t count = 0;
    if (waiting[0].revents != 0 && ::read(wake_.get(), &count, sizeof count) < 0) continue;
    const std::lock_guard lock(mutex_);
    for (auto& [rail, service] : services_) Answer(service);
  }
}

std::uint32_t EchoServer::Count(Service& service, const IpAddress& sender, std::uint64_t session) {
  const auto now = Clock::now();
  if (service.senders.size() >= kMostSenders && !service.senders.contains(sender)) {
    const auto oldest =
        std::min_element(service.senders.begin(), service.senders.end(),
                         [](const auto& a, const auto& b) { return a.second.heard < b.second.heard; });
    service.senders.erase(oldest);
  }
  Sender& known = service.senders[sender];
  known.heard = now;
  // Of a sender that began anew the old ones are over.
  if (known.sessions.size() >= kSessionsOfOne && !known.sessions.contains(session)) known.sessions.clear();
  return ++known.sessions[session];
}

void EchoServer::Answer(Service& service) {
  std::array<std::uint8_t, kProbeHeader> begin{};
  for (int i = 0; i < kProbesAtOnce; ++i) {
    UdpSocketAddress from;
    const ssize_t size =
        recvfrom(service.socket.get(), begin.data(), begin.size(), 0, from.data(), &from.size);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return;
    const auto probe = ParseProbe({begin.data(), static_cast<std::size_t>(size)});
    const auto sender = from.End();
    if (!probe || probe->answer || !sender || !service.subnet.Contains(sender->address)) continue;
    if (!limit_.May(Clock::now())) continue;
    const std::uint32_t heard = Count(service, sender->address, probe->session);
    const std::uint32_t queue_pair = service.told.contains(sender->address) ? service.queue_pair : 0;
    const auto answer = BytesOf({true, probe->session, probe->token, heard, queue_pair});
    // Full: it counts as lost.
    (void)sendto(service.socket.get(), answer.data(), answer.size(), MSG_DONTWAIT, from.data(), from.size);
  }
}

}  // namespace railhead
