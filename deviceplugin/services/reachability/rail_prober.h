// RailProber: one rail's probes from this node: its station, its peers, its gateway, and what follows.
//
// A round: Prepare(), AddShots() of all rails, one Fire() for all of them, Ask() of all rails, Take(),
// Judge(). Ownership: borrows kernel and echo server, which serves its station. Threads: one at a time.
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
#include "deviceplugin/services/reachability/reach_report.h"
#include "deviceplugin/services/reachability/reachability_settings.h"
#include "deviceplugin/services/reachability/udp_socket.h"

namespace railhead::reachability {

// A rail of the fabric and the PF that is it here.
struct RailPort {
  Rail rail;           // with the stations of all nodes
  std::string device;  // PCI address of the PF; "": this node has none
  std::string pf;      // its network device; "": unknown
  std::string rdma;    // its RDMA device; "": it has none
  bool whole = false;  // PFs of the rail are given to pods
};

class RailProber {
 public:
  using Wall = std::chrono::system_clock;

  RailProber(Kernel& kernel, EchoServer& echo, std::string node)
      : kernel_(kernel), echo_(echo), node_(std::move(node)) {}
  ~RailProber();
  RailProber(const RailProber&) = delete;
  RailProber& operator=(const RailProber&) = delete;

  // Before the first round, and when something of it is different. What is known stays.
  void Set(const RailPort& port, const ConnectivitySettings& settings);
  // What the nodes sign probes with (CheckProbe); nullptr: nothing.
  void SetKeys(std::shared_ptr<const SharedKeys> keys);
  // What an earlier railheadd knew.
  void Restore(const RailReach& before);

  void Prepare(const NetNs& host);
  void AddShots(std::mt19937_64& random, std::vector<Shot>* shots);
  // By RDMA, who has just answered. `shots`: all of the round, with those of AddShots() where they were
  // added.
  void Ask(std::span<const Shot> shots);
  // Waits `until` then for answers by RDMA.
  void Take(std::span<const Shot> shots, EchoServer::Clock::time_point until);
  // Asks the gateway, and says what all this comes to. `others`: the fabric's other rails, of which one may
  // answer where this one is dead.
  void Judge(const NetNs& host, const std::vector<RailPort>& others);

  [[nodiscard]] const RailPort& port() const { return port_; }
  [[nodiscard]] RailReach Reach() const;
  // Stations that pods of this rail can be probed against, at most `most`: of the next nodes by name, so that
  // no station has the pods of all nodes.
  [[nodiscard]] std::vector<IpAddress> WellPeers(std::size_t most) const;

 private:
  struct Aim {  // the shots of one visit
    std::size_t peer = 0;
    std::size_t first = 0;  // in the round's shots
    std::size_t count = 0;
    bool large = false;  // behind the small ones, and behind that kSizes
  };

  [[nodiscard]] StationPlan PlanOf(int lower) const;
  Result<std::optional<std::string>> Ready(const NetNs& host);
  Result<void> OpenSockets();
  void OpenRdma();
  // Who is answered by RDMA is told where to ask, and nobody else.
  void TellPeers();
  [[nodiscard]] std::set<IpAddress> PeerAddresses() const;
  // Of the peers' stations: those of a rail without a VLAN follow from the nodes' names.
  [[nodiscard]] std::map<IpAddress, MacAddress> PeerMacs() const;
  void Close();
  Visit VisitOf(const Aim& aim, std::span<const Shot> shots, const RdmaEcho::Count& rdma);
  void AskGateway();
  [[nodiscard]] std::string ForeignVlan(const NetNs& host, const std::vector<RailPort>& others) const;

  Kernel& kernel_;
  EchoServer& echo_;
  const std::string node_;
  RailPort port_;
  ConnectivitySettings settings_;
  std::optional<Station> station_;
  std::vector<UniqueFd> sockets_;  // one per path
  std::shared_ptr<const SharedKeys> keys_;
  std::unique_ptr<RdmaEcho> rdma_;
  PeerTable peers_;
  std::vector<Aim> aims_;
  RailReach reach_;         // without peers
  std::string unready_;     // why there is no station now; "": there is one
  bool unsure_ = false;     // there was one in the round before
  int gateway_misses_ = 0;  // in a row
  int rdma_misses_ = 0;     // in a row
  int dead_rounds_ = 0;     // in a row
  std::string foreign_;     // what ForeignVlan() said last
  EchoServer::Clock::time_point round_began_;
  EchoServer::Clock::time_point round_before_;
};

// What gateway and peers of a rail come to; `unready`: why it could not be probed.
void JudgeRail(const std::vector<PeerReach>& peers, const std::string& unready, RailReach* reach);

}  // namespace railhead::reachability
