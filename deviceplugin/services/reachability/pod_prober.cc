#include "deviceplugin/services/reachability/pod_prober.h"

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include "cni/attachment/pod_network.h"
#include "cni/protocol/plugin.h"
#include "deviceplugin/services/reachability/echo_server.h"
#include "deviceplugin/services/reachability/udp_socket.h"
#include "netns/base/text.h"

namespace railhead::reachability {
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

Result<PodLook> PodProber::LookFrom(const JournalEntry& entry, const AttachedDevice& link,
                                    const PodTarget& target, const PodLookOptions& base, Known* known) {
  const auto ns = RH_TRY(attachment::OpenPodOf(kernel_, entry));
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
    for (const AttachedDevice& link : entry->devices) {
      const auto target = targets.find(link.rail);
      if (link.before.user_space || target == targets.end()) continue;
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

void PodProber::NameOwner(const JournalEntry& entry, const AttachedDevice& link, PodReach* reach) {
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
  std::ranges::sort(reaches, [&](const PodReach& a, const PodReach& b) {
    return name(a) != name(b) ? name(a) < name(b) : a.since > b.since;
  });
  // The latest sandbox of a pod: the journal may have an earlier one still.
  reaches.erase(std::unique(reaches.begin(), reaches.end(),
                            [&](const PodReach& a, const PodReach& b) { return name(a) == name(b); }),
                reaches.end());
  return reaches;
}

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPodGateway{500};
constexpr milliseconds kPodEcho{500};
constexpr milliseconds kPodAnswers{500};
constexpr int kPackets = 4;  // to each station; the last is as large as the MTU

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

class PodLooker {
 public:
  PodLooker(Kernel& kernel, const NetNs& pod, const AttachedDevice& link, const PodTarget& target,
            const PodLookOptions& options)
      : kernel_(kernel), pod_(pod), attached_(link), target_(target), options_(options) {}

  Result<PodLook> Run() {
    const auto route = RH_TRY(kernel_.OpenRoute(pod_));
    const auto found = RH_TRY(route->FindLink(attached_.pod_name));
    look_.ready = found && found->up && found->carrier;
    if (!look_.ready) return look_;
    link_ = *found;
    RH_TRY(AskGateway());
    auto silent = RH_TRY(AskStations(target_.stations));
    if (look_.gateway == true && options_.echo) {
      look_.gateway_echo = RH_TRY(Echo());
      if (look_.gateway_echo == false) silent.push_back(*target_.gateway);
    }
    // Where nobody at all is there, nobody has an old entry.
    const bool somebody = look_.gateway.value_or(true) || look_.answered > 0;
    if (!silent.empty() && somebody && options_.may_announce) RH_TRY(AnnounceTo(silent));
    return look_;
  }

 private:
  Result<void> AskGateway() {
    if (!target_.gateway) return {};
    const auto answers =
        RH_TRY(kernel_.ProbeAddresses(pod_, {{link_.index, link_.mac, *target_.gateway}}, kPodGateway));
    look_.gateway = !answers.empty();
    return {};
  }

  Result<bool> Echo() {
    const auto own = OwnFor(attached_, *target_.gateway);
    if (!own) return true;  // without an address there is nothing to find back to
    return AnswersEcho(pod_, attached_.pod_name, *own, *target_.gateway, kPodEcho);
  }

  // Those that did not answer at all.
  Result<std::vector<IpAddress>> AskStations(const std::vector<IpAddress>& stations) {
    std::vector<IpAddress> silent;
    const auto own = stations.empty() ? std::nullopt : OwnFor(attached_, stations.front());
    if (!own) return silent;
    const UniqueFd socket = RH_TRY(OpenUdp(pod_, attached_.pod_name, {*own, 0}, target_.traffic_class));
    const std::uint64_t session = Session();
    std::vector<Shot> shots;
    for (const IpAddress& station : stations) {
      for (int i = 0; i < kPackets; ++i) {
        Shot& shot = shots.emplace_back();
        shot.socket = socket.get();
        shot.to = {station, options_.port};
        shot.session = session;
        shot.packet = i < kPackets - 1 ? 0 : static_cast<std::size_t>(link_.mtu);
      }
    }
    RH_TRY(Fire(&shots, kPodAnswers, options_.keys));
    for (auto at = shots.begin(); at != shots.end(); at += kPackets) {
      const auto answered =
          std::count_if(at, at + kPackets, [](const Shot& shot) { return shot.rtt.has_value(); });
      if (answered == 0) silent.push_back(at->to.address);
      look_.sent += kPackets;
      look_.answered += static_cast<std::uint32_t>(answered);
    }
    return silent;
  }

  // What comes back now counts in the place of what did not before.
  Result<void> AnnounceTo(std::vector<IpAddress> silent) {
    std::vector<IpAddress> own;
    own.reserve(attached_.addressing.addresses.size());
    for (const IpPrefix& prefix : attached_.addressing.addresses) own.push_back(prefix.address);
    RH_TRY(kernel_.Announce(pod_, link_, own));
    look_.announced = true;
    const bool gateway = look_.gateway_echo == false;
    if (gateway) silent.pop_back();
    const std::uint32_t sent = look_.sent;
    const auto still = RH_TRY(AskStations(silent));
    look_.sent = sent;
    for (const IpAddress& station : silent) {
      if (!Contains(still, station)) look_.stale.push_back(station);
    }
    if (!gateway) return {};
    look_.gateway_echo = RH_TRY(Echo());
    if (*look_.gateway_echo) look_.stale.push_back(*target_.gateway);
    return {};
  }

  Kernel& kernel_;
  const NetNs& pod_;
  const AttachedDevice& attached_;
  const PodTarget& target_;
  const PodLookOptions& options_;
  Link link_;
  PodLook look_;
};

}  // namespace

Result<PodLook> LookFromPod(Kernel& kernel, const NetNs& pod, const AttachedDevice& link,
                            const PodTarget& target, const PodLookOptions& options) {
  return PodLooker(kernel, pod, link, target, options).Run();
}

}  // namespace railhead::reachability
