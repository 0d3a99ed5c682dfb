// EchoServer: the service that answers other nodes' probes, at all probe endpoints of this node.
//
// It answers every sender in the rail's subnets, with no more bytes than it got. Rails share no limit, and
// each takes its turn after 64 probes of another. On one rail each peer has its own limit, and all other
// senders share one. The server counts only probes of peers, so that the cost of a probe does not grow with
// the number of senders. Ownership: owns the sockets of Serve(). Threads: all from any. Errors: none.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/services/reachability/answer_limits.h"
#include "deviceplugin/services/reachability/probe_message.h"
#include "deviceplugin/support/keys/shared_keys.h"
#include "deviceplugin/support/metrics/metric_registry.h"
#include "deviceplugin/support/service/service.h"
#include "netns/base/addresses.h"
#include "netns/base/mutex.h"
#include "netns/base/result.h"
#include "netns/base/unique_fd.h"

namespace railhead::reachability {

class EchoServer : public Service {
 public:
  using Clock = std::chrono::steady_clock;
  // Answers in a second to all other senders of a rail. Pods' probes need a few.
  static constexpr int kOtherAnswers = 2'000;

  struct Rail {
    std::vector<IpPrefix> subnets;  // whose addresses get answers
    std::set<IpAddress> peers;      // the other nodes' endpoints
    int peer_answers = 0;           // to each of them in a second, at most
  };

  [[nodiscard]] std::string_view name() const override { return "probe_echo"; }
  void Register(MetricRegistry&) override {}
  Result<void> Run(Worker& worker) override;

  // The keys that probes and answers are signed with (CheckProbe); nullptr: unsigned.
  void SetKeys(std::shared_ptr<const SharedKeys> keys);
  // Replaces the rail's earlier socket.
  void Serve(const std::string& name, const Rail& rail, UniqueFd socket);
  // The following functions require a rail that is served.
  void SetPeers(const std::string& rail, const std::set<IpAddress>& peers);
  // The queue pair in answers to peers, which only peers may use; 0: none.
  void SetQueuePair(const std::string& rail, std::uint32_t number);
  // The socket is closed when this returns. Otherwise it would keep its namespace.
  void Drop(const std::string& rail);
  // When a peer's last probe came.
  [[nodiscard]] std::optional<Clock::time_point> LastProbeFrom(const std::string& rail,
                                                               const IpAddress& peer) const;

 private:
  struct Peer {
    Clock::time_point heard;
    std::map<std::uint64_t, std::uint32_t> sessions;  // the number of probes of each
  };
  struct Endpoint {
    Endpoint(UniqueFd its_socket, const Rail& rail);
    [[nodiscard]] bool Serves(const IpAddress& sender) const {
      return std::ranges::any_of(subnets, [&](const IpPrefix& subnet) { return subnet.Contains(sender); });
    }
    const UniqueFd socket;
    const IpAddress own;  // the socket is bound to it
    const std::vector<IpPrefix> subnets;
    // Under mutex_.
    AnswerLimits limits;
    std::map<IpAddress, Peer> heard;  // of peers
    std::uint32_t queue_pair = 0;
  };
  struct Request;

  std::vector<std::shared_ptr<Endpoint>> TakeEndpoints();
  void Answer(Endpoint& endpoint);
  // nullopt: the probe gets no answer.
  static std::optional<ProbeMessage> AnswerTo(const Request& request, Endpoint& endpoint);

  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  std::shared_ptr<const SharedKeys> keys_ RH_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<Endpoint>> endpoints_ RH_GUARDED_BY(mutex_);
  std::uint64_t drops_ RH_GUARDED_BY(mutex_) = 0;  // the number of Drop() calls
  std::uint64_t drops_taken_ RH_GUARDED_BY(mutex_) =
      0;  // the calls that the thread knows of: it no longer has their sockets
  Worker* worker_ RH_GUARDED_BY(mutex_) = nullptr;  // while it runs
};

}  // namespace railhead::reachability
