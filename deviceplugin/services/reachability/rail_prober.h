// RailProber: the probes of one rail from this node, to its peers and its gateway, and the verdict.
//
// A round: Prepare() and AddProbes() of all rails, one SendProbes() for all, SendRdmaProbes() of all rails,
// then TakeAnswers() and Judge(). Ownership: borrows the kernel and the echo server, which serves the rail's
// probe endpoint. Threads: one at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/services/reachability/echo_server.h"
#include "deviceplugin/services/reachability/peer_table.h"
#include "deviceplugin/services/reachability/probe_endpoint.h"
#include "deviceplugin/services/reachability/rdma_echo.h"
#include "deviceplugin/services/reachability/reachability_report.h"
#include "deviceplugin/services/reachability/reachability_settings.h"
#include "deviceplugin/services/reachability/send_probes.h"

namespace railhead::reachability {

// A rail of the fabric and its PF on this node.
struct RailPort {
  Rail rail;                         // with the probe addresses of all nodes
  std::optional<IpPrefix> network;   // of this node's pods on the rail
  std::optional<IpAddress> gateway;  // of that network
  std::string device;                // PCI address of the PF; "": this node has none
  std::string pf;                    // its network device; "": unknown
  std::string rdma;                  // its RDMA device; "": it has none
  bool pf_in_pods = false;           // a pool gives the rail's PFs to pods

  // Sets network and gateway of `node`. A node of a rail with nodeSubnet that has no index has none.
  void SetNetwork(const std::string& node, const NodeIndices& indices);
};

class RailProber {
 public:
  using Wall = std::chrono::system_clock;

  RailProber(Kernel& kernel, EchoServer& echo, std::string node)
      : kernel_(kernel), echo_(echo), node_(std::move(node)) {}
  ~RailProber();
  RailProber(const RailProber&) = delete;
  RailProber& operator=(const RailProber&) = delete;

  // Called before the first round, and after each change. Results of earlier rounds stay.
  void Set(const RailPort& port, const ReachabilitySettings& settings);
  // The keys that sign probes (CheckProbe); nullptr: unsigned.
  void SetKeys(std::shared_ptr<const SharedKeys> keys);
  // The report of an earlier railheadd.
  void Restore(const RailReachability& before);

  void Prepare(const NetNs& host);
  void AddProbes(std::mt19937_64& random, std::vector<Probe>* probes);
  // Sends RDMA probes to the peers that answered UDP probes of this round. `probes`: all of the round. The
  // probes of AddProbes() are at their places.
  void SendRdmaProbes(std::span<const Probe> probes);
  // Waits for answers to RDMA probes, at the latest until `until`.
  void TakeAnswers(std::span<const Probe> probes, EchoServer::Clock::time_point until);
  // Probes the gateway and judges the rail. A dead rail may be in the VLAN of one of the `others`.
  void Judge(const NetNs& host, const std::vector<RailPort>& others);

  [[nodiscard]] const RailPort& port() const { return port_; }
  // Of the thread that answers RDMA probes; nullptr: there is none now.
  [[nodiscard]] std::shared_ptr<const Worker> rdma_worker() const {
    return rdma_ ? rdma_->worker() : nullptr;
  }
  [[nodiscard]] RailReachability Report() const;
  // Probe endpoints for pods of this rail to probe, `most` at most. They are those of the next nodes by name,
  // so that no endpoint gets the probes of all pods.
  [[nodiscard]] std::vector<IpAddress> ReachablePeers(std::size_t most) const;

 private:
  struct Burst {  // the probes to one peer
    std::size_t peer = 0;
    std::size_t first = 0;  // in the round's probes
    std::size_t count = 0;
    bool large = false;  // follows the small ones; kSizes follow it
  };

  [[nodiscard]] ProbeEndpointPlan PlanOf(int lower) const;
  // nullopt: probes can be sent. Otherwise the reason.
  Result<std::optional<std::string>> OpenEndpoint(const NetNs& host);
  Result<void> OpenSockets();
  void OpenRdma();
  // Gives the peers to the echo servers. Only peers get the queue pair for RDMA probes.
  void UpdatePeers();
  [[nodiscard]] std::set<IpAddress> PeerAddresses() const;
  // MACs of the peers' endpoints, which follow from the nodes' names.
  [[nodiscard]] std::map<IpAddress, MacAddress> PeerMacs() const;
  void Close();
  BurstResult ResultOf(const Burst& burst, std::span<const Probe> probes, const RdmaEcho::Count& rdma);
  void AskGateway();
  [[nodiscard]] std::string ForeignVlan(const NetNs& host, const std::vector<RailPort>& others) const;

  Kernel& kernel_;
  EchoServer& echo_;
  const std::string node_;
  RailPort port_;
  ReachabilitySettings settings_;
  std::optional<ProbeEndpoint> endpoint_;
  std::vector<UniqueFd> sockets_;  // one per path
  std::shared_ptr<const SharedKeys> keys_;
  std::unique_ptr<RdmaEcho> rdma_;
  PeerTable peers_;
  std::vector<Burst> bursts_;
  RailReachability reach_;  // without peers
  std::string unready_;     // why the rail has no endpoint now; "": it has one
  bool unsure_ = false;     // the rail had an endpoint in the round before
  int gateway_misses_ = 0;  // in a row
  int rdma_misses_ = 0;     // in a row
  int dead_rounds_ = 0;     // in a row
  std::string foreign_;     // the last result of ForeignVlan()
  EchoServer::Clock::time_point round_began_;
  EchoServer::Clock::time_point round_before_;
};

// The verdict on a rail from its gateway and peers; `unready`: why it could not be probed.
void JudgeRail(const std::vector<PeerReachability>& peers, const std::string& unready,
               RailReachability* reach);

}  // namespace railhead::reachability
