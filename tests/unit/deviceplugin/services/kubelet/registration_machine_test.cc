// The registration of a resource: every pair of an event and a state, and what happens over time.
#include "deviceplugin/services/kubelet/registration_machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace railhead::kubelet {
namespace {

using enum RegistrationEvent;
using enum RegistrationAction;
using State = RegistrationState;
using std::chrono::milliseconds;
using Actions = std::vector<RegistrationAction>;

constexpr SocketIdentity kFirst{1, 11, 100};
constexpr SocketIdentity kSecond{1, 12, 200};
constexpr milliseconds kTick{1};

// A machine, its clock and kubelet's socket.
class Played {
 public:
  Actions On(RegistrationEvent event, bool stream_open = false) {
    return machine_.On({event, now_, kubelet_, since_, stream_open});
  }
  Actions Came(const SocketIdentity& kubelet) {
    kubelet_ = kubelet;
    since_ = now_;
    return On(kKubeletCame);
  }
  Actions Went() {
    kubelet_.reset();
    return On(kKubeletWent);
  }
  // Since before this process.
  void Find(const SocketIdentity& kubelet) {
    kubelet_ = kubelet;
    On(kKubeletCame);
  }
  Actions AnsweredBy(const SocketIdentity& kubelet) {
    return machine_.On({kRegisterAnswered, now_, kubelet, since_, false});
  }
  void Wait(milliseconds time) { now_ += time; }
  // Waits until the time has come, and no longer.
  void WaitFor(RegistrationEvent time) {
    ASSERT_LT(machine_.NextTime(), RegistrationInput::TimePoint::max()) << "nothing to wait for";
    if (machine_.Due(time, now_)) return;
    EXPECT_FALSE(machine_.Due(time, machine_.NextTime() - kTick));
    now_ = machine_.NextTime();
    EXPECT_TRUE(machine_.Due(time, now_));
  }
  [[nodiscard]] bool Due(RegistrationEvent time) const { return machine_.Due(time, now_); }
  [[nodiscard]] milliseconds Left() const {
    return std::chrono::duration_cast<milliseconds>(machine_.NextTime() - now_);
  }
  [[nodiscard]] bool Waits() const { return machine_.NextTime() < RegistrationInput::TimePoint::max(); }
  const RegistrationMachine* operator->() const { return &machine_; }

 private:
  RegistrationMachine machine_;
  RegistrationInput::TimePoint now_{std::chrono::hours(1)};
  RegistrationInput::TimePoint since_;
  std::optional<SocketIdentity> kubelet_;
};

// By the events that lead there.
Played In(State state) {
  Played played;
  if (state != State::kNoKubelet) played.Find(kFirst);
  if (state == State::kNotServed) return played;
  played.On(kServed);
  if (state == State::kNoKubelet || state == State::kUnregistered) return played;
  played.On(kAttemptTime);
  if (state == State::kRegistering) return played;
  played.On(kRegisterAnswered);
  if (state == State::kAwaitingStream) return played;
  played.On(kStreamOpened);
  if (state == State::kOrphaned) played.Went();
  if (state == State::kOutdated) played.Came(kSecond);
  if (state != State::kStandby) return played;
  played.On(kNewerCame);
  played.On(kStreamEnded);
  return played;
}

// One letter for each state, in its order.
constexpr std::string_view kLetters = "NKUGAROXS";
static_assert(kLetters.size() == kRegistrationStates);

// What an event leads to: a letter for each state in the order of kLetters. A capital: with `actions`; a
// small one: without; a dot: another line says it.
struct Line {
  RegistrationEvent event;
  std::string_view cells;
  Actions actions = {};
  std::vector<RegistrationEvent> before = {};            // `event`, in the state
  std::optional<SocketIdentity> kubelet = std::nullopt;  // of `event`; nullopt: kFirst
  bool stream_open = false;
};

std::vector<Line> Lines() {
  return {
      {kKubeletCame, "nuugxxxxu", {}, {}, kSecond},
      {kKubeletCame, "nuugaaaau", {}, {}, kFirst},
      {kKubeletWent, "nkkgooook"},
      {kOptionsChanged, "nNNgNNNNN", {kStopServer}},
      {kOptionsChanged, "nNNgNNNNN", {kStopServer}, {}, {}, true},
      {kSocketRemoved, "nNNgNNNNN", {kReportRemoved, kStopServer}},
      {kSocketRemoved, "nNNgNNNNN", {kReportRemoved, kStopServer}, {}, {}, true},
      {kAttemptTime, "Nk.garo.s", {kServe}},
      {kAttemptTime, "..G......", {kRegister}},
      {kAttemptTime, ".......N.", {kReportOutdated, kStopServer}},
      {kAttemptTime, ".......N.", {kReportOutdated, kStopServer}, {}, {}, true},
      {kServed, "Ukugaroxs", {kReportServing}},
      {kServed, "K........", {kReportServing}, {kKubeletWent}},
      {kServed, "........S", {kReportServing}, {kSocketRemoved}},
      {kServeFailed, "Nkugaroxs", {kReportServeFailed}},
      {kRegisterAnswered, "nkuAaroxs", {kReportRegistered}},
      {kRegisterAnswered, "nkuXaroxs", {kReportRegistered}, {}, kSecond},
      {kRegisterFailed, "nkuUaroxs", {kReportRegisterFailed}},
      {kStreamOpened, "nkugrroxs"},
      {kStreamEnded, "nkugUUoxs", {kReportStreamEnded}},
      {kStreamEnded, "....ss...", {}, {kNewerCame}},
      {kStreamTime, "nkugUroxs", {kReportNoStream}},
      {kStreamTime, "....s....", {}, {kNewerCame}},
      {kNewerCame, "nkUgARoxs", {kReportStandby}},
      {kNewerCame, "....SS...", {kReportStandby}, {kStreamEnded}},
      {kNewerLeft, "nkugUUoxu", {kReportOtherLeft}},
      {kNewerLeft, "nkugUUoxu", {kReportOtherLeft}, {kNewerCame}},
      {kOlderLeft, "nkugaroxs"},
      {kOlderLeft, "nkugaroxs", {}, {kOlderLeft}},
      {kRejoinTime, "nkugUUoxs", {kReportOtherLeft}},
      {kRejoinTime, "nkugUUoxs", {kReportOtherLeft}, {kOlderLeft}},
  };
}

std::string Describe(const Line& line, State state) {
  return "event " + std::to_string(static_cast<int>(line.event)) + " in state " +
         std::string(1, kLetters[static_cast<std::size_t>(state)]) + ", line " + std::string(line.cells);
}

TEST(RegistrationTableTest, IsWhatIsExpectedForEveryPair) {
  std::set<std::pair<RegistrationEvent, State>> pairs;
  for (const Line& line : Lines()) {
    ASSERT_EQ(line.cells.size(), kRegistrationStates);
    for (std::size_t i = 0; i < kRegistrationStates; ++i) {
      const char cell = line.cells[i];
      if (cell == '.') continue;
      const auto state = static_cast<State>(i);
      pairs.emplace(line.event, state);
      Played played = In(state);
      ASSERT_EQ(played->state(), state) << Describe(line, state);
      for (const RegistrationEvent event : line.before) {
        if (event == kKubeletWent) {
          played.Went();
        } else {
          played.On(event);
        }
      }
      RegistrationMachine machine = *played.operator->();
      const auto now = RegistrationInput::TimePoint(std::chrono::hours(2));
      const Actions actions =
          machine.On({line.event, now, line.kubelet ? line.kubelet : kFirst, now, line.stream_open});
      const bool capital = cell >= 'A' && cell <= 'Z';
      const auto next = kLetters.find(static_cast<char>(capital ? cell : cell - 'a' + 'A'));
      EXPECT_EQ(machine.state(), static_cast<State>(next)) << Describe(line, state);
      EXPECT_EQ(actions, capital ? line.actions : Actions()) << Describe(line, state);
    }
  }
  EXPECT_EQ(pairs.size(), kRegistrationEvents * kRegistrationStates);
}

// Each row: none can go, and none can come twice.
TEST(RegistrationTableTest, WithoutAPairIsRefused) {
  const std::vector<RegistrationRow> rows(kRegistrationTable.begin(), kRegistrationTable.end());
  ASSERT_TRUE(ListsEveryPair(rows));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    std::vector<RegistrationRow> fewer = rows;
    fewer.erase(fewer.begin() + at);
    EXPECT_EQ(ListsEveryPair(fewer), rows[i].guard != RegistrationGuard::kAlways) << "without row " << i;
    std::vector<RegistrationRow> more = rows;
    more.push_back(rows[i]);
    EXPECT_FALSE(ListsEveryPair(more)) << "row " << i << " again, after one that always holds";
  }
}

TEST(RegistrationMachineTest, FailuresPauseLongerAndLongerUntilKubeletChanges) {
  Played played = In(State::kUnregistered);
  for (const int pause : {20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10'000, 10'000}) {
    ASSERT_TRUE(played.Due(kAttemptTime));
    EXPECT_EQ(played.On(kAttemptTime), Actions{kRegister});
    EXPECT_EQ(played.On(kRegisterFailed), Actions{kReportRegisterFailed});
    EXPECT_EQ(played.Left(), milliseconds(pause));
    played.WaitFor(kAttemptTime);
  }
  played.On(kAttemptTime);
  played.On(kRegisterFailed);
  EXPECT_FALSE(played.Due(kAttemptTime));
  EXPECT_EQ(played.Came(kSecond), Actions());
  EXPECT_TRUE(played.Due(kAttemptTime)) << "the old kubelet's failures do not count for a new one";
  played.On(kAttemptTime);
  played.On(kRegisterFailed);
  EXPECT_EQ(played.Left(), kFirstPause);
}

TEST(RegistrationMachineTest, AServerThatCannotServePausesToo) {
  Played played;
  ASSERT_TRUE(played.Due(kAttemptTime)) << "without kubelet, too";
  for (const int pause : {20, 40, 80}) {
    EXPECT_EQ(played.On(kAttemptTime), Actions{kServe});
    played.On(kServeFailed);
    EXPECT_EQ(played.Left(), milliseconds(pause));
    played.WaitFor(kAttemptTime);
  }
  played.On(kAttemptTime);
  EXPECT_EQ(played.On(kServed), Actions{kReportServing});
  EXPECT_EQ(played->state(), State::kNoKubelet);
  EXPECT_FALSE(played.Waits());
  played.Came(kFirst);
  EXPECT_TRUE(played.Due(kAttemptTime));
}

TEST(RegistrationMachineTest, KubeletRestarts) {
  Played played = In(State::kRegistered);
  EXPECT_TRUE(played->registered());
  played.Went();
  EXPECT_FALSE(played->registered());
  EXPECT_FALSE(played.Waits());
  played.Wait(kSteady);
  played.Came(kSecond);
  EXPECT_FALSE(played->registered());
  ASSERT_TRUE(played.Due(kAttemptTime));
  EXPECT_EQ(played.On(kAttemptTime, true), (Actions{kReportOutdated, kStopServer}));
  EXPECT_EQ(played.Left(), kFirstPause) << "kubelet processes the end of the stream";
  played.WaitFor(kAttemptTime);
  EXPECT_EQ(played.On(kAttemptTime), Actions{kServe});
  played.On(kServed);
  ASSERT_TRUE(played.Due(kAttemptTime));
  EXPECT_EQ(played.On(kAttemptTime), Actions{kRegister});
  EXPECT_EQ(played.On(kRegisterAnswered), Actions{kReportRegistered});
  EXPECT_TRUE(played->registered());
}

TEST(RegistrationMachineTest, NothingOfAKubeletThatIsGoneCounts) {
  for (const State state : {State::kNotServed, State::kUnregistered, State::kRegistered, State::kStandby}) {
    Played played = In(state);
    if (state == State::kRegistered) played.On(kNewerCame);
    played.Went();
    EXPECT_FALSE(played->kubelet());
    EXPECT_FALSE(played->standby());
    EXPECT_FALSE(played->registered());
    EXPECT_EQ(played.Waits(), state == State::kNotServed) << "it serves without kubelet, too";
  }
}

TEST(RegistrationMachineTest, KubeletRemovesOurSocketFirst) {
  Played played = In(State::kRegistered);
  played.Came(kSecond);
  EXPECT_EQ(played.On(kSocketRemoved), (Actions{kReportRemoved, kStopServer})) << "one report, of the cause";
  EXPECT_TRUE(played.Due(kAttemptTime)) << "no stream was open";
  EXPECT_EQ(played.On(kAttemptTime), Actions{kServe});
  played = In(State::kRegistered);
  EXPECT_EQ(played.On(kSocketRemoved, true), (Actions{kReportRemoved, kStopServer}));
  EXPECT_EQ(played.Left(), kFirstPause);
}

TEST(RegistrationMachineTest, TheSameSocketComesBack) {
  Played played = In(State::kRegistered);
  played.Went();
  played.Came(kFirst);
  EXPECT_TRUE(played->registered());
  EXPECT_EQ(played.On(kStreamOpened), Actions());
  EXPECT_EQ(played->state(), State::kRegistered);
}

TEST(RegistrationMachineTest, ANewerKubeletHasAnsweredThanIsKnown) {
  Played played = In(State::kRegistering);
  EXPECT_EQ(played.AnsweredBy(kSecond), Actions{kReportRegistered});
  EXPECT_FALSE(played->registered()) << "not with the one that is known";
  Played gone = played;
  played.Came(kSecond);
  EXPECT_TRUE(played->registered());
  EXPECT_EQ(played->state(), State::kAwaitingStream);
  ASSERT_TRUE(gone.Due(kAttemptTime));
  EXPECT_EQ(gone.On(kAttemptTime), (Actions{kReportOutdated, kStopServer})) << "the first one is there still";
}

TEST(RegistrationMachineTest, ALostStreamStartsFromTheShortestPauseOnlyAfterASteadyOne) {
  Played played = In(State::kAwaitingStream);
  for (const int pause : {20, 40, 80}) {
    played.On(kStreamOpened);
    EXPECT_EQ(played.On(kStreamEnded), Actions{kReportStreamEnded});
    EXPECT_FALSE(played->registered());
    EXPECT_EQ(played.Left(), milliseconds(pause));
    played.WaitFor(kAttemptTime);
    played.On(kAttemptTime);
    played.On(kRegisterAnswered);
  }
  played.On(kStreamOpened);
  played.Wait(kSteady + kTick);
  played.On(kStreamEnded);
  EXPECT_EQ(played.Left(), kFirstPause);
}

TEST(RegistrationMachineTest, AStreamThatDoesNotComeIsLost) {
  Played played = In(State::kAwaitingStream);
  EXPECT_EQ(played.Left(), kStreamLimit);
  played.WaitFor(kStreamTime);
  EXPECT_EQ(played.On(kStreamTime), Actions{kReportNoStream});
  EXPECT_EQ(played->state(), State::kUnregistered);
  EXPECT_EQ(played.Left(), kFirstPause);
}

// A loop ran without a pause until kubelet was back.
TEST(RegistrationMachineTest, NoStreamIsAwaitedOfAKubeletThatIsGone) {
  Played played = In(State::kAwaitingStream);
  played.Went();
  played.Wait(kStreamLimit);
  EXPECT_FALSE(played.Waits());
  EXPECT_FALSE(played.Due(kStreamTime));
}

TEST(RegistrationMachineTest, TheOlderOneIsOnStandbyAndKeepsItsStream) {
  Played played = In(State::kRegistered);
  EXPECT_EQ(played.On(kNewerCame), Actions{kReportStandby});
  EXPECT_TRUE(played->standby());
  EXPECT_TRUE(played->registered());
  EXPECT_EQ(played.On(kStreamEnded), Actions()) << "the newer one's registration ends it";
  EXPECT_EQ(played->state(), State::kStandby);
  EXPECT_FALSE(played.Waits());
  EXPECT_EQ(played.On(kNewerLeft), Actions());
  EXPECT_FALSE(played->standby());
  ASSERT_TRUE(played.Due(kAttemptTime)) << "at once, whatever the pause was";
  EXPECT_EQ(played.On(kAttemptTime), Actions{kRegister});
}

TEST(RegistrationMachineTest, ANewerOneComesWhenTheStreamIsLost) {
  Played played = In(State::kRegistered);
  played.On(kStreamEnded);
  EXPECT_EQ(played.On(kNewerCame), Actions{kReportStandby});
  EXPECT_TRUE(played->standby());
  EXPECT_EQ(played->state(), State::kStandby);
}

TEST(RegistrationMachineTest, OnStandbyItRegistersWithANewKubelet) {
  Played played = In(State::kStandby);
  played.Came(kSecond);
  EXPECT_FALSE(played->standby()) << "until the newer one is seen again";
  EXPECT_EQ(played.On(kNewerCame), Actions{kReportStandby});
  EXPECT_TRUE(played->standby());
  ASSERT_TRUE(played.Due(kAttemptTime)) << "the newer one may never register there";
  EXPECT_EQ(played.On(kAttemptTime), Actions{kRegister});
  played.On(kRegisterFailed);
  EXPECT_EQ(played->state(), State::kUnregistered);
  played.WaitFor(kAttemptTime);
  played.On(kAttemptTime);
  EXPECT_EQ(played.On(kRegisterAnswered), Actions{kReportRegistered});
  EXPECT_EQ(played.On(kStreamEnded), Actions());
  EXPECT_EQ(played->state(), State::kStandby) << "this kubelet has the newer one";
}

TEST(RegistrationMachineTest, OnStandbyAServerIsReplaced) {
  Played played = In(State::kStandby);
  EXPECT_EQ(played.On(kSocketRemoved), (Actions{kReportRemoved, kStopServer}));
  EXPECT_TRUE(played->standby());
  played.WaitFor(kAttemptTime);
  played.On(kAttemptTime);
  played.On(kServed);
  EXPECT_EQ(played->state(), State::kStandby);
  // The new server is the newest one.
  played.On(kNewerLeft);
  EXPECT_TRUE(played.Due(kAttemptTime));
}

TEST(RegistrationMachineTest, ItRegistersAgainWhenAnOlderOneHasLeft) {
  Played played = In(State::kRegistered);
  EXPECT_EQ(played.On(kOlderLeft), Actions());
  EXPECT_EQ(played.Left(), kLeavePause) << "unless kubelet drops us before";
  played.Wait(kLeavePause / 2);
  played.On(kOlderLeft);
  EXPECT_EQ(played.Left(), kLeavePause / 2) << "a second one changes nothing";
  played.WaitFor(kRejoinTime);
  EXPECT_EQ(played.On(kRejoinTime), Actions{kReportOtherLeft});
  EXPECT_FALSE(played.Due(kRejoinTime));
  ASSERT_TRUE(played.Due(kAttemptTime));
  EXPECT_EQ(played.On(kAttemptTime), Actions{kRegister});
}

TEST(RegistrationMachineTest, ItDoesNotWaitOutAPauseWhenAnOlderOneHasLeft) {
  Played played = In(State::kUnregistered);
  while (played.Left() < kLeavePause * 2) {
    played.WaitFor(kAttemptTime);
    played.On(kAttemptTime);
    played.On(kRegisterFailed);
  }
  played.On(kOlderLeft);
  EXPECT_EQ(played.Left(), kLeavePause);
  played.WaitFor(kRejoinTime);
  EXPECT_FALSE(played.Due(kAttemptTime));
  EXPECT_EQ(played.On(kRejoinTime), Actions());
  EXPECT_TRUE(played.Due(kAttemptTime));
}

TEST(RegistrationMachineTest, AStreamLostBeforeExplainsThatAnOlderOneHasLeft) {
  for (const bool late : {false, true}) {
    Played played = In(State::kRegistered);
    played.On(kStreamEnded);
    played.WaitFor(kAttemptTime);
    played.On(kAttemptTime);
    played.On(kRegisterAnswered);
    played.On(kStreamOpened);
    played.Wait(late ? kLeaving : kLeaving / 2);
    played.On(kOlderLeft);
    EXPECT_EQ(played.Waits(), late);
  }
}

TEST(RegistrationMachineTest, SoDoesAStreamLostOnStandby) {
  for (const bool came : {false, true}) {
    Played played = In(State::kAwaitingStream);
    played.On(kNewerCame);
    if (came) played.On(kStreamOpened);
    if (!came) played.WaitFor(kStreamTime);
    EXPECT_EQ(played.On(came ? kStreamEnded : kStreamTime), Actions());
    played.On(kNewerLeft);
    played.On(kOlderLeft);
    EXPECT_FALSE(played.Due(kRejoinTime));
    played.On(kAttemptTime);
    played.On(kRegisterAnswered);
    played.On(kStreamOpened);
    played.On(kOlderLeft);
    EXPECT_FALSE(played.Waits()) << "explained";
  }
}

// The old kubelet's end explains that loss. The end of the older railheadd is still to be answered.
TEST(RegistrationMachineTest, AStreamOfTheOldKubeletExplainsNothing) {
  for (const bool settled : {false, true}) {
    Played played = In(State::kUnregistered);
    played.Came(kSecond);
    played.Wait(settled ? milliseconds(kKubeletSettles) + kTick : kTick);
    played.On(kAttemptTime);
    played.On(kRegisterAnswered);
    played.On(kStreamOpened);
    played.On(kStreamEnded);
    played.WaitFor(kAttemptTime);
    played.On(kAttemptTime);
    played.On(kRegisterAnswered);
    played.On(kStreamOpened);
    played.On(kOlderLeft);
    EXPECT_EQ(played.Waits(), !settled);
  }
}

TEST(RegistrationMachineTest, WhateverRegistersOrYieldsNeedsNoSecondRegistration) {
  for (const RegistrationEvent event : {kRegisterAnswered, kStreamEnded, kNewerCame, kNewerLeft}) {
    Played played = In(State::kRegistered);
    if (event == kRegisterAnswered) played = In(State::kUnregistered);
    played.On(kOlderLeft);
    if (event == kRegisterAnswered) played.On(kAttemptTime);
    played.On(event);
    played.Wait(kLeavePause);
    EXPECT_FALSE(played.Due(kRejoinTime)) << static_cast<int>(event);
  }
}

TEST(RegistrationMachineTest, OtherOptionsNeedAnotherServer) {
  Played played = In(State::kRegistered);
  EXPECT_EQ(played.On(kOptionsChanged, true), Actions{kStopServer});
  EXPECT_FALSE(played->registered());
  EXPECT_EQ(played.Left(), kFirstPause);
  played = In(State::kUnregistered);
  played.On(kAttemptTime);
  played.On(kRegisterFailed);
  const auto left = played.Left();
  played.On(kOptionsChanged);
  EXPECT_EQ(played.Left(), left) << "kubelet's refusal still counts";
}

}  // namespace
}  // namespace railhead::kubelet
