#include "deviceplugin/services/reachability/send_probes.h"

#include <arpa/inet.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <random>

#include "deviceplugin/services/reachability/probe_message.h"
#include "netns/base/addresses.h"

namespace railhead::reachability {
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

}  // namespace railhead::reachability
