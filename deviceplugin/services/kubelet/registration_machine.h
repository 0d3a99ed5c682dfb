// RegistrationMachine: one resource's registration with kubelet, by the table of registration_table.h.
//
// Each event has a time and, where it needs them, facts. The machine goes to the next state, and returns what
// the caller has to do. Those actions may report further events: the machine is ready for them. Three times
// are events of their own, which the caller reports once they have come: Due() and NextTime().
//
// Units: times of the caller's steady clock. kubelet's identity is that of kubelet.sock.
// Ownership: values; it does no I/O and has no clock. Threads: not thread-safe. Errors: none.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "deviceplugin/services/kubelet/registration_table.h"
#include "deviceplugin/services/kubelet/socket_identity.h"

namespace railhead::kubelet {

// kubelet refuses pods that it admits in this pause. But kubelet must first finish the stream that ended.
// Otherwise it takes that end for the end of the new registration.
inline constexpr std::chrono::milliseconds kFirstPause{20};
inline constexpr std::chrono::milliseconds kLongestPause{10'000};
// kubelet opens ListAndWatch right after it has answered.
inline constexpr std::chrono::milliseconds kStreamLimit{10'000};
// A registration that held for so long worked: when it ends, pauses start from the shortest again.
inline constexpr std::chrono::milliseconds kSteady{1'000};
// When an older server ends, kubelet drops this one within this time if it confuses the two.
inline constexpr std::chrono::milliseconds kLeavePause{500};
// An older server's streams end at most this long before its socket goes.
inline constexpr std::chrono::milliseconds kLeaving{5'000};
// Within this time the old kubelet finishes what it began, for example the report that it has registered us.
inline constexpr std::chrono::seconds kKubeletSettles{60};

struct RegistrationInput {
  using TimePoint = std::chrono::steady_clock::time_point;

  RegistrationEvent event = RegistrationEvent::kAttemptTime;
  TimePoint now;
  std::optional<SocketIdentity> kubelet = {};  // of kKubeletCame and kRegisterAnswered
  TimePoint kubelet_since = {};                // of kKubeletCame; the epoch: before this process
  bool stream_open = false;                    // kubelet's newest stream, in every event
};

class RegistrationMachine {
 public:
  using TimePoint = RegistrationInput::TimePoint;

  // Returns the Registrar's actions, in their order.
  std::vector<RegistrationAction> On(const RegistrationInput& input);

  [[nodiscard]] RegistrationState state() const { return state_; }
  // As of the last event. nullopt: there is no kubelet.sock, or nobody has said that there is.
  [[nodiscard]] const std::optional<SocketIdentity>& kubelet() const { return kubelet_; }
  // With the present kubelet.sock.
  [[nodiscard]] bool registered() const;
  // Whether a newer railheadd is there, also while a registration still holds.
  [[nodiscard]] bool standby() const { return newer_; }

  // Whether it is time for kAttemptTime, kStreamTime or kRejoinTime.
  [[nodiscard]] bool Due(RegistrationEvent time, TimePoint now) const;
  // When the next one is due; the maximum: none is without another event.
  [[nodiscard]] TimePoint NextTime() const;

 private:
  [[nodiscard]] std::optional<TimePoint> TimeOf(RegistrationEvent time) const;
  [[nodiscard]] bool Holds(RegistrationGuard guard, const RegistrationInput& input) const;
  // Does an action on the data. false: the action is the Registrar's.
  bool Do(RegistrationAction action, const RegistrationInput& input);
  void BackOff(TimePoint now);

  RegistrationState state_ = RegistrationState::kNotServed;
  std::optional<SocketIdentity> kubelet_;
  TimePoint kubelet_since_;
  std::optional<SocketIdentity> taken_by_;  // the last kubelet.sock that took our registration
  TimePoint taken_at_;
  TimePoint attempt_at_;
  std::chrono::milliseconds pause_ = kFirstPause;
  bool newer_ = false;
  TimePoint lost_at_;  // the epoch: no stream was lost for which another railheadd's end can be the reason
  std::optional<TimePoint> rejoin_at_;
};

}  // namespace railhead::kubelet
