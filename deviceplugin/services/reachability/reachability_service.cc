#include "deviceplugin/services/reachability/reachability_service.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/services/reachability/reach_report.h"
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
std::vector<const PeerReach*> WorstPeers(const RailReach& rail) {
  std::vector<const PeerReach*> bad;
  for (const PeerReach& peer : rail.peers) {
    if (peer.state > PeerState::kReachable) bad.push_back(&peer);
  }
  std::ranges::stable_sort(bad, [](const PeerReach* a, const PeerReach* b) { return a->state > b->state; });
  if (bad.size() > kMostBadPeers) bad.resize(kMostBadPeers);
  return bad;
}

void AppendRailStates(Exposition* page, const ReachReport& report) {
  page->Begin(MetricType::kGauge, "railhead_rail_reachable",
              "0 while nothing of a rail is reached, else 1; not there before it is known");
  for (const RailReach& rail : report.rails) {
    if (rail.state != ReachState::kUnknown)
      page->Sample({{"rail", rail.rail}}, Flag(rail.state != ReachState::kDead));
  }
  page->Begin(MetricType::kGauge, "railhead_rail_gateway_answers",
              "1 while a rail's gateway answers ARP or neighbour discovery");
  for (const RailReach& rail : report.rails) {
    if (rail.gateway) page->Sample({{"rail", rail.rail}}, Flag(rail.gateway->answers));
  }
}

void AppendPeers(Exposition* page, const ReachReport& report) {
  page->Begin(MetricType::kGauge, "railhead_rail_peers",
              "Other nodes' stations on a rail, by how they are reached");
  for (const RailReach& rail : report.rails) {
    if (!rail.station) continue;
    for (const PeerState state : kAllPeerStates)
      page->Sample({{"rail", rail.rail}, {"state", WordOf(state)}}, std::uint64_t{rail.Count(state)});
  }
  page->Begin(MetricType::kGauge, "railhead_rail_bad_peer",
              "Always 1; other nodes that a rail does not reach well, the 16 worst");
  for (const RailReach& rail : report.rails) {
    for (const PeerReach* peer : WorstPeers(rail))
      page->Sample({{"rail", rail.rail}, {"peer", peer->node}, {"state", WordOf(peer->state)}},
                   std::uint64_t{1});
  }
}

bool ProbesRdma(const RailReach& rail) {
  return rail.rdma && !rail.rdma->device.empty();
}

void AppendProbes(Exposition* page, const ReachReport& report) {
  page->Begin(MetricType::kCounter, "railhead_rail_probes", "Probes sent to other nodes' stations");
  for (const RailReach& rail : report.rails) {
    if (rail.station) page->Sample({{"rail", rail.rail}}, rail.probes);
  }
  page->Begin(MetricType::kCounter, "railhead_rail_probe_answers", "Probes that were answered");
  for (const RailReach& rail : report.rails) {
    if (rail.station) page->Sample({{"rail", rail.rail}}, rail.answers);
  }
  page->Begin(MetricType::kCounter, "railhead_rail_rdma_probes",
              "Probes sent to other nodes' stations by RDMA; not there where RDMA is not probed");
  for (const RailReach& rail : report.rails) {
    if (ProbesRdma(rail)) page->Sample({{"rail", rail.rail}}, rail.rdma_probes);
  }
  page->Begin(MetricType::kCounter, "railhead_rail_rdma_probe_answers", "Probes by RDMA that were answered");
  for (const RailReach& rail : report.rails) {
    if (ProbesRdma(rail)) page->Sample({{"rail", rail.rail}}, rail.rdma_answers);
  }
  page->Begin(MetricType::kCounter, "railhead_rail_stale_neighbours",
              "Gateways and stations that had an old MAC address for a pod's until it was announced again");
  for (const RailReach& rail : report.rails) {
    if (rail.gateway || rail.station) page->Sample({{"rail", rail.rail}}, rail.stale);
  }
  page->Begin(MetricType::kGauge, "railhead_rail_peer_rtt_seconds",
              "Time until a probe is answered: median over the peers that are reachable");
  for (const RailReach& rail : report.rails) {
    if (const auto spread = SpreadOfRtt(rail)) page->Sample({{"rail", rail.rail}}, Seconds(spread->median));
  }
  page->Begin(MetricType::kGauge, "railhead_rail_peer_rtt_max_seconds",
              "Time until a probe is answered: the largest of the peers that are reachable");
  for (const RailReach& rail : report.rails) {
    if (const auto spread = SpreadOfRtt(rail)) page->Sample({{"rail", rail.rail}}, Seconds(spread->largest));
  }
}

void AppendReachedPods(Exposition* page, const ReachReport& report) {
  page->Begin(MetricType::kGauge, "railhead_pod_rail_reachable",
              "0 while a pod's interface reaches nothing of its rail, else 1; not there before it is known");
  for (const PodReach& pod : report.pods) {
    if (pod.state == ReachState::kUnknown) continue;
    page->Sample({{"namespace", pod.pod_namespace},
                  {"pod", pod.pod},
                  {"interface", pod.interface},
                  {"rail", pod.rail},
                  {"device", pod.device}},
                 Flag(pod.state != ReachState::kDead));
  }
}

using WorstFirst = std::map<PeerState, std::vector<std::string>, std::greater<>>;

// "gpu-[003-005] silent, gpu-017 lossy", the worst first.
std::string NamedByState(const WorstFirst& peers) {
  std::vector<std::string> parts;
  for (const auto& [state, nodes] : peers)
    parts.push_back(FoldedNames(nodes) + " " + std::string(WordOf(state)));
  return Join(parts, ", ");
}

void LogRailState(Log* log, const RailReach& rail, ReachState before) {
  if (rail.state == before) return;
  const Log::Fields fields = {{"rail", rail.rail}, {"pf", rail.pf}, {"because", rail.because}};
  switch (rail.state) {
    case ReachState::kUnknown:
      return log->Info("it is not known any more what a rail reaches", fields);
    case ReachState::kReachable:
      return log->Info("a rail reaches all", fields);
    case ReachState::kDegraded:
      return log->Warning("a rail does not reach all", fields);
    case ReachState::kDead:
      return log->Warning("a rail reaches nothing", fields);
  }
}

void LogRdma(Log* log, const RailReach& rail, const RailReach* before) {
  const std::string because = rail.rdma ? rail.rdma->because : "";
  if (because.empty() || (before != nullptr && before->rdma == rail.rdma)) return;
  log->Warning("a rail is not probed by RDMA", {{"rail", rail.rail}, {"pf", rail.pf}, {"because", because}});
}

void LogGateway(Log* log, const RailReach& rail, const RailReach* before) {
  if (!rail.gateway) return;
  const bool knew = before != nullptr && before->gateway && before->gateway->address == rail.gateway->address;
  const bool answered = !knew || before->gateway->answers;
  const std::string address = rail.gateway->address.ToString();
  if (answered && !rail.gateway->answers)
    log->Warning("a rail's gateway does not answer", {{"rail", rail.rail}, {"gateway", address}});
  if (!answered && rail.gateway->answers)
    log->Info("a rail's gateway answers again", {{"rail", rail.rail}, {"gateway", address}});
}

// From unknown to reachable is no news.
void LogPeers(Log* log, const RailReach& rail, const RailReach* before) {
  std::map<std::string, PeerState> known;
  if (before != nullptr) {
    for (const PeerReach& peer : before->peers) known.emplace(peer.node, peer.state);
  }
  WorstFirst worse;
  WorstFirst well;
  for (const PeerReach& peer : rail.peers) {
    const auto found = known.find(peer.node);
    const PeerState was = found == known.end() ? PeerState::kUnknown : found->second;
    if (peer.state == was) continue;
    if (peer.state > PeerState::kReachable) worse[peer.state].push_back(peer.node);
    if (peer.state == PeerState::kReachable && was > PeerState::kReachable)
      well[peer.state].push_back(peer.node);
  }
  if (!worse.empty())
    log->Warning("peers of a rail are not reached as they should be",
                 {{"rail", rail.rail}, {"peers", NamedByState(worse)}});
  if (!well.empty())
    log->Info("peers of a rail are reached again", {{"rail", rail.rail}, {"peers", NamedByState(well)}});
}

const PodReach* FindPod(const ReachReport& report, const PodReach& pod) {
  const auto found = std::ranges::find_if(report.pods, [&](const PodReach& one) {
    return one.pod_namespace == pod.pod_namespace && one.pod == pod.pod && one.interface == pod.interface;
  });
  return found == report.pods.end() ? nullptr : &*found;
}

// A look is in several reports.
void LogStale(Log* log, const PodReach& pod, const PodReach* before) {
  if (pod.stale.empty() || (before != nullptr && before->stale == pod.stale)) return;
  std::vector<std::string> who;
  who.reserve(pod.stale.size());
  for (const IpAddress& one : pod.stale) who.push_back(one.ToString());
  log->Warning("a pod's address had an old MAC address at others: mended by announcing it again",
               {{"pod", pod.Name()},
                {"interface", pod.interface},
                {"rail", pod.rail},
                {"device", pod.device},
                {"at", Join(who, ", ")}});
}

void LogPod(Log* log, const PodReach& pod, ReachState before) {
  const bool was_ill = before > ReachState::kReachable;
  const bool is_ill = pod.state > ReachState::kReachable;
  if (pod.state == before || (!is_ill && !was_ill)) return;
  const Log::Fields fields = {{"pod", pod.Name()},
                              {"interface", pod.interface},
                              {"rail", pod.rail},
                              {"device", pod.device},
                              {"state", std::string(WordOf(pod.state))},
                              {"because", pod.because}};
  if (is_ill) {
    log->Warning(pod.state == ReachState::kDead ? "a pod's interface reaches nothing of its rail"
                                                : "a pod's interface does not reach all of its rail",
                 fields);
  } else {
    log->Info("a pod's interface has no fault any more", fields);
  }
}

}  // namespace

Result<std::unique_ptr<ReachWatch>> StartReachWatch(const Root& root, Kernel& kernel,
                                                    const std::string& keys_path, RailVerdicts* rails,
                                                    Log* log) {
  ReachWatch::Calls calls;
  calls.looked = [rails, log](const ReachReport& before, const ReachReport& now) {
    rails->Take(now);
    LogReach(log, before, now);
  };
  calls.failed = [log](const std::string& what, const Error& error) {
    log->Warning("what the rails reach may be unknown", error, {{"what", what}});
  };
  return ReachWatch::Start(root, kernel, root.Path(keys_path), std::move(calls));
}

void LogReach(Log* log, const ReachReport& before, const ReachReport& now) {
  for (const RailReach& rail : now.rails) {
    const RailReach* old = before.Find(rail.rail);
    LogRailState(log, rail, old == nullptr ? ReachState::kUnknown : old->state);
    LogRdma(log, rail, old);
    LogGateway(log, rail, old);
    LogPeers(log, rail, old);
  }
  for (const PodReach& pod : now.pods) {
    const PodReach* old = FindPod(before, pod);
    LogPod(log, pod, old == nullptr ? ReachState::kUnknown : old->state);
    LogStale(log, pod, old);
  }
}

void AppendReach(Exposition* page, const ReachReport& report) {
  AppendRailStates(page, report);
  AppendPeers(page, report);
  AppendProbes(page, report);
  AppendReachedPods(page, report);
}

namespace {

// One peer of two may be ill itself.
constexpr std::size_t kFewestIll = 2;

bool MostAreIll(const std::vector<PeerReach>& peers) {
  std::size_t well = 0;
  std::size_t ill = 0;
  for (const PeerReach& peer : peers) {
    if (peer.state == PeerState::kReachable) {
      ++well;
    } else if (peer.state != PeerState::kUnknown && peer.state != PeerState::kSilent) {
      ++ill;
    }
  }
  return ill >= kFewestIll && ill > well;
}

health::ObservedRail VerdictOn(const RailReach& rail) {
  using State = health::ObservedRail::State;
  if (!rail.probed || rail.state == ReachState::kUnknown) return {};
  if (rail.state == ReachState::kDead) return {State::kDead, rail.because};
  if (MostAreIll(rail.peers)) return {State::kImpaired, rail.because};
  return {State::kAlive, {}};
}

// Of two rails of one PF: it is out of use only when all that goes through it is ill.
health::ObservedRail Better(health::ObservedRail a, health::ObservedRail b) {
  using State = health::ObservedRail::State;
  for (const State state : {State::kAlive, State::kUnknown}) {
    if (a.state == state) return a;
    if (b.state == state) return b;
  }
  return {std::min(a.state, b.state), a.because + "; " + b.because};
}

}  // namespace

void RailVerdicts::Take(const ReachReport& report) {
  std::map<std::string, health::ObservedRail> rails;
  for (const RailReach& rail : report.rails) {
    if (rail.device.empty()) continue;
    const auto [at, first] = rails.try_emplace(rail.device, VerdictOn(rail));
    if (!first) at->second = Better(std::move(at->second), VerdictOn(rail));
  }
  const std::lock_guard lock(mutex_);
  rails_ = std::move(rails);
}

std::optional<health::ObservedRail> RailVerdicts::Of(const std::string& pf) const {
  const std::lock_guard lock(mutex_);
  const auto found = rails_.find(pf);
  if (found == rails_.end()) return std::nullopt;
  return found->second;
}

bool RailVerdicts::AnyIs(const std::function<bool(const health::ObservedRail&)>& such) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(rails_, [&](const auto& rail) { return such(rail.second); });
}

}  // namespace railhead::reachability
