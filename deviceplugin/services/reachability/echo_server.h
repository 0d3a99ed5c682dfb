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
// kOthersTime. That second limit protects the kernel's neighbour table, which all network namespaces of the
// node share. Each answered address takes an entry for five seconds or more. A full table costs every rail
// its new neighbours (gc_thresh3 and neigh_forced_gc in net/core/neighbour.c). Threads: one at a time.

class AnswerLimits {
 public:
  using Clock = std::chrono::steady_clock;
  // More than the pods that probe one endpoint: pods probe the endpoints of the nodes next to theirs.
  static constexpr std::size_t kOthers = 32;
  static constexpr std::chrono::seconds kOthersTime{5};

  // In a second: for each peer, and for all others together.
  AnswerLimits(int of_peer, int of_others) : of_peer_(of_peer), of_others_(of_others) {}

  // The used part of a limit stays used for peers that remain.
  void SetPeers(const std::set<IpAddress>& peers);
  [[nodiscard]] bool IsPeer(const IpAddress& sender) const { return peers_.contains(sender); }
  // Whether `sender` gets an answer now. If so, the answer counts.
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
  std::set<IpAddress> others_;  // the others that were answered since `since`
  Clock::time_point others_since_;
};

class EchoServer {
 public:
  using Clock = std::chrono::steady_clock;
  // Answers in a second to all other senders of a rail. Pods' probes need a few.
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
  struct Service {
    Service(UniqueFd its_socket, const Rail& rail);
    const UniqueFd socket;
    const IpAddress own;  // the socket is bound to it
    const IpPrefix subnet;
    // Under mutex_.
    AnswerLimits limits;
    std::map<IpAddress, Peer> heard;  // of peers
    std::uint32_t queue_pair = 0;
  };
  struct Request;

  explicit EchoServer(UniqueFd wake);
  void Loop();
  // false: the thread must end.
  bool TakeServices(std::vector<std::shared_ptr<Service>>* services);
  void Answer(Service& service);
  // nullopt: the probe gets no answer.
  static std::optional<ProbeMessage> AnswerTo(const Request& request, Service& service);
  void Wake() const;

  const UniqueFd wake_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const SharedKeys> keys_;
  std::map<std::string, std::shared_ptr<Service>> services_;
  std::uint64_t drops_ = 0;        // the number of Drop() calls
  std::uint64_t drops_taken_ = 0;  // the calls that the thread knows of: it no longer has their sockets
  bool stopped_ = false;
  std::thread thread_;  // last: it uses all of the others
};

// EchoRequest: does an address answer an ICMP echo request ("ping")?
//
// The answer is an IP packet, sent to the MAC that the other end has for the asking address. The answer to an
// ARP probe goes to the MAC that the probe came from, and would not show a stale entry. Needs CAP_NET_RAW:
// unprivileged echo sockets are off in new namespaces (net.ipv4.ping_group_range).
// Threads: any. Errors: the kernel's refusals. Source: RFC 792; RFC 4443 section 4.

// Sends two requests from `own`, an address in `ns`, only by interface `device`. true with the first answer,
// false after `limit`.
Result<bool> AnswersEcho(const NetNs& ns, const std::string& device, const IpAddress& own,
                         const IpAddress& other, std::chrono::milliseconds limit);

// An ICMP message without its IP header. The kernel computes the checksum of IPv6.
std::vector<std::uint8_t> EchoRequest(bool v4, std::uint16_t id, std::uint16_t sequence);
// Whether a packet of a raw socket answers a request of this id. IPv4 comes with its IP header, IPv6 without.
// Any host may send anything, so nothing is read beyond the view.
bool AnswersRequest(std::span<const std::uint8_t> packet, bool v4, std::uint16_t id);

}  // namespace railhead::reachability
