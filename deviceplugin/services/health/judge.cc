#include "deviceplugin/services/health/judge.h"

#include <algorithm>
#include <array>
#include <limits>

#include "netns/base/text.h"
#include "netns/sys/pci_address.h"

namespace railhead {
namespace {

using Kind = Verdict::Kind;

constexpr std::array<std::string_view, 4> kRailStates = {"unknown", "alive", "impaired", "dead"};
constexpr std::array<std::string_view, 6> kPortStates = {"NOP",   "DOWN",   "INIT",
                                                         "ARMED", "ACTIVE", "ACTIVE_DEFER"};

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
  // "unknown": the driver does not tell. The others have carrier and carry nothing.
  if (link.operstate.empty() || link.operstate == "up" || link.operstate == "unknown") return {};
  return Bad("the link of " + Name(subject) + " is " + link.operstate);
}

Verdict JudgePort(const HealthSubject& subject, const Observation& seen) {
  if (!seen.port || PortIsActive(seen) || IsAsleep(subject, seen)) return {};
  // Without its network device a VF is on its way into a pod or home.
  if (subject.is_vf && !seen.link) return {};
  return Bad("RDMA port 1 of " + seen.port->ibdev + " of " + Name(subject) + " is " +
             std::string(NameOf(seen.port->state)));
}

Verdict JudgeVfCount(const HealthSubject& subject, const Observation& seen) {
  const int had = std::max(subject.vf_count, subject.lost_vfs);
  if (subject.is_vf || had == 0 || seen.vf_count.value_or(1) != 0) return {};
  return Bad(Name(subject) + " has no VFs any more: sriov_numvfs is 0, was " + std::to_string(had));
}

// `bad_from`: this state and worse ones are bad.
Verdict JudgeRailOf(const HealthSubject& subject, const ObservedRail& rail, ObservedRail::State bad_from) {
  using State = ObservedRail::State;
  if (rail.state == State::kUnknown) return {Kind::kUnknown, {}, {}};
  if (rail.state < bad_from) return {};
  const std::string how = rail.state == State::kDead ? " reaches nothing" : " is ill towards most peers";
  return Bad("the rail of " + Name(subject) + how + (rail.because.empty() ? "" : ": " + rail.because));
}

Verdict JudgeDrain(const HealthSubject& subject, const Drain& drain) {
  const std::string why = drain.reason.empty() ? "" : ": " + drain.reason;
  return Bad(Name(subject) + " is drained" + why + " (railctl return " + drain.name + ")");
}

}  // namespace

Verdict Judge(HealthRule rule, const HealthSubject& subject, const Observation& seen) {
  if (rule == HealthRule::kGone) {
    return seen.present || subject.lost_with_pf ? Verdict{}
                                                : Bad("there is no PCI function " + subject.id + " any more");
  }
  if (rule == HealthRule::kNotReady)
    return seen.not_ready.empty() ? Verdict{} : Bad(Name(subject) + " is not ready: " + seen.not_ready);
  if (rule == HealthRule::kDrained) return seen.drained ? JudgeDrain(subject, *seen.drained) : Verdict{};
  const bool of_host = rule == HealthRule::kLink || rule == HealthRule::kRdmaPort;
  if (of_host && subject.in_use) return {Kind::kExempt, {}, {}};
  if (!seen.present) return {Kind::kUnknown, {}, {}};
  switch (rule) {
    case HealthRule::kUnbound:
      return seen.bound ? Verdict{} : Bad(Name(subject) + " is bound to no driver");
    case HealthRule::kLink:
      return seen.bound ? JudgeLink(subject, seen) : Verdict{Kind::kUnknown, {}, {}};
    case HealthRule::kRdmaPort:
      return seen.bound ? JudgePort(subject, seen) : Verdict{Kind::kUnknown, {}, {}};
    case HealthRule::kUnreachable:
      return seen.rail ? JudgeRailOf(subject, *seen.rail, ObservedRail::State::kDead) : Verdict{};
    case HealthRule::kImpaired:
      return seen.rail ? JudgeRailOf(subject, *seen.rail, ObservedRail::State::kImpaired) : Verdict{};
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
  return kPortStates.at(static_cast<std::size_t>(state));
}

std::string_view NameOf(ObservedRail::State state) {
  return kRailStates.at(static_cast<std::size_t>(state));
}

std::optional<ObservedRail::State> RailStateNamed(std::string_view name) {
  const auto* const found = std::find(kRailStates.begin(), kRailStates.end(), name);
  if (found == kRailStates.end()) return std::nullopt;
  return static_cast<ObservedRail::State>(found - kRailStates.begin());
}

std::optional<PortState> PortStateNamed(std::string_view name) {
  const auto* const found = std::find(kPortStates.begin(), kPortStates.end(), name);
  if (found == kPortStates.end()) return std::nullopt;
  return static_cast<PortState>(found - kPortStates.begin());
}

namespace {

constexpr int kSteps = 30;

std::uint64_t SaturatingSum(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t sum = a + b;
  return sum < a ? std::numeric_limits<std::uint64_t>::max() : sum;
}

}  // namespace

RateWindow::RateWindow(std::chrono::seconds window)
    : window_(window), step_(std::chrono::steady_clock::duration(window) / kSteps) {}

void RateWindow::Read(std::uint64_t value, Time now) {
  if (last_ && value > *last_) Add(value - *last_, now);
  last_ = value;
}

void RateWindow::Add(std::uint64_t rises, Time when) {
  const auto old = std::remove_if(steps_.begin(), steps_.end(),
                                  [&](const Step& step) { return step.start + window_ <= when; });
  steps_.erase(old, steps_.end());
  if (!steps_.empty() && when < steps_.back().start + step_) {
    steps_.back().rises = SaturatingSum(steps_.back().rises, rises);
    return;
  }
  steps_.push_back({when, rises});
}

std::uint64_t RateWindow::Sum(Time now) const {
  std::uint64_t sum = 0;
  for (const Step& step : steps_) {
    if (step.start + window_ > now) sum = SaturatingSum(sum, step.rises);
  }
  return sum;
}

}  // namespace railhead
