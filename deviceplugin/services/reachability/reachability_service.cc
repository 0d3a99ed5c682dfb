#include "deviceplugin/services/reachability/reachability_service.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/services/reachability/reachability_report.h"
#include "deviceplugin/services/reachability/reachability_settings.h"
#include "netns/base/text.h"

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

void AppendRailStates(Exposition* page, const ReachabilityReport& report) {
  page->Begin(MetricType::kGauge, "railhead_rail_reachable",
              "0 while no probe on a rail is answered, else 1; absent until it is known");
  for (const RailReachability& rail : report.rails) {
    if (rail.state != ReachabilityState::kUnknown)
      page->Sample({{"rail", rail.rail}}, Flag(rail.state != ReachabilityState::kDead));
  }
  page->Begin(MetricType::kGauge, "railhead_rail_gateway_answers",
              "1 while a rail's gateway answers ARP or neighbour discovery");
  for (const RailReachability& rail : report.rails) {
    if (rail.gateway) page->Sample({{"rail", rail.rail}}, Flag(rail.gateway->answers));
  }
}

void AppendPeers(Exposition* page, const ReachabilityReport& report) {
  page->Begin(MetricType::kGauge, "railhead_rail_peers", "Other nodes on a rail, by reachability state");
  for (const RailReachability& rail : report.rails) {
    if (!rail.probe_address) continue;
    for (const PeerState state : kAllPeerStates)
      page->Sample({{"rail", rail.rail}, {"state", WordOf(state)}}, std::uint64_t{rail.Count(state)});
  }
  page->Begin(MetricType::kGauge, "railhead_rail_bad_peer", "Always 1; faulty peers of a rail, the 16 worst");
  for (const RailReachability& rail : report.rails) {
    for (const PeerReachability* peer : WorstPeers(rail))
      page->Sample({{"rail", rail.rail}, {"peer", peer->node}, {"state", WordOf(peer->state)}},
                   std::uint64_t{1});
  }
}

bool ProbesRdma(const RailReachability& rail) {
  return rail.rdma && !rail.rdma->device.empty();
}

void AppendProbes(Exposition* page, const ReachabilityReport& report) {
  page->Begin(MetricType::kCounter, "railhead_rail_probes", "Probes sent to other nodes");
  for (const RailReachability& rail : report.rails) {
    if (rail.probe_address) page->Sample({{"rail", rail.rail}}, rail.probes);
  }
  page->Begin(MetricType::kCounter, "railhead_rail_probe_answers", "Probes that were answered");
  for (const RailReachability& rail : report.rails) {
    if (rail.probe_address) page->Sample({{"rail", rail.rail}}, rail.answers);
  }
  page->Begin(MetricType::kCounter, "railhead_rail_rdma_probes",
              "RDMA probes sent to other nodes; absent where RDMA is not probed");
  for (const RailReachability& rail : report.rails) {
    if (ProbesRdma(rail)) page->Sample({{"rail", rail.rail}}, rail.rdma_probes);
  }
  page->Begin(MetricType::kCounter, "railhead_rail_rdma_probe_answers", "RDMA probes that were answered");
  for (const RailReachability& rail : report.rails) {
    if (ProbesRdma(rail)) page->Sample({{"rail", rail.rail}}, rail.rdma_answers);
  }
  page->Begin(MetricType::kCounter, "railhead_rail_stale_neighbours",
              "Gateways and nodes that had a stale MAC address for a pod until railheadd announced it again");
  for (const RailReachability& rail : report.rails) {
    if (rail.gateway || rail.probe_address) page->Sample({{"rail", rail.rail}}, rail.stale);
  }
  page->Begin(MetricType::kGauge, "railhead_rail_peer_rtt_seconds",
              "Round-trip time of probes: median over the reachable peers");
  for (const RailReachability& rail : report.rails) {
    if (const auto spread = SpreadOfRtt(rail)) page->Sample({{"rail", rail.rail}}, Seconds(spread->median));
  }
  page->Begin(MetricType::kGauge, "railhead_rail_peer_rtt_max_seconds",
              "Round-trip time of probes: maximum over the reachable peers");
  for (const RailReachability& rail : report.rails) {
    if (const auto spread = SpreadOfRtt(rail)) page->Sample({{"rail", rail.rail}}, Seconds(spread->largest));
  }
}

void AppendPods(Exposition* page, const ReachabilityReport& report) {
  page->Begin(MetricType::kGauge, "railhead_pod_rail_reachable",
              "0 while a pod's interface reaches nothing on its rail, else 1; absent until it is known");
  for (const PodReachability& pod : report.pods) {
    if (pod.state == ReachabilityState::kUnknown) continue;
    page->Sample({{"namespace", pod.pod_namespace},
                  {"pod", pod.pod},
                  {"interface", pod.interface},
                  {"rail", pod.rail},
                  {"device", pod.device}},
                 Flag(pod.state != ReachabilityState::kDead));
  }
}

using WorstFirst = std::map<PeerState, std::vector<std::string>, std::greater<>>;

// "gpu-[003-005] silent, gpu-017 lossy", the worst first.
std::string NamesByState(const WorstFirst& peers) {
  std::vector<std::string> parts;
  for (const auto& [state, nodes] : peers)
    parts.push_back(FoldedNames(nodes) + " " + std::string(WordOf(state)));
  return Join(parts, ", ");
}

void LogRailState(Log* log, const RailReachability& rail, ReachabilityState before) {
  if (rail.state == before) return;
  const Log::Fields fields = {{"rail", rail.rail}, {"pf", rail.pf}, {"because", rail.because}};
  switch (rail.state) {
    case ReachabilityState::kUnknown:
      return log->Info("the reachability of a rail is unknown", fields);
    case ReachabilityState::kReachable:
      return log->Info("a rail reaches its gateway and all peers", fields);
    case ReachabilityState::kDegraded:
      return log->Warning("a rail does not reach its gateway or some peers", fields);
    case ReachabilityState::kDead:
      return log->Warning("a rail reaches nothing", fields);
  }
}

void LogRdma(Log* log, const RailReachability& rail, const RailReachability* before) {
  const std::string because = rail.rdma ? rail.rdma->because : "";
  if (because.empty() || (before != nullptr && before->rdma == rail.rdma)) return;
  log->Warning("a rail is not probed by RDMA", {{"rail", rail.rail}, {"pf", rail.pf}, {"because", because}});
}

void LogGateway(Log* log, const RailReachability& rail, const RailReachability* before) {
  if (!rail.gateway) return;
  const bool knew = before != nullptr && before->gateway && before->gateway->address == rail.gateway->address;
  const bool answered = !knew || before->gateway->answers;
  const std::string address = rail.gateway->address.ToString();
  if (answered && !rail.gateway->answers)
    log->Warning("a rail's gateway does not answer", {{"rail", rail.rail}, {"gateway", address}});
  if (!answered && rail.gateway->answers)
    log->Info("a rail's gateway answers again", {{"rail", rail.rail}, {"gateway", address}});
}

// A change from unknown to reachable is not logged.
void LogPeers(Log* log, const RailReachability& rail, const RailReachability* before) {
  std::map<std::string, PeerState> known;
  if (before != nullptr) {
    for (const PeerReachability& peer : before->peers) known.emplace(peer.node, peer.state);
  }
  WorstFirst worse;
  WorstFirst well;
  for (const PeerReachability& peer : rail.peers) {
    const auto found = known.find(peer.node);
    const PeerState was = found == known.end() ? PeerState::kUnknown : found->second;
    if (peer.state == was) continue;
    if (peer.state > PeerState::kReachable) worse[peer.state].push_back(peer.node);
    if (peer.state == PeerState::kReachable && was > PeerState::kReachable)
      well[peer.state].push_back(peer.node);
  }
  if (!worse.empty())
    log->Warning("peers of a rail are faulty", {{"rail", rail.rail}, {"peers", NamesByState(worse)}});
  if (!well.empty())
    log->Info("peers of a rail are reachable again", {{"rail", rail.rail}, {"peers", NamesByState(well)}});
}

const PodReachability* FindPod(const ReachabilityReport& report, const PodReachability& pod) {
  const auto found = std::ranges::find_if(report.pods, [&](const PodReachability& one) {
    return one.pod_namespace == pod.pod_namespace && one.pod == pod.pod && one.interface == pod.interface;
  });
  return found == report.pods.end() ? nullptr : &*found;
}

// One result of a pod is in several reports.
void LogStale(Log* log, const PodReachability& pod, const PodReachability* before) {
  if (pod.stale.empty() || (before != nullptr && before->stale == pod.stale)) return;
  std::vector<std::string> who;
  who.reserve(pod.stale.size());
  for (const IpAddress& one : pod.stale) who.push_back(one.ToString());
  log->Warning("hosts had a stale MAC address for a pod; railheadd fixed it by announcing the address again",
               {{"pod", pod.Name()},
                {"interface", pod.interface},
                {"rail", pod.rail},
                {"device", pod.device},
                {"at", Join(who, ", ")}});
}

void LogPod(Log* log, const PodReachability& pod, ReachabilityState before) {
  const bool was_faulty = before > ReachabilityState::kReachable;
  const bool is_faulty = pod.state > ReachabilityState::kReachable;
  if (pod.state == before || (!is_faulty && !was_faulty)) return;
  const Log::Fields fields = {{"pod", pod.Name()},
                              {"interface", pod.interface},
                              {"rail", pod.rail},
                              {"device", pod.device},
                              {"state", std::string(WordOf(pod.state))},
                              {"because", pod.because}};
  if (is_faulty) {
    log->Warning(pod.state == ReachabilityState::kDead ? "a pod's interface reaches nothing on its rail"
                                                       : "a pod's interface reaches only a part of its rail",
                 fields);
  } else {
    log->Info("a pod's interface reaches its rail again", fields);
  }
}

}  // namespace

Result<std::unique_ptr<ReachabilityWatch>> StartReachabilityWatch(const Root& root, Kernel& kernel,
                                                                  const std::string& keys_path,
                                                                  const Published<NodeIndices>& claimed,
                                                                  RailVerdicts* rails,
                                                                  std::function<void()> changed, Log* log) {
  ReachabilityWatch::Calls calls;
  calls.round_done = [rails, changed = std::move(changed), log](const ReachabilityReport& before,
                                                                const ReachabilityReport& now) {
    LogReachability(log, before, now);
    if (rails->Update(now, RailVerdicts::Clock::now())) changed();
  };
  calls.failed = [log](const std::string& what, const Error& error) {
    log->Warning("probing failed; reachability may be out of date", error, {{"what", what}});
  };
  return ReachabilityWatch::Start(root, kernel, root.Path(keys_path), claimed, std::move(calls));
}

void LogReachability(Log* log, const ReachabilityReport& before, const ReachabilityReport& now) {
  for (const RailReachability& rail : now.rails) {
    const RailReachability* old = before.Find(rail.rail);
    LogRailState(log, rail, old == nullptr ? ReachabilityState::kUnknown : old->state);
    LogRdma(log, rail, old);
    LogGateway(log, rail, old);
    LogPeers(log, rail, old);
  }
  for (const PodReachability& pod : now.pods) {
    const PodReachability* old = FindPod(before, pod);
    LogPod(log, pod, old == nullptr ? ReachabilityState::kUnknown : old->state);
    LogStale(log, pod, old);
  }
}

void AppendReachability(Exposition* page, const ReachabilityReport& report) {
  AppendRailStates(page, report);
  AppendPeers(page, report);
  AppendProbes(page, report);
  AppendPods(page, report);
}

namespace {

// A single faulty peer may have the fault itself.
constexpr std::size_t kFewestFaulty = 2;

bool MostAreFaulty(const std::vector<PeerReachability>& peers) {
  std::size_t well = 0;
  std::size_t faulty = 0;
  for (const PeerReachability& peer : peers) {
    if (peer.state == PeerState::kReachable) {
      ++well;
    } else if (peer.state != PeerState::kUnknown && peer.state != PeerState::kSilent) {
      ++faulty;
    }
  }
  return faulty >= kFewestFaulty && faulty > well;
}

enum class Verdict : std::uint8_t { kUnknown, kWell, kImpaired, kDead };

Verdict VerdictOn(const RailReachability& rail) {
  if (!rail.probed || rail.state == ReachabilityState::kUnknown) return Verdict::kUnknown;
  if (rail.state == ReachabilityState::kDead) return Verdict::kDead;
  return MostAreFaulty(rail.peers) ? Verdict::kImpaired : Verdict::kWell;
}

std::string Describe(Verdict verdict, const std::string& because) {
  const char* const how =
      verdict == Verdict::kDead ? "probes reach nothing" : "probes find faults to most peers";
  return how + (because.empty() ? "" : ": " + because);
}

}  // namespace

bool RailVerdicts::Update(const ReachabilityReport& report, Clock::time_point now) {
  bool changed = false;
  const std::lock_guard lock(mutex_);
  std::map<std::string, Rail> rails;
  for (const RailReachability& seen : report.rails) {
    Rail rail = rails_[seen.rail];
    const std::string before = rail.fault;
    const Verdict verdict = VerdictOn(seen);
    // What is not known proves neither.
    if (verdict != Verdict::kWell) rail.well_since.reset();
    if (verdict != Verdict::kImpaired) rail.impaired_since.reset();
    if (verdict == Verdict::kWell && !rail.well_since) rail.well_since = now;
    if (verdict == Verdict::kImpaired && !rail.impaired_since) rail.impaired_since = now;
    if (rail.well_since && now - *rail.well_since >= kWellAfter) rail.fault.clear();
    const bool is_bad =
        verdict == Verdict::kDead || (rail.impaired_since && now - *rail.impaired_since >= kImpairedAfter);
    if (is_bad && rail.fault.empty()) rail.fault = Describe(verdict, seen.because);
    changed = changed || rail.fault != before;
    rails[seen.rail] = std::move(rail);
  }
  // A rail that is no longer probed has no fault.
  for (const auto& [name, rail] : rails_) changed = changed || (!rail.fault.empty() && !rails.contains(name));
  rails_ = std::move(rails);
  return changed;
}

std::string RailVerdicts::FaultOf(const std::string& rail) const {
  const std::lock_guard lock(mutex_);
  const auto found = rails_.find(rail);
  return found == rails_.end() ? "" : found->second.fault;
}

}  // namespace railhead::reachability
