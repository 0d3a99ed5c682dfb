#include "deviceplugin/services/health/judge.h"

#include <algorithm>

#include "netns/base/text.h"
#include "netns/sys/pci_address.h"

namespace railhead::health {
namespace {

using Kind = Verdict::Kind;

Verdict Bad(std::string text) {
  return {Kind::kBad, std::move(text), {}};
}

std::string Name(const HealthSubject& subject) {
  if (subject.is_vf) return (PciAddress::Parse(subject.id) ? "VF " : "subfunction ") + subject.id;
  return subject.pf_name.empty() ? "PF " + subject.id : "PF " + subject.pf_name + " (" + subject.id + ")";
}

bool PortIsActive(const Observation& seen) {
  return seen.port && (seen.port->state == PortState::kActive || seen.port->state == PortState::kActiveDefer);
}

// A device that waits for its pod is usually administratively down, and then neither
// carrier nor port say anything. A PF that has VFs carries them: it must be up.
bool IsAsleep(const HealthSubject& subject, const Observation& seen) {
  return seen.link && !seen.link->admin_up && (subject.is_vf || subject.vf_count == 0);
}

Verdict JudgeLink(const HealthSubject& subject, const Observation& seen) {
  if (!seen.link || IsAsleep(subject, seen)) return {};
  const ObservedLink& link = *seen.link;
  if (!link.admin_up) {
    // IPoIB devices may be down while the InfiniBand port below them is in use.
    if (PortIsActive(seen)) return {};
    return Bad(Name(subject) + " is administratively down: ip link set " + link.netdev + " up");
  }
  if (!link.carrier) return Bad(Name(subject) + " has no carrier");
  // "unknown": the driver does not report it. The other states have carrier, but no traffic passes.
  if (link.operstate.empty() || link.operstate == "up" || link.operstate == "unknown") return {};
  return Bad("the link of " + Name(subject) + " is " + link.operstate);
}

Verdict JudgePort(const HealthSubject& subject, const Observation& seen) {
  if (!seen.port || PortIsActive(seen) || IsAsleep(subject, seen)) return {};
  // Without its network device a VF is being moved into a pod or back.
  if (subject.is_vf && !seen.link) return {};
  return Bad("RDMA port 1 of " + seen.port->ibdev + " of " + Name(subject) + " is " +
             std::string(NameOf(seen.port->state)));
}

Verdict JudgeVfCount(const HealthSubject& subject, const Observation& seen) {
  const int had = std::max(subject.vf_count, subject.lost_vfs);
  if (subject.is_vf || had == 0 || seen.vf_count.value_or(1) != 0) return {};
  return Bad(Name(subject) + " no longer has VFs: sriov_numvfs is 0, was " + std::to_string(had));
}

Verdict JudgeDrain(const HealthSubject& subject, const Drain& drain) {
  const std::string why = drain.reason.empty() ? "" : ": " + drain.reason;
  return Bad(Name(subject) + " is drained" + why + " (railctl undrain " + drain.name + ")");
}

}  // namespace

Verdict Judge(HealthRule rule, const HealthSubject& subject, const Observation& seen) {
  if (rule == HealthRule::kNoAnswer)
    return seen.answers ? Verdict{} : Bad(Name(subject) + " does not answer");
  if (rule == HealthRule::kNotReady)
    return seen.not_ready.empty() ? Verdict{} : Bad(Name(subject) + " is not ready: " + seen.not_ready);
  if (rule == HealthRule::kDrained) return seen.drained ? JudgeDrain(subject, *seen.drained) : Verdict{};
  const bool of_host = rule == HealthRule::kLink || rule == HealthRule::kRdmaPort;
  if (of_host && subject.in_use) return {Kind::kExempt, {}, {}};
  if (!seen.answers) return {Kind::kUnknown, {}, {}};
  if (rule == HealthRule::kGone) {
    return seen.present || subject.lost_with_pf ? Verdict{}
                                                : Bad("PCI function " + subject.id + " no longer exists");
  }
  if (!seen.present) return {Kind::kUnknown, {}, {}};
  switch (rule) {
    case HealthRule::kUnbound:
      return seen.bound ? Verdict{} : Bad(Name(subject) + " is bound to no driver");
    case HealthRule::kLink:
      return seen.bound ? JudgeLink(subject, seen) : Verdict{Kind::kUnknown, {}, {}};
    case HealthRule::kRdmaPort:
      return seen.bound ? JudgePort(subject, seen) : Verdict{Kind::kUnknown, {}, {}};
    case HealthRule::kVfCount:
      return JudgeVfCount(subject, seen);
    case HealthRule::kDevlink:
      if (seen.failed_reporters.empty()) return {};
      return Bad("the driver of " + Name(subject) + " reports an error: devlink health reporter " +
                 Join(seen.failed_reporters, ", "));
    default:
      return {};
  }
}

Verdict JudgeRises(const CounterLimit& limit, const HealthSubject& subject, std::uint64_t rises) {
  if (rises <= limit.limit) return {};
  return {Kind::kBad,
          limit.counter + " of " + Name(subject) + " rose by " + std::to_string(rises) + " within " +
              std::to_string(limit.window.count()) + " s (limit " + std::to_string(limit.limit) + ")",
          limit.counter};
}

std::string_view NameOf(PortState state) {
  return kPortStates.at(static_cast<std::size_t>(state)).first;
}

}  // namespace railhead::health
