#include "deviceplugin/services/kubelet/registration_machine.h"

#include <algorithm>
#include <array>

namespace railhead::kubelet {

std::vector<RegistrationAction> RegistrationMachine::On(const RegistrationInput& input) {
  const auto row = std::ranges::find_if(kRegistrationTable, [&](const RegistrationRow& one) {
    return one.event == input.event && one.states.Contains(state_) && Holds(one.guard, input);
  });
  std::vector<RegistrationAction> others;
  if (row == kRegistrationTable.end()) return others;
  state_ = row->next.value_or(state_);
  for (const RegistrationAction action : row->actions) {
    if (!Do(action, input)) others.push_back(action);
  }
  return others;
}

bool RegistrationMachine::registered() const {
  const bool holds = state_ == RegistrationState::kAwaitingStream || state_ == RegistrationState::kRegistered;
  return holds && Holds(RegistrationGuard::kIfTaken, {});
}

bool RegistrationMachine::Due(RegistrationEvent time, TimePoint now) const {
  const auto at = TimeOf(time);
  return at && now >= *at;
}

RegistrationMachine::TimePoint RegistrationMachine::NextTime() const {
  using enum RegistrationEvent;
  auto next = TimePoint::max();
  for (const RegistrationEvent time : {kAttemptTime, kStreamTime, kRejoinTime})
    next = std::min(next, TimeOf(time).value_or(TimePoint::max()));
  return next;
}

// nullopt: in this state there is no such time.
std::optional<RegistrationMachine::TimePoint> RegistrationMachine::TimeOf(RegistrationEvent time) const {
  using enum RegistrationState;
  const auto in = [this](const RegistrationStates& states) { return states.Contains(state_); };
  switch (time) {
    case RegistrationEvent::kAttemptTime:
      return in({kNotServed, kUnregistered, kOutdated}) ? std::optional(attempt_at_) : std::nullopt;
    case RegistrationEvent::kStreamTime:
      return in({kAwaitingStream}) ? std::optional(taken_at_ + kStreamLimit) : std::nullopt;
    case RegistrationEvent::kRejoinTime:
      return in({kUnregistered, kAwaitingStream, kRegistered}) ? rejoin_at_ : std::nullopt;
    default:
      return std::nullopt;
  }
}

bool RegistrationMachine::Holds(RegistrationGuard guard, const RegistrationInput& input) const {
  using enum RegistrationGuard;
  switch (guard) {
    case kAlways:
      return true;
    case kIfKubelet:
      return kubelet_.has_value();
    case kIfSameKubelet:
      return input.kubelet == taken_by_;
    case kIfPresent:
      return input.kubelet == kubelet_;
    case kIfTaken:
      return kubelet_ && kubelet_ == taken_by_;
    case kIfLeft:
      return newer_ && Holds(kIfTaken, input);
    case kIfStreamOpen:
      return input.stream_open;
    case kIfUnexplained:
      return input.now > lost_at_ + kLeaving && !rejoin_at_;
  }
  return false;
}

bool RegistrationMachine::Do(RegistrationAction action, const RegistrationInput& input) {
  using enum RegistrationAction;
  switch (action) {
    case kStartOver:
      kubelet_ = input.kubelet;
      kubelet_since_ = input.kubelet_since;
      attempt_at_ = input.now;
      pause_ = kFirstPause;
      newer_ = false;
      lost_at_ = {};
      return true;
    case kWaitShortly:
      attempt_at_ = input.now + kFirstPause;
      return true;
    case kBackOff:
      BackOff(input.now);
      return true;
    case kTake:
      taken_by_ = input.kubelet;
      taken_at_ = input.now;
      rejoin_at_.reset();
      return true;
    case kLose:
      // A stream of the old kubelet does not mean that another railheadd has ended.
      if (input.now > kubelet_since_ + kKubeletSettles) lost_at_ = input.now;
      if (input.now > taken_at_ + kSteady) pause_ = kFirstPause;
      rejoin_at_.reset();
      BackOff(input.now);
      return true;
    case kYield:
    case kRejoin:
      newer_ = action == kYield;
      rejoin_at_.reset();
      if (action == kRejoin) attempt_at_ = input.now;
      return true;
    case kPlanRejoin:
      rejoin_at_ = input.now + kLeavePause;
      return true;
    default:
      return false;
  }
}

void RegistrationMachine::BackOff(TimePoint now) {
  attempt_at_ = now + pause_;
  pause_ = std::clamp(pause_ * 2, kFirstPause, kLongestPause);
}

}  // namespace railhead::kubelet
