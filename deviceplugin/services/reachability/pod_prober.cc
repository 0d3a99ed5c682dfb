#include "deviceplugin/services/reachability/pod_prober.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "cni/attachment/pod_network.h"
#include "cni/protocol/cni_args.h"
#include "deviceplugin/services/reachability/probe_from_pod.h"
#include "netns/base/text.h"

namespace railhead::reachability {
namespace {

// The probe of one pod may take as long as its limits, while the other pods wait.
constexpr int kPodsAtOnce = 16;
constexpr int kBadProbes = 2;
// A gateway that has never answered an echo request may not answer any, and asking takes half a second.
constexpr int kProbesPerEcho = 30;

std::string StaleText(const std::vector<IpAddress>& stale) {
  std::vector<std::string> who;
  who.reserve(stale.size());
  for (const IpAddress& one : stale) who.push_back(one.ToString());
  return Join(who, ", ") +
         " had a stale MAC address for the pod, until railheadd announced the address again";
}

}  // namespace

Result<PodProbeResult> PodProber::ProbeFrom(const JournalEntry& entry, const AttachedDevice& link,
                                            const PodTarget& target, const PodProbeOptions& base,
                                            PodRecord* record) {
  const auto ns = RH_TRY(attachment::OpenPodOf(kernel_, entry));
  if (!ns) return PodProbeResult{};
  PodProbeOptions options = base;
  options.echo = record->echoed || record->probes++ % kProbesPerEcho == 0;
  options.may_announce = !record->announced;
  PodProbeResult result = RH_TRY(ProbeFromPod(kernel_, *ns, link, target, options));
  record->echoed = record->echoed || result.gateway_echo == true;
  const bool well = result.answered == result.sent && result.gateway_echo != false;
  record->announced = !well && (record->announced || result.announced);
  stale_[link.rail] += result.stale.size();
  return result;
}

void PodProber::Round(const JournalCache::Entries& attachments, const Targets& targets,
                      const ReachabilitySettings& settings, const SharedKeys* keys,
                      const std::stop_token& stop) {
  PodProbeOptions base;
  base.port = settings.port;
  base.keys = keys;
  const auto now = Clock::now();
  std::set<std::string> there;
  int probes = 0;
  for (const auto& entry : attachments) {
    for (const AttachedDevice& link : entry->devices) {
      const auto target = targets.find(link.rail);
      if (link.before.user_space || target == targets.end()) continue;
      const std::string key = entry->key.ToString() + " " + link.pod_name;
      there.insert(key);
      PodRecord& record = records_[key];
      if (now < record.due || probes == kPodsAtOnce || stop.stop_requested()) continue;
      ++probes;
      record.due = now + settings.pods;
      const auto result = ProbeFrom(*entry, link, target->second, base, &record);
      NameOwner(*entry, link, &record.reach);
      Judge(result.value_or(PodProbeResult()), result ? "" : result.error().message, target->second, &record);
    }
  }
  std::erase_if(records_, [&](const auto& one) { return !there.contains(one.first); });
}

void PodProber::NameOwner(const JournalEntry& entry, const AttachedDevice& link, PodReachability* reach) {
  const std::string pod = PodName(entry.cni_args);
  const std::size_t slash = pod.find('/');
  reach->pod_namespace = slash == std::string::npos ? "" : pod.substr(0, slash);
  reach->pod = slash == std::string::npos ? entry.key.container_id : pod.substr(slash + 1);
  reach->interface = link.pod_name;
  reach->rail = link.rail;
  reach->device = link.device;
}

void PodProber::Judge(const PodProbeResult& result, const std::string& failure, const PodTarget& target,
                      PodRecord* record) {
  PodReachability& reach = record->reach;
  const ReachabilityState before = reach.state;
  reach.gateway_answers = result.gateway;
  reach.stale = result.stale;
  reach.sent = result.sent;
  reach.answered = result.answered;
  const bool gateway = result.gateway.value_or(true);
  const bool endpoints = result.answered > 0 || result.sent == 0;
  std::vector<std::string> because;
  if (!failure.empty()) because.push_back(failure);
  if (failure.empty() && !result.ready)
    because.emplace_back("the interface is down, has no carrier, or is gone");
  if (!gateway) because.push_back("gateway " + target.gateway->ToString() + " does not answer");
  if (result.answered < result.sent)
    because.push_back(std::to_string(result.sent - result.answered) + " of " + std::to_string(result.sent) +
                      " probes to other nodes have no answer");
  if (!because.empty() && target.dead) because.emplace_back("the node does not reach anything there either");
  record->bad = because.empty() ? 0 : record->bad + 1;
  if (because.empty()) {
    const bool probed = result.gateway || result.sent > 0;
    reach.state = probed ? ReachabilityState::kReachable : ReachabilityState::kUnknown;
    reach.because = probed ? "" : "neither a gateway nor other nodes to probe";
    if (!result.stale.empty()) reach.because = StaleText(result.stale);
  } else if (record->bad >= kBadProbes) {
    const bool some = result.ready && ((result.gateway && gateway) || (result.sent > 0 && endpoints));
    reach.state = some ? ReachabilityState::kDegraded : ReachabilityState::kDead;
    reach.because = Join(because, "; ");
  }
  if (reach.state != before || reach.since == Wall::time_point()) reach.since = Wall::now();
}

std::uint64_t PodProber::StaleSoFar(const std::string& rail) const {
  const auto found = stale_.find(rail);
  return found == stale_.end() ? 0 : found->second;
}

std::vector<PodReachability> PodProber::Pods() const {
  std::vector<PodReachability> reaches;
  for (const auto& [key, record] : records_) {
    if (!record.reach.interface.empty()) reaches.push_back(record.reach);
  }
  const auto name = [](const PodReachability& reach) {
    return std::tie(reach.pod_namespace, reach.pod, reach.interface);
  };
  std::ranges::sort(reaches, [&](const PodReachability& a, const PodReachability& b) {
    return name(a) != name(b) ? name(a) < name(b) : a.since > b.since;
  });
  // Keeps the latest sandbox of a pod: the journal may still have an earlier one.
  reaches.erase(
      std::unique(reaches.begin(), reaches.end(),
                  [&](const PodReachability& a, const PodReachability& b) { return name(a) == name(b); }),
      reaches.end());
  return reaches;
}

}  // namespace railhead::reachability
