// RdmaEcho: a station's RDMA: asks other nodes' stations by unreliable datagrams, and answers theirs.
//
// Questions and answers are those of udp_socket.h. A question is for who has told its queue pair in an
// answer to a probe by UDP, in the same round: so the kernel knows its neighbour, and nobody waits for one.
// It answers other stations, each of them up to kPeerAnswers a second, and one that is no neighbour not again
// for kNoNeighbour: to look for it takes a second (datagrams.h), for which nobody else would be answered. So
// who sends in the name of stations that are switched off cannot make this node look ill. A station that is
// none any more is answered for kLeaves: it may just have been told the queue pair. A thread answers; it
// gives the device back at once when the port goes down or the device goes: the kernel waits with the latter
// until nobody holds it. Ownership: the datagrams. Threads: all from any. Errors: kIo without descriptors.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "deviceplugin/services/reachability/echo_server.h"
#include "deviceplugin/services/reachability/udp_socket.h"
#include "deviceplugin/support/keys/shared_keys.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/base/unique_fd.h"
#include "netns/verbs/datagrams.h"

namespace railhead::reachability {

class RdmaEcho {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kQuestions = 4;  // to one station in a round, each on a path of its own
  static constexpr int kPeerAnswers = 4 * kQuestions;
  static constexpr int kOtherAnswers = 200;
  static constexpr std::chrono::seconds kNoNeighbour{20};
  static constexpr std::chrono::seconds kLeaves{5};

  struct Count {
    std::uint32_t sent = 0;
    std::uint32_t answered = 0;
  };

  // `lost` is called once, by its thread, when it is of no use any more. Nobody is answered before
  // SetPeers().
  static Result<std::unique_ptr<RdmaEcho>> Start(Datagrams datagrams, std::function<void()> lost);
  ~RdmaEcho();
  RdmaEcho(const RdmaEcho&) = delete;
  RdmaEcho& operator=(const RdmaEcho&) = delete;

  [[nodiscard]] const DatagramEnd& own() const { return own_; }
  [[nodiscard]] const std::string& device() const { return device_; }
  [[nodiscard]] int gid_index() const { return gid_index_; }
  // It is of no use any more: device, port or GID are not what they were.
  [[nodiscard]] bool IsLost() const;

  // As EchoServer's.
  void SetKeys(std::shared_ptr<const SharedKeys> keys);
  // The other nodes' stations on the rail.
  void SetPeers(std::set<IpAddress> peers);
  // A round: Ask() of all, one Await(), Take(), which forgets what is not answered by then.
  void Ask(std::uint64_t session, const DatagramEnd& peer);
  void Await(Clock::time_point until);
  // By session, of who was sent all kQuestions.
  std::map<std::uint64_t, Count> Take();
  // Why nothing could be sent in the round that was taken last, though somebody was to be asked; "":
  // something was.
  [[nodiscard]] std::string WhyMute() const;

 private:
  struct Question {
    std::uint64_t session = 0;
    IpAddress peer;
  };

  RdmaEcho(Datagrams datagrams, std::function<void()> lost, UniqueFd wake);
  void Loop();
  enum class Next : std::uint8_t { kWait, kMore, kEnd };
  Next Serve(bool completions, bool events);
  bool Handle(const Datagrams::Received& received);
  [[nodiscard]] bool Answers(const IpAddress& peer) const;
  bool Answer(const DatagramEnd& to, const CheckedProbe& question);
  [[nodiscard]] std::vector<std::uint8_t> PayloadTo(const IpAddress& to, const ProbeMessage& message,
                                                    bool is_signed) const;
  void Lose();

  const DatagramEnd own_;
  const std::string device_;
  const int gid_index_;
  const std::function<void()> lost_call_;
  const UniqueFd wake_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Datagrams> datagrams_;
  std::shared_ptr<const SharedKeys> keys_;
  std::set<IpAddress> peers_;
  std::map<IpAddress, Clock::time_point> leaving_;        // were peers; until when they are answered
  std::map<IpAddress, Clock::time_point> no_neighbours_;  // of the peers; when that was seen
  AnswerLimits limits_{kPeerAnswers, kOtherAnswers};      // others: those in leaving_
  std::uint64_t next_token_;
  std::map<std::uint64_t, Question> open_;  // by token
  std::map<std::uint64_t, Count> counts_;   // by session
  std::string refused_;                     // the round's last question that could not be sent
  std::string why_mute_;
  bool lost_ = false;
  bool stopped_ = false;
  std::thread thread_;  // last: it uses all of the others
};

}  // namespace railhead::reachability
