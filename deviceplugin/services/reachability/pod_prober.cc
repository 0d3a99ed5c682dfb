#include "deviceplugin/services/reachability/pod_prober.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "cni/attachment/pod_network.h"
#include "cni/protocol/request.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

// A look may take as long as its limits: the others wait.
constexpr int kLooksAtOnce = 16;
constexpr int kBadLooks = 2;
// A gateway that has never answered an echo request may not answer any: asking costs half a second.
constexpr int kLooksWithoutEcho = 30;

std::string StaleText(const std::vector<IpAddress>& stale) {
  std::vector<std::string> who;
  who.reserve(stale.size());
  for (const IpAddress& one : stale) who.push_back(one.ToString());
  return Join(who, ", ") + " had an old MAC address for the pod's, until it was announced again";
}

}  // namespace

Result<PodLook> PodProber::LookFrom(const JournalEntry& entry, const AttachedLink& link,
                                    const PodTarget& target, const PodLookOptions& base, Known* known) {
  const auto ns = RH_TRY(OpenPodOf(kernel_, entry));
  if (!ns) return PodLook{};
  PodLookOptions options = base;
  options.echo = known->echoed || known->looks++ % kLooksWithoutEcho == 0;
  options.may_announce = !known->announced;
  PodLook look = RH_TRY(LookFromPod(kernel_, *ns, link, target, options));
  known->echoed = known->echoed || look.gateway_echo == true;
  const bool well = look.answered == look.sent && look.gateway_echo != false;
  known->announced = !well && (known->announced || look.announced);
  stale_[link.rail] += look.stale.size();
  return look;
}

void PodProber::Round(const JournalCache::Entries& attachments, const Targets& targets,
                      const ConnectivitySettings& settings, const SharedKeys* keys) {
  PodLookOptions base;
  base.port = settings.port;
  base.keys = keys;
  const auto now = Clock::now();
  std::set<std::string> there;
  int looks = 0;
  for (const auto& entry : attachments) {
    for (const AttachedLink& link : entry->links) {
      const auto target = targets.find(link.rail);
      if (link.user_space || target == targets.end()) continue;
      const std::string key = entry->key.ToString() + " " + link.pod_name;
      there.insert(key);
      Known& known = known_[key];
      if (now < known.due || looks == kLooksAtOnce || stopped_) continue;
      ++looks;
      known.due = now + settings.pods;
      const auto look = LookFrom(*entry, link, target->second, base, &known);
      NameOwner(*entry, link, &known.reach);
      Judge(look.value_or(PodLook()), look ? "" : look.error().message, target->second, &known);
    }
  }
  std::erase_if(known_, [&](const auto& one) { return !there.contains(one.first); });
}

void PodProber::NameOwner(const JournalEntry& entry, const AttachedLink& link, PodReach* reach) {
  const std::string pod = PodName(entry.cni_args);
  const std::size_t slash = pod.find('/');
  reach->pod_namespace = slash == std::string::npos ? "" : pod.substr(0, slash);
  reach->pod = slash == std::string::npos ? entry.key.container_id : pod.substr(slash + 1);
  reach->interface = link.pod_name;
  reach->rail = link.rail;
  reach->device = link.device;
}

void PodProber::Judge(const PodLook& look, const std::string& failure, const PodTarget& target,
                      Known* known) {
  PodReach& reach = known->reach;
  const ReachState before = reach.state;
  reach.gateway_answers = look.gateway;
  reach.stale = look.stale;
  reach.sent = look.sent;
  reach.answered = look.answered;
  const bool gateway = look.gateway.value_or(true);
  const bool stations = look.answered > 0 || look.sent == 0;
  std::vector<std::string> because;
  if (!failure.empty()) because.push_back(failure);
  if (failure.empty() && !look.ready)
    because.emplace_back("the interface is down, has no carrier, or is gone");
  if (!gateway) because.push_back("gateway " + target.gateway->ToString() + " does not answer");
  if (look.answered < look.sent)
    because.push_back(std::to_string(look.sent - look.answered) + " of " + std::to_string(look.sent) +
                      " probes of stations have no answer");
  if (!because.empty() && target.dead) because.emplace_back("the node does not reach anything there either");
  known->bad = because.empty() ? 0 : known->bad + 1;
  if (because.empty()) {
    const bool probed = look.gateway || look.sent > 0;
    reach.state = probed ? ReachState::kReachable : ReachState::kUnknown;
    reach.because = probed ? "" : "neither gateway nor stations to probe";
    if (!look.stale.empty()) reach.because = StaleText(look.stale);
  } else if (known->bad >= kBadLooks) {
    const bool some = look.ready && ((look.gateway && gateway) || (look.sent > 0 && stations));
    reach.state = some ? ReachState::kDegraded : ReachState::kDead;
    reach.because = Join(because, "; ");
  }
  if (reach.state != before || reach.since == Wall::time_point()) reach.since = Wall::now();
}

std::uint64_t PodProber::StaleSoFar(const std::string& rail) const {
  const auto found = stale_.find(rail);
  return found == stale_.end() ? 0 : found->second;
}

std::vector<PodReach> PodProber::Reaches() const {
  std::vector<PodReach> reaches;
  for (const auto& [key, known] : known_) {
    if (!known.reach.interface.empty()) reaches.push_back(known.reach);
  }
  const auto name = [](const PodReach& reach) {
    return std::tie(reach.pod_namespace, reach.pod, reach.interface);
  };
  std::sort(reaches.begin(), reaches.end(), [&](const PodReach& a, const PodReach& b) {
    return name(a) != name(b) ? name(a) < name(b) : a.since > b.since;
  });
  // The latest sandbox of a pod: the journal may have an earlier one still.
  reaches.erase(std::unique(reaches.begin(), reaches.end(),
                            [&](const PodReach& a, const PodReach& b) { return name(a) == name(b); }),
                reaches.end());
  return reaches;
}

}  // namespace railhead
