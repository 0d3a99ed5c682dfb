#include "deviceplugin/services/reachability/reachability_log.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "deviceplugin/services/reachability/folded_names.h"
#include "netns/base/text.h"

namespace railhead::reachability {
namespace {

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

}  // namespace railhead::reachability
