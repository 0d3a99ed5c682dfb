// EchoServer: the thread that answers other nodes' probes, at all stations of this node.
//
// It answers whoever has an address of the rail's subnet, with no more bytes than it got. Rails share no
// limit, and each takes its turn after 64 probes of another. On one rail each peer has a limit of its own,
// and all other senders share one (answer_limits.h). The server counts probes of peers alone, so that the
// cost of a probe does not grow with the number of senders. Ownership: owns the sockets that it is given.
// Threads: all from any. Errors: kIo without descriptors.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "deviceplugin/services/reachability/answer_limits.h"
#include "deviceplugin/services/reachability/probe_message.h"
#include "deviceplugin/support/keys/shared_keys.h"
#include "netns/base/ip_address.h"
#include "netns/base/result.h"
#include "netns/base/unique_fd.h"

namespace railhead {

class EchoServer {
 public:
  using Clock = std::chrono::steady_clock;
  // To all senders of a rail that are no peers, in a second. Pods' probes need a few.
  static constexpr int kOtherAnswers = 2'000;

  struct Rail {
    IpPrefix subnet;
    std::set<IpAddress> peers;  // the other nodes' stations
    int peer_answers = 0;       // to each of them in a second, at most
  };

  static Result<std::unique_ptr<EchoServer>> Start();
  ~EchoServer();
  EchoServer(const EchoServer&) = delete;
  EchoServer& operator=(const EchoServer&) = delete;

  // What probes have to be signed with (CheckProbe), and what answers are; nullptr: nothing.
  void SetKeys(std::shared_ptr<const SharedKeys> keys);
  // In the place of what the rail had.
  void Serve(const std::string& name, const Rail& rail, UniqueFd socket);
  // The following are of a rail that is served.
  void SetPeers(const std::string& rail, const std::set<IpAddress>& peers);
  // What answers to peers say, who alone are answered there; 0: none.
  void TellQueuePair(const std::string& rail, std::uint32_t number);
  // Its socket is closed when this returns: it would keep its namespace.
  void Drop(const std::string& rail);
  // When a peer's last probe came.
  [[nodiscard]] std::optional<Clock::time_point> Heard(const std::string& rail, const IpAddress& peer) const;

 private:
  struct Peer {
    Clock::time_point heard;
    std::map<std::uint64_t, std::uint32_t> sessions;  // how many probes of each
  };
  struct Service {
    Service(UniqueFd its_socket, const Rail& rail);
    const UniqueFd socket;
    const IpAddress own;  // that the socket is bound to
    const IpPrefix subnet;
    // Under mutex_.
    AnswerLimits limits;
    std::map<IpAddress, Peer> heard;  // of peers
    std::uint32_t queue_pair = 0;
  };
  struct Question;

  explicit EchoServer(UniqueFd wake);
  void Loop();
  // false: it shall end.
  bool TakeServices(std::vector<std::shared_ptr<Service>>* services);
  void Answer(Service& service);
  // nullopt: it gets none.
  static std::optional<ProbeMessage> AnswerTo(const Question& question, Service& service);
  void Wake() const;

  const UniqueFd wake_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const SharedKeys> keys_;
  std::map<std::string, std::shared_ptr<Service>> services_;
  std::uint64_t drops_ = 0;        // so many Drop()
  std::uint64_t drops_taken_ = 0;  // of which the thread knows: it has their sockets no more
  bool stopped_ = false;
  std::thread thread_;  // last: it uses all of the others
};

}  // namespace railhead
