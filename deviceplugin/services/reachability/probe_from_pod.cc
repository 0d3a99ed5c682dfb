#include "deviceplugin/services/reachability/probe_from_pod.h"

#include <algorithm>
#include <chrono>
#include <random>

#include "deviceplugin/services/reachability/echo_request.h"
#include "deviceplugin/services/reachability/send_probes.h"
#include "deviceplugin/services/reachability/udp_socket.h"
#include "netns/base/text.h"

namespace railhead::reachability {
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
        RH_TRY(kernel_.ProbeAddresses(pod_, {{link_.index, link_.mac, *target_.gateway, true}}, kPodGateway));
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
