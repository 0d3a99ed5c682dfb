#include "deviceplugin/services/reachability/pod_probe.h"

#include <algorithm>
#include <random>
#include <string>

#include "deviceplugin/services/reachability/echo_request.h"
#include "deviceplugin/services/reachability/probe_burst.h"

namespace railhead {
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
std::optional<IpAddress> OwnFor(const AttachedLink& link, const IpAddress& other) {
  for (const IpPrefix& own : link.addresses) {
    if (own.address.IsV4() == other.IsV4()) return own.address;
  }
  return std::nullopt;
}

class PodLooker {
 public:
  PodLooker(Kernel& kernel, const NetNs& pod, const AttachedLink& link, const PodTarget& target,
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
    own.reserve(attached_.addresses.size());
    for (const IpPrefix& prefix : attached_.addresses) own.push_back(prefix.address);
    RH_TRY(kernel_.Announce(pod_, link_, own));
    look_.announced = true;
    const bool gateway = look_.gateway_echo == false;
    if (gateway) silent.pop_back();
    const std::uint32_t sent = look_.sent;
    const auto still = RH_TRY(AskStations(silent));
    look_.sent = sent;
    for (const IpAddress& station : silent) {
      if (std::find(still.begin(), still.end(), station) == still.end()) look_.stale.push_back(station);
    }
    if (!gateway) return {};
    look_.gateway_echo = RH_TRY(Echo());
    if (*look_.gateway_echo) look_.stale.push_back(*target_.gateway);
    return {};
  }

  Kernel& kernel_;
  const NetNs& pod_;
  const AttachedLink& attached_;
  const PodTarget& target_;
  const PodLookOptions& options_;
  Link link_;
  PodLook look_;
};

}  // namespace

Result<PodLook> LookFromPod(Kernel& kernel, const NetNs& pod, const AttachedLink& link,
                            const PodTarget& target, const PodLookOptions& options) {
  return PodLooker(kernel, pod, link, target, options).Run();
}

}  // namespace railhead
