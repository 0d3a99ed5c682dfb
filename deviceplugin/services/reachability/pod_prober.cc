#include "deviceplugin/services/reachability/pod_prober.h"

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include "cni/attachment/pod_network.h"
#include "cni/protocol/cni_args.h"
#include "deviceplugin/services/reachability/echo_request.h"
#include "deviceplugin/services/reachability/udp_socket.h"
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

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPodGateway{500};
constexpr milliseconds kPodEcho{500};
constexpr milliseconds kPodAnswers{500};
constexpr int kPackets = 4;  // to each endpoint; the last is as large as the MTU

std::uint64_t Session() {
  std::random_device random;
  return (std::uint64_t{random()} << 32U) | random();
}

// The pod's own address of the family of `other`.
std::optional<IpAddress> OwnFor(const AttachedDevice& link, const IpAddress& other) {
  for (const IpPrefix& own : link.addressing.addresses) {
    if (own.address.IsV4() == other.IsV4()) return own.address;
  }
  return std::nullopt;
}

class PodProbe {
 public:
  PodProbe(Kernel& kernel, const NetNs& pod, const AttachedDevice& link, const PodTarget& target,
           const PodProbeOptions& options)
      : kernel_(kernel), pod_(pod), attached_(link), target_(target), options_(options) {}

  Result<PodProbeResult> Run() {
    const auto route = RH_TRY(kernel_.OpenRoute(pod_));
    const auto found = RH_TRY(route->FindLink(attached_.pod_name));
    result_.ready = found && found->up && found->carrier;
    if (!result_.ready) return result_;
    link_ = *found;
    RH_TRY(AskGateway());
    auto silent = RH_TRY(ProbeEndpoints(target_.endpoints));
    if (result_.gateway == true && options_.echo) {
      result_.gateway_echo = RH_TRY(Echo());
      if (result_.gateway_echo == false) silent.push_back(*target_.gateway);
    }
    // If no host answers, a stale entry is not the cause.
    const bool any_answer = result_.gateway.value_or(true) || result_.answered > 0;
    if (!silent.empty() && any_answer && options_.may_announce) RH_TRY(AnnounceTo(silent));
    return result_;
  }

 private:
  Result<void> AskGateway() {
    if (!target_.gateway) return {};
    const auto answers =
        RH_TRY(kernel_.ProbeAddresses(pod_, {{link_.index, link_.mac, *target_.gateway}}, kPodGateway));
    result_.gateway = !answers.empty();
    return {};
  }

  Result<bool> Echo() {
    const auto own = OwnFor(attached_, *target_.gateway);
    if (!own) return true;  // without an address of the pod, no host can have a stale entry
    return AnswersEcho(pod_, attached_.pod_name, *own, *target_.gateway, kPodEcho);
  }

  // Returns the endpoints that did not answer.
  Result<std::vector<IpAddress>> ProbeEndpoints(const std::vector<IpAddress>& endpoints) {
    std::vector<IpAddress> silent;
    const auto own = endpoints.empty() ? std::nullopt : OwnFor(attached_, endpoints.front());
    if (!own) return silent;
    const UniqueFd socket = RH_TRY(OpenUdp(pod_, attached_.pod_name, {*own, 0}, target_.traffic_class));
    const std::uint64_t session = Session();
    std::vector<Probe> probes;
    for (const IpAddress& endpoint : endpoints) {
      for (int i = 0; i < kPackets; ++i) {
        Probe& probe = probes.emplace_back();
        probe.socket = socket.get();
        probe.to = {endpoint, options_.port};
        probe.session = session;
        probe.packet = i < kPackets - 1 ? 0 : static_cast<std::size_t>(link_.mtu);
      }
    }
    RH_TRY(SendProbes(&probes, kPodAnswers, options_.keys));
    for (auto at = probes.begin(); at != probes.end(); at += kPackets) {
      const auto answered =
          std::count_if(at, at + kPackets, [](const Probe& probe) { return probe.rtt.has_value(); });
      if (answered == 0) silent.push_back(at->to.address);
      result_.sent += kPackets;
      result_.answered += static_cast<std::uint32_t>(answered);
    }
    return silent;
  }

  // Answers that come now replace those that were missing before.
  Result<void> AnnounceTo(std::vector<IpAddress> silent) {
    std::vector<IpAddress> own;
    own.reserve(attached_.addressing.addresses.size());
    for (const IpPrefix& prefix : attached_.addressing.addresses) own.push_back(prefix.address);
    RH_TRY(kernel_.Announce(pod_, link_, own));
    result_.announced = true;
    const bool gateway = result_.gateway_echo == false;
    if (gateway) silent.pop_back();
    const std::uint32_t sent = result_.sent;
    const auto still = RH_TRY(ProbeEndpoints(silent));
    result_.sent = sent;
    for (const IpAddress& endpoint : silent) {
      if (!Contains(still, endpoint)) result_.stale.push_back(endpoint);
    }
    if (!gateway) return {};
    result_.gateway_echo = RH_TRY(Echo());
    if (*result_.gateway_echo) result_.stale.push_back(*target_.gateway);
    return {};
  }

  Kernel& kernel_;
  const NetNs& pod_;
  const AttachedDevice& attached_;
  const PodTarget& target_;
  const PodProbeOptions& options_;
  Link link_;
  PodProbeResult result_;
};

}  // namespace

Result<PodProbeResult> ProbeFromPod(Kernel& kernel, const NetNs& pod, const AttachedDevice& link,
                                    const PodTarget& target, const PodProbeOptions& options) {
  return PodProbe(kernel, pod, link, target, options).Run();
}

}  // namespace railhead::reachability
