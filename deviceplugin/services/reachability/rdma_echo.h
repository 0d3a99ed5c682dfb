// RdmaEcho: sends and answers RDMA probes (unreliable datagrams) for one probe endpoint.
//
// Payloads are those of probe_message.h. A peer gets RDMA probes if its answer to a UDP probe of the same
// round has a queue pair. The kernel then knows the neighbour, so no probe waits for it. Each peer gets
// kPeerAnswers answers a second. An unresolved neighbour is skipped for kNoNeighbour: resolving it takes a
// second (datagrams.h), in which no other peer would get an answer. So probes with the address of a node that
// is off cannot make this node look faulty. A former peer is answered for kFormerPeer more: it may have just
// received the queue pair. A thread answers. It closes the device at once when the port goes down or the
// device is removed, since the kernel waits for that.
// Ownership: the datagrams. Threads: all from any. Errors: kIo without descriptors.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "deviceplugin/services/reachability/answer_limits.h"
#include "deviceplugin/services/reachability/probe_message.h"
#include "deviceplugin/services/reachability/send_probes.h"
#include "deviceplugin/support/keys/shared_keys.h"
#include "deviceplugin/support/service/worker.h"
#include "netns/base/addresses.h"
#include "netns/base/mutex.h"
#include "netns/base/result.h"
#include "netns/verbs/datagrams.h"

namespace railhead::reachability {

class RdmaEcho {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kProbes = 4;  // to one peer in a round, each on a path of its own
  static constexpr int kPeerAnswers = 4 * kProbes;
  static constexpr int kOtherAnswers = 200;
  static constexpr std::chrono::seconds kNoNeighbour{20};
  static constexpr std::chrono::seconds kFormerPeer{5};

  struct Count {
    std::uint32_t sent = 0;
    std::uint32_t answered = 0;
  };

  // `lost` is called once, by the thread, when the device has become unusable. Before SetPeers() no probe is
  // answered.
  static Result<std::unique_ptr<RdmaEcho>> Start(Datagrams datagrams, std::function<void()> lost);
  ~RdmaEcho();
  RdmaEcho(const RdmaEcho&) = delete;
  RdmaEcho& operator=(const RdmaEcho&) = delete;

  [[nodiscard]] const DatagramEnd& own() const { return own_; }
  [[nodiscard]] const std::string& device() const { return device_; }
  [[nodiscard]] int gid_index() const { return gid_index_; }
  // Whether device, port or GID have changed, so that this object is useless.
  [[nodiscard]] bool IsLost() const;

  // Of the thread that answers.
  [[nodiscard]] std::shared_ptr<const Worker> worker() const { return worker_; }

  // As EchoServer's.
  void SetKeys(std::shared_ptr<const SharedKeys> keys);
  // The other nodes' endpoints on the rail.
  void SetPeers(std::set<IpAddress> peers);
  // A round: SendProbes() to all, one Await(), TakeCounts(), which drops the probes without an answer.
  void SendProbes(std::uint64_t session, const DatagramEnd& peer);
  void Await(Clock::time_point until);
  // By session, for peers that got all kProbes.
  std::map<std::uint64_t, Count> TakeCounts();
  // Why no probe could be sent in the round of the last TakeCounts(). "": some were sent, or none was due.
  [[nodiscard]] std::string SendFailure() const;

 private:
  struct OpenProbe {
    std::uint64_t session = 0;
    IpAddress peer;
  };

  RdmaEcho(Datagrams datagrams, std::function<void()> lost, std::unique_ptr<Worker> worker);
  void Loop();
  enum class Next : std::uint8_t { kWait, kMore, kEnd };
  Next Serve(bool completions, bool events);
  bool Handle(const Datagrams::Received& received) RH_REQUIRES(mutex_);
  [[nodiscard]] bool Answers(const IpAddress& peer) const RH_REQUIRES(mutex_);
  bool Answer(const DatagramEnd& to, const CheckedProbe& probe) RH_REQUIRES(mutex_);
  [[nodiscard]] std::vector<std::uint8_t> PayloadTo(const IpAddress& to, const ProbeMessage& message,
                                                    bool is_signed) const RH_REQUIRES(mutex_);
  void Lose();

  const DatagramEnd own_;
  const std::string device_;
  const int gid_index_;
  const std::function<void()> lost_call_;
  const std::shared_ptr<Worker> worker_;
  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Datagrams> datagrams_ RH_GUARDED_BY(mutex_);
  std::shared_ptr<const SharedKeys> keys_ RH_GUARDED_BY(mutex_);
  std::set<IpAddress> peers_ RH_GUARDED_BY(mutex_);
  std::map<IpAddress, Clock::time_point> leaving_
      RH_GUARDED_BY(mutex_);  // former peers, and until when they are answered
  std::map<IpAddress, Clock::time_point> no_neighbours_
      RH_GUARDED_BY(mutex_);  // unresolved peers, and when that was seen
  AnswerLimits limits_ RH_GUARDED_BY(mutex_){kPeerAnswers, kOtherAnswers};  // others: those in leaving_
  std::uint64_t next_token_ RH_GUARDED_BY(mutex_);
  std::map<std::uint64_t, OpenProbe> open_ RH_GUARDED_BY(mutex_);  // by token
  std::map<std::uint64_t, Count> counts_ RH_GUARDED_BY(mutex_);    // by session
  std::string refused_ RH_GUARDED_BY(mutex_);  // the round's last probe that could not be sent
  std::string send_failure_ RH_GUARDED_BY(mutex_);
  bool lost_ RH_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all of the others
};

}  // namespace railhead::reachability
