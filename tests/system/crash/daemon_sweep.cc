#include "tests/system/crash/daemon_sweep.h"

#include <algorithm>
#include <csignal>
#include <numeric>
#include <thread>
#include <utility>

#include "netns/base/files.h"
#include "tests/system/crash/daemon_check.h"

namespace railhead::crash {
namespace {

using Clock = std::chrono::steady_clock;

// How long nothing must change until an action counts as done.
constexpr std::chrono::milliseconds kQuiet{150};
constexpr std::chrono::milliseconds kSweepPoll{5};
constexpr std::chrono::seconds kQuietLimit{10};

}  // namespace

bool DaemonSweep::Kill::operator()(const Change& change) {
  if (!armed || done) return false;
  if (++seen != at) return false;
  what = change.what;
  done = true;
  return true;
}

Result<DaemonTally> DaemonSweep::Run(const Scenario& scenario, double percent, std::chrono::seconds time) {
  DaemonTally tally;
  Kill none;
  RH_TRY_WRAP(Disturb(scenario, &none), std::string(scenario.name) + ", undisturbed");
  RH_TRY_WRAP(Recover(scenario, false), std::string(scenario.name) + ", started again");
  tally.possible = none.seen;
  std::vector<int> points(static_cast<std::size_t>(tally.possible));
  std::iota(points.begin(), points.end(), 1);
  std::shuffle(points.begin(), points.end(), random_);
  const auto start = Clock::now();
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool enough = tally.tried * 100.0 >= percent * tally.possible;
    if (enough && Clock::now() - start >= time) break;
    ++tally.tried;
    const DaemonTry done = Try(scenario, points[i]);
    const bool killed = !done.before.empty();
    tally.killed += killed ? 1 : 0;
    // Runs have different lengths, so tries one more change.
    if (percent >= 100 && killed && i + 1 == points.size())
      points.push_back(*std::max_element(points.begin(), points.end()) + 1);
    if (done.outcome || ++tally.exceptions > 1) continue;
    tally.first = std::string(scenario.name) + ": change " + std::to_string(done.at) + ", " +
                  (killed ? "killed before " + done.before : "not reached") + "\n" +
                  Describe(done.outcome.error());
  }
  return tally;
}

DaemonTry DaemonSweep::Try(const Scenario& scenario, int at) {
  const auto start = Clock::now();
  Kill kill;
  kill.at = at;
  DaemonTry done;
  done.at = at;
  done.outcome = Disturb(scenario, &kill);
  if (done.outcome) done.outcome = Recover(scenario, kill.done);
  if (kill.done) done.before = kill.what;
  done.took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
  watch_(done);
  return done;
}

Result<void> DaemonSweep::Disturb(const Scenario& scenario, Kill* kill) {
  RH_TRY(node_.Reset());
  RH_TRY_WRAP(scenario.prepare(node_), "preparing");
  kill->armed = scenario.from_start;
  RH_TRY(node_.StartDaemon([kill](const Change& change) { return (*kill)(change); }));
  auto acted = node_.AwaitReady();
  if (!scenario.from_start) {
    RH_TRY(acted);
    kill->armed = true;
    acted = scenario.act(node_);
  } else if (acted) {
    acted = scenario.act(node_);
  }
  if (kill->done) return {};  // the kill may have made the action fail
  RH_TRY(acted);
  const auto deadline = Clock::now() + kQuietLimit;
  int before = kill->seen;
  for (auto last = Clock::now(); Clock::now() < last + kQuiet && Clock::now() < deadline;) {
    std::this_thread::sleep_for(kSweepPoll);
    if (std::exchange(before, kill->seen) != kill->seen) last = Clock::now();
  }
  return {};
}

Result<void> DaemonSweep::Recover(const Scenario& scenario, bool killed) {
  node_.KillDaemon();
  node_.LetAnHourPass();
  RH_TRY(node_.StartDaemon());
  RH_TRY_WRAP(node_.AwaitReady(), killed ? "started again after the kill" : "started again");
  RH_TRY_WRAP(CheckNode(node_), "started again");
  RH_TRY_WRAP(scenario.again(node_), "doing it again");
  RH_TRY_WRAP(CheckNode(node_), "after doing it again");
  return Finish();
}

Result<void> DaemonSweep::Finish() {
  node_.Signal(SIGTERM);
  const int status = RH_TRY(node_.AwaitEnd());
  if (status != 0) {
    return Fail(ErrorCode::kConflict,
                "SIGTERM ends it with status " + std::to_string(status) + "\n" + node_.EndOfLog());
  }
  const auto names = RH_TRY(ListDirectory(node_.KubeletDirectory()));
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    if (name.starts_with("railhead-")) return Fail(ErrorCode::kConflict, "it leaves " + name + " behind");
  }
  return {};
}

}  // namespace railhead::crash
