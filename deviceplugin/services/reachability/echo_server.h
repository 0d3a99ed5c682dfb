// EchoServer: the thread that answers other nodes' probes, at all probe endpoints of this node.
//
// It answers every sender in the rail's subnet, with no more bytes than it got. Rails share no limit, and
// each takes its turn after 64 probes of another. On one rail each peer has its own limit, and all other
// senders share one. The server counts only probes of peers, so that the cost of a probe does not grow with
// the number of senders. Ownership: owns the sockets of Serve(). Threads: all from any. Errors: kIo without
// descriptors.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "deviceplugin/services/reachability/udp_socket.h"
#include "deviceplugin/support/keys/shared_keys.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/base/unique_fd.h"
#include "netns/ns/netns.h"

namespace railhead::reachability {

// AnswerLimits: how many answers senders get in a second, so that no sender takes the answers of a peer.
//
// Each peer has a limit of its own. All other senders share one, and at most kOthers of them are answered in
// kOthersTime. The latter protects the kernel's neighbour table: all network namespaces of the node share it,
// each address that is answered takes an entry for five seconds or more, and a full table costs every rail
// its new neighbours (gc_thresh3 and neigh_forced_gc in net/core/neighbour.c). Threads: one at a time.

class AnswerLimits {
 public:
  using Clock = std::chrono::steady_clock;
  // More than the pods that probe one endpoint: pods probe the endpoints of the nodes next to theirs.
  static constexpr std::size_t kOthers = 32;
  static constexpr std::chrono::seconds kOthersTime{5};

  // In a second: for each peer, and for all others together.
  AnswerLimits(int of_peer, int of_others) : of_peer_(of_peer), of_others_(of_others) {}

  // What peers that stay have used stays used.
  void SetPeers(const std::set<IpAddress>& peers);
  [[nodiscard]] bool IsPeer(const IpAddress& sender) const { return peers_.contains(sender); }
  // Whether `sender` gets an answer now, which is counted then.
  bool Allow(const IpAddress& sender, Clock::time_point now);

 private:
  struct Used {
    Clock::time_point since;  // when the second began
    int answers = 0;
  };
  static bool Use(Used* used, int most, Clock::time_point now);

  const int of_peer_;
  const int of_others_;
  std::map<IpAddress, Used> peers_;
  Used by_others_;
  std::set<IpAddress> others_;  // that were answered since then
  Clock::time_point others_since_;
};

class EchoServer {
 public:
  using Clock = std::chrono::steady_clock;
  // To all senders of a rail that are no peers, in a second. Pods' probes need a few.
  static constexpr int kOtherAnswers = 2'000;

  struct Rail {
    IpPrefix subnet;
    std::set<IpAddress> peers;  // the other nodes' endpoints
    int peer_answers = 0;       // to each of them in a second, at most
  };

  static Result<std::unique_ptr<EchoServer>> Start();
  ~EchoServer();
  EchoServer(const EchoServer&) = delete;
  EchoServer& operator=(const EchoServer&) = delete;

  // The keys that probes and answers are signed with (CheckProbe); nullptr: unsigned.
  void SetKeys(std::shared_ptr<const SharedKeys> keys);
  // Replaces the rail's earlier socket.
  void Serve(const std::string& name, const Rail& rail, UniqueFd socket);
  // The following are of a rail that is served.
  void SetPeers(const std::string& rail, const std::set<IpAddress>& peers);
  // The queue pair in answers to peers, which only peers may use; 0: none.
  void SetQueuePair(const std::string& rail, std::uint32_t number);
  // Its socket is closed when this returns: it would keep its namespace.
  void Drop(const std::string& rail);
  // When a peer's last probe came.
  [[nodiscard]] std::optional<Clock::time_point> LastProbeFrom(const std::string& rail,
                                                               const IpAddress& peer) const;

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
  struct Request;

  explicit EchoServer(UniqueFd wake);
  void Loop();
  // false: it shall end.
  bool TakeServices(std::vector<std::shared_ptr<Service>>* services);
  void Answer(Service& service);
  // nullopt: it gets none.
  static std::optional<ProbeMessage> AnswerTo(const Request& request, Service& service);
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

// EchoRequest: does an address answer an ICMP echo request ("ping")?
//
// The answer is an IP packet, sent to the MAC that the other end has for the asking address. The answer to an
// ARP probe goes to the MAC that the probe came from, and would not show a stale entry.
// Needs CAP_NET_RAW: unprivileged echo sockets are off in new namespaces (net.ipv4.ping_group_range).
// Threads: any. Errors: what the kernel refused. Source: RFC 792; RFC 4443 section 4.

// From `own`, an address in `ns`, by interface `device` alone. Two requests; true with the first answer,
// false after `limit`.
Result<bool> AnswersEcho(const NetNs& ns, const std::string& device, const IpAddress& own,
                         const IpAddress& other, std::chrono::milliseconds limit);

// An ICMP message without its IP header; IPv6's checksum is the kernel's work.
std::vector<std::uint8_t> EchoRequest(bool v4, std::uint16_t id, std::uint16_t sequence);
// Whether what a raw socket received answers a request of this id: IPv4 comes with its IP header, IPv6
// without. Anything may have been sent: nothing is read beyond the view.
bool AnswersRequest(std::span<const std::uint8_t> packet, bool v4, std::uint16_t id);

}  // namespace railhead::reachability
