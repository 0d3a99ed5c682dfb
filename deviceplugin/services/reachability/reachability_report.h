// ReachabilityReport: what this node reaches on its rails, and what it does not reach.
//
// railheadd (reachability_service.h) writes it to /run/railhead/reachability.json, which is lost with the
// boot. railctl reads it, and so does railheadd's next start. `railctl reachability -o json` prints the same,
// and `railctl reachability FILES` reads the reports of many nodes. Here are also the summaries over many
// peers that metrics and railctl show.
// Threads: values and thread-safe functions. Errors of the readers: kMalformed, kInvalid.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cni/state/paths.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/record.h"
#include "netns/json/state_file.h"

namespace railhead::reachability {

// Of another node on a rail, worst last.
enum class PeerState : std::uint8_t {
  kUnknown,    // not probed often enough
  kReachable,  // almost nothing is lost
  kLossy,      // some packets are lost, on all paths alike
  kPaths,      // some source ports lose all packets, others none: one of several paths is broken
  kMtu,        // small packets pass, packets of the rail's MTU do not
  kNoRdma,     // UDP passes, RDMA does not
  kOneWay,     // its probes arrive here, but ours do not reach it
  kSilent,     // no answer, and no probes of its own
};

struct PeerReachability {
  std::string node;
  IpAddress address;
  PeerState state = PeerState::kReachable;      // as most are
  std::chrono::system_clock::time_point since;  // of the state
  std::string because;                          // for people; empty when it is reachable
  // Of the latest rounds with this peer: small packets.
  std::uint32_t sent = 0;
  std::uint32_t answered = 0;
  double lost_out = 0;                           // fraction of the packets sent to it
  double lost_in = 0;                            // fraction of its answers; both 0 when nothing came back
  std::optional<std::chrono::microseconds> rtt;  // median of the latest round
  std::uint32_t paths = 0;                       // source ports that are used
  std::uint32_t bad_paths = 0;
  // The same by RDMA. A peer without RDMA gets none.
  std::uint32_t rdma_sent = 0;
  std::uint32_t rdma_answered = 0;
  std::optional<int> mtu;  // with kMtu: the largest IP packet that passes, in bytes

  bool operator==(const PeerReachability&) const = default;
};

struct GatewayReachability {
  IpAddress address;
  bool answers = false;                         // ARP or neighbour discovery
  std::optional<MacAddress> mac;                // the last
  std::chrono::system_clock::time_point since;  // since it answers, or does not

  bool operator==(const GatewayReachability&) const = default;
};

// The RDMA device that probes a rail.
struct RdmaReachability {
  std::string device;   // "": none,
  std::string because;  // for this reason
  std::optional<int> gid_index;

  bool operator==(const RdmaReachability&) const = default;
};

enum class ReachabilityState : std::uint8_t {
  kUnknown,    // not probed yet, or without anything to probe
  kReachable,  // gateway and all peers
  kDegraded,   // a part of them
  kDead,       // nothing
};

struct RailReachability {
  std::string rail;
  std::string device;  // PCI address of its PF; "": this node has none
  std::string pf;
  ReachabilityState state = ReachabilityState::kUnknown;
  std::chrono::system_clock::time_point since;
  bool probed = false;  // `state` is about the fabric. false: this node could not probe
  std::string because;  // for people; includes a possible cause (the VLAN of another rail answers)
  std::optional<IpAddress> probe_address;
  std::optional<GatewayReachability> gateway;
  std::optional<RdmaReachability> rdma;  // nullopt: not asked for
  std::vector<PeerReachability> peers;   // by node name
  // Counters since railheadd's start.
  std::uint64_t probes = 0;
  std::uint64_t answers = 0;
  std::uint64_t rdma_probes = 0;
  std::uint64_t rdma_answers = 0;
  std::uint64_t stale = 0;  // hosts that had a stale MAC address for a pod

  [[nodiscard]] std::size_t Count(PeerState state) const;
  bool operator==(const RailReachability&) const = default;
};

// One interface of a pod, probed from inside the pod's network namespace.
struct PodReachability {
  std::string pod_namespace;  // "": the container's pod is unknown
  std::string pod;            // then the container's id
  std::string interface;
  std::string rail;
  std::string device;  // PCI address of the VF
  ReachabilityState state = ReachabilityState::kUnknown;
  std::chrono::system_clock::time_point since;
  std::string because;
  std::optional<bool> gateway_answers;
  std::uint32_t sent = 0;  // to other nodes, in the latest round
  std::uint32_t answered = 0;
  // Hosts that had a stale MAC address for the pod until the latest probe announced the address again.
  std::vector<IpAddress> stale;

  // "namespace/pod", or the container's id
  [[nodiscard]] std::string Name() const { return pod_namespace.empty() ? pod : pod_namespace + "/" + pod; }
  bool operator==(const PodReachability&) const = default;
};

struct ReachabilityReport {
  std::string node;  // as Kubernetes knows it
  std::chrono::system_clock::time_point time;
  std::vector<RailReachability> rails;  // in the fabric's order
  std::vector<PodReachability> pods;    // by namespace, pod, interface
  bool authentic = false;               // only signed probes and answers count (shared_keys.h)

  [[nodiscard]] const RailReachability* Find(const std::string& rail) const;
  bool operator==(const ReachabilityReport&) const = default;
};

// In bytes: room for 32 rails of 2,000 nodes, each with a fault of its own.
inline constexpr std::size_t kMaxReachabilityReport = std::size_t{32} << 20;

// railheadd writes it every minute or more often. The functions below read and write it.
inline constexpr StateFile<ReachabilityReport> kReachabilityFile{
    .path = paths::kReachabilityReport,
    .what = "writing the reachability report",
    .writer = "railheadd writes it when it runs with a fabric.json that has `reachability`",
    .life = std::chrono::seconds{180},
    .max_size = kMaxReachabilityReport,
};

// The report as it is written. It omits common values of a peer: `state` if the peer is reachable, `since` if
// it is the rail's, `answered` if it equals `sent`. It also omits zero and unknown values. Times are in whole
// seconds.
ReachabilityReport WithoutCommonTimes(ReachabilityReport report);
// `what` names the text in errors.
Result<ReachabilityReport> ParseReachabilityReport(std::string_view text, const std::string& what);

// nullopt: the file does not exist.
Result<std::optional<ReachabilityReport>> ReadReachabilityReport(const Root& root);
Result<void> WriteReachabilityReport(const Root& root, const ReachabilityReport& report);

struct RttSpread {
  std::chrono::microseconds median{};
  std::chrono::microseconds largest{};
};

// Over the reachable peers with a measured time; nullopt: none has one.
std::optional<RttSpread> SpreadOfRtt(const RailReachability& rail);

// As columns of tables; "" without a value.

// "5 reachable, 1 silent"
std::string PeersOf(const RailReachability& rail);
std::string GatewayOf(const RailReachability& rail);
// "mlx5_0[3]": device and index of the GID.
std::string RdmaOf(const RailReachability& rail);
std::string RttText(std::optional<std::chrono::microseconds> rtt);
// "12/80", of a peer or a pod.
template <typename Reach>
std::string AnsweredOf(const Reach& reach) {
  return std::to_string(reach.answered) + "/" + std::to_string(reach.sent);
}

}  // namespace railhead::reachability

template <>
struct railhead::Names<railhead::reachability::PeerState> {
  using State = reachability::PeerState;
  static constexpr std::array kAll = {
      std::pair{"unknown", State::kUnknown}, std::pair{"reachable", State::kReachable},
      std::pair{"lossy", State::kLossy},     std::pair{"paths", State::kPaths},
      std::pair{"mtu", State::kMtu},         std::pair{"noRdma", State::kNoRdma},
      std::pair{"oneWay", State::kOneWay},   std::pair{"silent", State::kSilent}};
};

template <>
struct railhead::Names<railhead::reachability::ReachabilityState> {
  using State = reachability::ReachabilityState;
  static constexpr std::array kAll = {
      std::pair{"unknown", State::kUnknown}, std::pair{"reachable", State::kReachable},
      std::pair{"degraded", State::kDegraded}, std::pair{"dead", State::kDead}};
};

template <>
struct railhead::Shape<railhead::reachability::PeerReachability> {
  using Peer = reachability::PeerReachability;
  static void List(auto& f) {
    constexpr FieldRules kPart{.need = Need::kSparse, .min = 0, .max = 1};
    f("node", &Peer::node, {.need = Need::kRequired, .column = "PEER"});
    f("address", &Peer::address, {.need = Need::kRequired, .column = "ADDRESS"});
    f("state", &Peer::state, {.need = Need::kSparse, .column = "STATE"});
    f("since", &Peer::since, {.need = Need::kSparse, .time = TimeForm::kSeconds, .column = "SINCE"});
    f("because", &Peer::because, kSparseField);
    f("sent", &Peer::sent, kSparseField);
    f.Implied("answered", &Peer::answered, &Peer::sent);
    f("lostOut", &Peer::lost_out, kPart);
    f("lostIn", &Peer::lost_in, kPart);
    f("rttUs", &Peer::rtt, {.min = 0, .max = 3'600'000'000});
    f("paths", &Peer::paths, kSparseField);
    f("badPaths", &Peer::bad_paths, kSparseField);
    f("mtu", &Peer::mtu, {.min = 0, .max = 65535});
    f("rdmaSent", &Peer::rdma_sent, kSparseField);
    f.Implied("rdmaAnswered", &Peer::rdma_answered, &Peer::rdma_sent);
    f.Column("ANSWERED", &reachability::AnsweredOf<Peer>);
    f.Column("RTT", [](const Peer& peer) { return reachability::RttText(peer.rtt); });
    f.Column("BECAUSE", &Peer::because);
  }
  static void Check(const Peer& peer, const auto& complain) {
    if (peer.answered > peer.sent) complain("answered", "is more than was sent");
    if (peer.bad_paths > peer.paths) complain("badPaths", "is more than there are");
    if (peer.rdma_answered > peer.rdma_sent) complain("rdmaAnswered", "is more than was sent");
  }
  static std::string Key(const Peer& peer) { return peer.node; }
};

template <>
struct railhead::Shape<railhead::reachability::GatewayReachability> {
  using Gateway = reachability::GatewayReachability;
  static void List(auto& f) {
    f("address", &Gateway::address, kRequiredField);
    f("answers", &Gateway::answers, kRequiredField);
    f("since", &Gateway::since, kEpochSeconds);
    f("mac", &Gateway::mac);
  }
};

template <>
struct railhead::Shape<railhead::reachability::RdmaReachability> {
  static void List(auto& f) {
    f("device", &reachability::RdmaReachability::device, kSparseField);
    f("because", &reachability::RdmaReachability::because, kSparseField);
    f("gidIndex", &reachability::RdmaReachability::gid_index, {.min = 0, .max = 65535});
  }
};

template <>
struct railhead::Shape<railhead::reachability::RailReachability> {
  using Rail = reachability::RailReachability;
  static void List(auto& f) {
    f("rail", &Rail::rail, {.need = Need::kRequired, .column = "RAIL"});
    f("device", &Rail::device, {.column = "DEVICE", .wide = kWide});
    f("pf", &Rail::pf, {.column = "PF"});
    f("state", &Rail::state, {.need = Need::kRequired, .column = "STATE"});
    f("since", &Rail::since, {.time = TimeForm::kSeconds, .column = "SINCE"});
    f("probed", &Rail::probed);
    f("probes", &Rail::probes);
    f("answers", &Rail::answers);
    f("rdma", &Rail::rdma);
    f("rdmaProbes", &Rail::rdma_probes, kSparseField);
    f("rdmaAnswers", &Rail::rdma_answers, kSparseField);
    f("stale", &Rail::stale, kSparseField);
    f("because", &Rail::because, kSparseField);
    f("probeAddress", &Rail::probe_address);
    f("gateway", &Rail::gateway);
    f("peers", &Rail::peers);
    f.Column("GATEWAY", &reachability::GatewayOf);
    f.Column("PEERS", &reachability::PeersOf);
    f.Column("RDMA", &reachability::RdmaOf, kWide);
    // The median over the peers, as the metrics have it.
    f.Column("RTT", [](const Rail& rail) {
      const auto spread = reachability::SpreadOfRtt(rail);
      return reachability::RttText(spread ? std::optional(spread->median) : std::nullopt);
    });
    f.Column("BECAUSE", &Rail::because);
  }
  static std::string Key(const Rail& rail) { return rail.rail; }
};

template <>
struct railhead::Shape<railhead::reachability::PodReachability> {
  using Pod = reachability::PodReachability;
  static void List(auto& f) {
    f.Column("POD", &Pod::Name);
    f("namespace", &Pod::pod_namespace);
    f("pod", &Pod::pod, kRequiredField);
    f("interface", &Pod::interface, {.need = Need::kRequired, .column = "INTERFACE"});
    f("rail", &Pod::rail, {.need = Need::kRequired, .column = "RAIL"});
    f("device", &Pod::device, {.column = "DEVICE"});
    f("state", &Pod::state, {.need = Need::kRequired, .column = "STATE"});
    f("since", &Pod::since, {.time = TimeForm::kSeconds, .column = "SINCE"});
    f("sent", &Pod::sent);
    f("answered", &Pod::answered);
    f("because", &Pod::because, kSparseField);
    f("gatewayAnswers", &Pod::gateway_answers);
    f("stale", &Pod::stale, kSparseField);
    f.Column("ANSWERED", &reachability::AnsweredOf<Pod>);
    f.Column("BECAUSE", &Pod::because);
  }
  static void Check(const Pod& pod, const auto& complain) {
    if (pod.answered > pod.sent) complain("answered", "is more than was sent");
  }
  static std::string Key(const Pod& pod) { return pod.Name() + " " + pod.interface; }
};

template <>
struct railhead::Shape<railhead::reachability::ReachabilityReport> {
  using Report = reachability::ReachabilityReport;
  static void List(auto& f) {
    f.Version(1, "it is what `railctl reachability -o json` prints");
    f("node", &Report::node, kRequiredField);
    f("time", &Report::time, kEpochSeconds);
    f("authentic", &Report::authentic, kSparseField);
    f("rails", &Report::rails);
    f("pods", &Report::pods);
  }
};
