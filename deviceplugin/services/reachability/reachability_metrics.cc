#include "deviceplugin/services/reachability/reachability_metrics.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace railhead::reachability {
namespace {

constexpr std::array kAllPeerStates = {PeerState::kUnknown, PeerState::kReachable, PeerState::kLossy,
                                       PeerState::kPaths,   PeerState::kMtu,       PeerState::kNoRdma,
                                       PeerState::kOneWay,  PeerState::kSilent};

std::uint64_t Flag(bool is) {
  return is ? 1 : 0;
}

double Seconds(std::chrono::microseconds time) {
  return std::chrono::duration<double>(time).count();
}

// The worst first, and by name.
std::vector<const PeerReachability*> WorstPeers(const RailReachability& rail) {
  std::vector<const PeerReachability*> bad;
  for (const PeerReachability& peer : rail.peers) {
    if (peer.state > PeerState::kReachable) bad.push_back(&peer);
  }
  std::ranges::stable_sort(
      bad, [](const PeerReachability* a, const PeerReachability* b) { return a->state > b->state; });
  if (bad.size() > kMostBadPeers) bad.resize(kMostBadPeers);
  return bad;
}

bool ProbesRdma(const RailReachability& rail) {
  return rail.rdma && !rail.rdma->device.empty();
}

// Families with samples for each rail.
class RailMetrics {
 public:
  RailMetrics(MetricRegistry& metrics, const Published<ReachabilityReport>& report)
      : metrics_(metrics), report_(report) {}

  // `sample`: writes the samples of one rail.
  template <typename Sample>
  void Add(MetricType type, std::string_view name, std::string_view help, Sample sample) {
    metrics_.Add(type, name, help, [&report = report_, sample = std::move(sample)](Exposition& page) {
      const auto now = report.Get();
      for (const RailReachability& rail : now->rails) sample(page, rail);
    });
  }

 private:
  MetricRegistry& metrics_;
  const Published<ReachabilityReport>& report_;
};

void RegisterRailStates(RailMetrics rails) {
  rails.Add(MetricType::kGauge, "railhead_rail_reachable",
            "0 while no probe on a rail is answered, else 1; absent until it is known",
            [](Exposition& page, const RailReachability& rail) {
              if (rail.state != ReachabilityState::kUnknown)
                page.Sample({{"rail", rail.rail}}, Flag(rail.state != ReachabilityState::kDead));
            });
  rails.Add(MetricType::kGauge, "railhead_rail_gateway_answers",
            "1 while a rail's gateway answers ARP or neighbour discovery",
            [](Exposition& page, const RailReachability& rail) {
              if (rail.gateway) page.Sample({{"rail", rail.rail}}, Flag(rail.gateway->answers));
            });
}

void RegisterPeers(RailMetrics rails) {
  rails.Add(
      MetricType::kGauge, "railhead_rail_peers", "Other nodes on a rail, by reachability state",
      [](Exposition& page, const RailReachability& rail) {
        if (!rail.probe_address) return;
        for (const PeerState state : kAllPeerStates)
          page.Sample({{"rail", rail.rail}, {"state", WordOf(state)}}, std::uint64_t{rail.Count(state)});
      });
  rails.Add(MetricType::kGauge, "railhead_rail_bad_peer", "Always 1; faulty peers of a rail, the 16 worst",
            [](Exposition& page, const RailReachability& rail) {
              for (const PeerReachability* peer : WorstPeers(rail))
                page.Sample({{"rail", rail.rail}, {"peer", peer->node}, {"state", WordOf(peer->state)}},
                            std::uint64_t{1});
            });
}

void RegisterProbes(RailMetrics rails) {
  const auto endpoints = [&](const char* name, const char* help, auto value) {
    rails.Add(MetricType::kCounter, name, help, [value](Exposition& page, const RailReachability& rail) {
      if (rail.probe_address) page.Sample({{"rail", rail.rail}}, rail.*value);
    });
  };
  const auto by_rdma = [&](const char* name, const char* help, auto value) {
    rails.Add(MetricType::kCounter, name, help, [value](Exposition& page, const RailReachability& rail) {
      if (ProbesRdma(rail)) page.Sample({{"rail", rail.rail}}, rail.*value);
    });
  };
  endpoints("railhead_rail_probes", "Probes sent to other nodes", &RailReachability::probes);
  endpoints("railhead_rail_probe_answers", "Probes that were answered", &RailReachability::answers);
  by_rdma("railhead_rail_rdma_probes", "RDMA probes sent to other nodes; absent where RDMA is not probed",
          &RailReachability::rdma_probes);
  by_rdma("railhead_rail_rdma_probe_answers", "RDMA probes that were answered",
          &RailReachability::rdma_answers);
  rails.Add(MetricType::kCounter, "railhead_rail_stale_neighbours",
            "Gateways and nodes that had a stale MAC address for a pod until railheadd announced it again",
            [](Exposition& page, const RailReachability& rail) {
              if (rail.gateway || rail.probe_address) page.Sample({{"rail", rail.rail}}, rail.stale);
            });
}

void RegisterRoundTrips(RailMetrics rails) {
  rails.Add(MetricType::kGauge, "railhead_rail_peer_rtt_seconds",
            "Round-trip time of probes: median over the reachable peers",
            [](Exposition& page, const RailReachability& rail) {
              if (const auto spread = SpreadOfRtt(rail))
                page.Sample({{"rail", rail.rail}}, Seconds(spread->median));
            });
  rails.Add(MetricType::kGauge, "railhead_rail_peer_rtt_max_seconds",
            "Round-trip time of probes: maximum over the reachable peers",
            [](Exposition& page, const RailReachability& rail) {
              if (const auto spread = SpreadOfRtt(rail))
                page.Sample({{"rail", rail.rail}}, Seconds(spread->largest));
            });
}

void AppendPods(Exposition& page, const ReachabilityReport& report) {
  for (const PodReachability& pod : report.pods) {
    if (pod.state == ReachabilityState::kUnknown) continue;
    page.Sample({{"namespace", pod.pod_namespace},
                 {"pod", pod.pod},
                 {"interface", pod.interface},
                 {"rail", pod.rail},
                 {"device", pod.device}},
                Flag(pod.state != ReachabilityState::kDead));
  }
}

}  // namespace

void RegisterReachability(MetricRegistry& metrics, const Published<ReachabilityReport>& report) {
  const RailMetrics rails(metrics, report);
  RegisterRailStates(rails);
  RegisterPeers(rails);
  RegisterProbes(rails);
  RegisterRoundTrips(rails);
  metrics.Add(MetricType::kGauge, "railhead_pod_rail_reachable",
              "0 while a pod's interface reaches nothing on its rail, else 1; absent until it is known",
              [&report](Exposition& page) { AppendPods(page, *report.Get()); });
}

}  // namespace railhead::reachability
