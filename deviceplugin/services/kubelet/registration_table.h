// The registration of one resource with kubelet as a table: in each state, what each event leads to.
//
// A row holds for an event in some states, if its guard does. The first row that holds decides. It names the
// next state (kStays: the same), and the actions in their order. RegistrationMachine (registration_machine.h)
// has the data and does the actions on them. The Registrar does the others, and it reports the events. A
// table without a row for some pair of an event and a state does not compile.
//
// The reasons for the rows:
//
//   - A kubelet that starts makes a new kubelet.sock and removes all other sockets of its directory. Its
//     predecessor's refusals and streams say nothing about it.
//
//   - If kubelet.sock is missing, a registration may still hold: the same socket may come back.
//
//   - Before a registration with another kubelet.sock, the server ends its old streams. Otherwise kubelet
//     would take their late end for the end of the new registration.
//
//   - Of two railheadd the older one is on standby, and keeps its stream until kubelet ends it. It still
//     registers with a kubelet that has never taken its registration: the newer one may never register there.
//
//   - When another railheadd ends, kubelet may take that for the end of this one (other_instances.h). So this
//     one registers again: at once after a newer one, after kLeavePause after an older one.
//
// Sources: kubelet's pkg/kubelet/cm/devicemanager/plugin/v1beta1 (server.go, handler.go) of
// Kubernetes 1.36.
// Threads: constants.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

namespace railhead::kubelet {

enum class RegistrationState : std::uint8_t {
  kNotServed,       // no server: the next attempt serves
  kNoKubelet,       // serves; kubelet.sock is missing
  kUnregistered,    // serves; the next attempt registers
  kRegistering,     // Register has been called
  kAwaitingStream,  // registered; kubelet has not called ListAndWatch since
  kRegistered,      // registered; kubelet has called ListAndWatch
  kOrphaned,        // registered; kubelet.sock is missing since
  kOutdated,        // registered with another kubelet.sock than the present one, as far as is known
  kStandby,         // serves; the registration is a newer railheadd's
};
inline constexpr std::size_t kRegistrationStates = 9;

enum class RegistrationEvent : std::uint8_t {
  kKubeletCame,       // kubelet.sock is there, or is another one
  kKubeletWent,       // kubelet.sock is missing
  kOptionsChanged,    // what kubelet reads only when the server registers
  kSocketRemoved,     // our socket's file is gone
  kServed,            // the server serves
  kServeFailed,       // it cannot
  kRegisterAnswered,  // kubelet has taken the registration
  kRegisterFailed,    // it has refused, or has not answered
  kStreamOpened,      // the newest stream since Register is open
  kStreamEnded,       // it has ended
  kNewerCame,         // a newer railheadd serves the resource
  kNewerLeft,         // it has ended, and no other newer one is there
  kOlderLeft,         // an older railheadd has ended
  kAttemptTime,       // time to serve or to register
  kStreamTime,        // kubelet has had its time to call ListAndWatch
  kRejoinTime,        // time to register again after an older railheadd
};
inline constexpr std::size_t kRegistrationEvents = 16;

enum class RegistrationGuard : std::uint8_t {
  kAlways,
  kIfKubelet,      // kubelet.sock is there
  kIfSameKubelet,  // the kubelet.sock that has come took our last registration
  kIfPresent,      // the kubelet.sock that has taken the registration is the present one
  kIfTaken,        // the present kubelet.sock took our last registration
  kIfLeft,         // kIfTaken, and a newer railheadd is there
  kIfStreamOpen,   // kubelet's newest stream is open
  kIfUnexplained,  // no stream was lost within kLeaving, and kRejoinTime is not set yet
};

enum class RegistrationAction : std::uint8_t {
  // Data of RegistrationMachine.
  kStartOver,    // attempt now, pauses from the shortest; no newer railheadd, no lost stream
  kWaitShortly,  // attempt when kubelet has processed the end of its stream
  kBackOff,      // attempt after the pause, which doubles
  kTake,         // note kubelet.sock and the time; no kRejoinTime
  kLose,         // note the loss, then kBackOff: from the shortest pause after kSteady; no kRejoinTime
  kYield,        // a newer railheadd is there; no kRejoinTime
  kRejoin,       // none is there; attempt now; no kRejoinTime
  kPlanRejoin,   // kRejoinTime in kLeavePause
  // Of the Registrar.
  kServe,  // kServed or kServeFailed follows
  kStopServer,
  kRegister,  // kRegisterAnswered or kRegisterFailed follows
  kReportServing,
  kReportServeFailed,
  kReportRegistered,
  kReportRegisterFailed,
  kReportStandby,
  kReportRemoved,
  kReportOutdated,
  kReportStreamEnded,
  kReportNoStream,
  kReportOtherLeft,
};

class RegistrationStates {
 public:
  constexpr RegistrationStates(std::initializer_list<RegistrationState> states) {
    for (const RegistrationState state : states) bits_ |= 1U << static_cast<unsigned>(state);
  }
  [[nodiscard]] constexpr bool Contains(RegistrationState state) const {
    return (bits_ >> static_cast<unsigned>(state) & 1U) != 0;
  }

 private:
  unsigned bits_ = 0;
};

class RegistrationActions {
 public:
  constexpr RegistrationActions(std::initializer_list<RegistrationAction> actions) : count_(actions.size()) {
    std::size_t at = 0;
    for (const RegistrationAction action : actions) actions_.at(at++) = action;
  }
  [[nodiscard]] constexpr auto begin() const { return actions_.begin(); }
  [[nodiscard]] constexpr auto end() const { return begin() + count_; }

 private:
  std::array<RegistrationAction, 3> actions_{};
  std::size_t count_;
};

struct RegistrationRow {
  RegistrationEvent event;
  RegistrationStates states;
  RegistrationGuard guard = RegistrationGuard::kAlways;
  std::optional<RegistrationState> next;  // nullopt: the same
  RegistrationActions actions = {};
};

inline constexpr auto kRegistrationTable = [] {
  using enum RegistrationState;
  using enum RegistrationEvent;
  using enum RegistrationGuard;
  using enum RegistrationAction;
  using States = RegistrationStates;
  constexpr std::optional<RegistrationState> kStays;
  constexpr States kOffered = {kUnregistered, kAwaitingStream, kRegistered};
  constexpr States kTaken = {kAwaitingStream, kRegistered, kOrphaned, kOutdated};
  constexpr States kServing = {kNoKubelet, kUnregistered, kAwaitingStream, kRegistered,
                               kOrphaned,  kOutdated,     kStandby};
  return std::to_array<RegistrationRow>({
      // event, in states, if, then, does; a row of an event and states only: nothing happens
      {kKubeletCame, {kNotServed}, kAlways, kStays, {kStartOver}},
      {kKubeletCame, {kNoKubelet, kUnregistered, kStandby}, kAlways, kUnregistered, {kStartOver}},
      {kKubeletCame, kTaken, kIfSameKubelet, kAwaitingStream, {kStartOver}},
      {kKubeletCame, kTaken, kAlways, kOutdated, {kStartOver}},
      {kKubeletCame, {kRegistering}},

      {kKubeletWent, {kNotServed}, kAlways, kStays, {kStartOver}},
      {kKubeletWent, {kUnregistered, kStandby}, kAlways, kNoKubelet, {kStartOver}},
      {kKubeletWent, kTaken, kAlways, kOrphaned, {kStartOver}},
      {kKubeletWent, {kNoKubelet, kRegistering}},

      {kOptionsChanged, kServing, kIfStreamOpen, kNotServed, {kWaitShortly, kStopServer}},
      {kOptionsChanged, kServing, kAlways, kNotServed, {kStopServer}},
      {kOptionsChanged, {kNotServed, kRegistering}},

      {kSocketRemoved, kServing, kIfStreamOpen, kNotServed, {kReportRemoved, kWaitShortly, kStopServer}},
      {kSocketRemoved, kServing, kAlways, kNotServed, {kReportRemoved, kStopServer}},
      {kSocketRemoved, {kNotServed, kRegistering}},

      {kAttemptTime, {kNotServed}, kAlways, kStays, {kServe}},
      {kAttemptTime, {kUnregistered}, kAlways, kRegistering, {kRegister}},
      {kAttemptTime, {kOutdated}, kIfStreamOpen, kNotServed, {kReportOutdated, kWaitShortly, kStopServer}},
      {kAttemptTime, {kOutdated}, kAlways, kNotServed, {kReportOutdated, kStopServer}},
      {kAttemptTime, {kNoKubelet, kRegistering, kAwaitingStream, kRegistered, kOrphaned, kStandby}},

      {kServed, {kNotServed}, kIfLeft, kStandby, {kReportServing}},
      {kServed, {kNotServed}, kIfKubelet, kUnregistered, {kReportServing}},
      {kServed, {kNotServed}, kAlways, kNoKubelet, {kReportServing}},
      {kServed, kServing},
      {kServed, {kRegistering}},

      {kServeFailed, {kNotServed}, kAlways, kStays, {kReportServeFailed, kBackOff}},
      {kServeFailed, kServing},
      {kServeFailed, {kRegistering}},

      {kRegisterAnswered, {kRegistering}, kIfPresent, kAwaitingStream, {kTake, kReportRegistered}},
      {kRegisterAnswered, {kRegistering}, kAlways, kOutdated, {kTake, kReportRegistered}},
      {kRegisterAnswered, kServing},
      {kRegisterAnswered, {kNotServed}},

      {kRegisterFailed, {kRegistering}, kAlways, kUnregistered, {kReportRegisterFailed, kBackOff}},
      {kRegisterFailed, kServing},
      {kRegisterFailed, {kNotServed}},

      {kStreamOpened, {kAwaitingStream, kRegistered}, kAlways, kRegistered, {}},
      {kStreamOpened, {kNotServed, kNoKubelet, kUnregistered, kRegistering}},
      {kStreamOpened, {kOrphaned, kOutdated, kStandby}},

      {kStreamEnded, {kAwaitingStream, kRegistered}, kIfLeft, kStandby, {kLose}},
      {kStreamEnded, {kAwaitingStream, kRegistered}, kAlways, kUnregistered, {kLose, kReportStreamEnded}},
      {kStreamEnded, {kNotServed, kNoKubelet, kUnregistered, kRegistering}},
      {kStreamEnded, {kOrphaned, kOutdated, kStandby}},

      {kStreamTime, {kAwaitingStream}, kIfLeft, kStandby, {kLose}},
      {kStreamTime, {kAwaitingStream}, kAlways, kUnregistered, {kLose, kReportNoStream}},
      {kStreamTime, {kNotServed, kNoKubelet, kUnregistered, kRegistering}},
      {kStreamTime, {kRegistered, kOrphaned, kOutdated, kStandby}},

      {kNewerCame, {kUnregistered}, kIfTaken, kStandby, {kYield, kReportStandby}},
      {kNewerCame, kOffered, kAlways, kStays, {kYield, kReportStandby}},
      {kNewerCame, {kNotServed, kNoKubelet, kRegistering, kOrphaned, kOutdated, kStandby}},

      {kNewerLeft, {kUnregistered, kStandby}, kAlways, kUnregistered, {kRejoin}},
      {kNewerLeft, {kAwaitingStream, kRegistered}, kAlways, kUnregistered, {kRejoin, kReportOtherLeft}},
      {kNewerLeft, {kNotServed, kNoKubelet, kRegistering, kOrphaned, kOutdated}},

      {kOlderLeft, kOffered, kIfUnexplained, kStays, {kPlanRejoin}},
      {kOlderLeft, kOffered},
      {kOlderLeft, {kNotServed, kNoKubelet, kRegistering, kOrphaned, kOutdated, kStandby}},

      {kRejoinTime, {kUnregistered}, kAlways, kStays, {kRejoin}},
      {kRejoinTime, {kAwaitingStream, kRegistered}, kAlways, kUnregistered, {kRejoin, kReportOtherLeft}},
      {kRejoinTime, {kNotServed, kNoKubelet, kRegistering, kOrphaned, kOutdated, kStandby}},
  });
}();

// Whether each pair of an event and a state ends with a row that always holds, and has none after it.
constexpr bool ListsEveryPair(std::span<const RegistrationRow> rows) {
  for (std::size_t pair = 0; pair < kRegistrationEvents * kRegistrationStates; ++pair) {
    const auto event = static_cast<RegistrationEvent>(pair / kRegistrationStates);
    const auto state = static_cast<RegistrationState>(pair % kRegistrationStates);
    bool listed = false;
    for (const RegistrationRow& row : rows) {
      if (row.event != event || !row.states.Contains(state)) continue;
      if (listed) return false;
      listed = row.guard == RegistrationGuard::kAlways;
    }
    if (!listed) return false;
  }
  return true;
}
static_assert(ListsEveryPair(kRegistrationTable));

}  // namespace railhead::kubelet
