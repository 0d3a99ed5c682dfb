#include "tests/system/crash/sweep.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "tests/system/crash/pod_netns.h"

namespace railhead::crash {
namespace {

constexpr auto kSweepOrphanLimit = std::chrono::seconds(120);
// How long the kernel's delayed work may take.
constexpr auto kSweepSettleLimit = std::chrono::milliseconds(10'000);
constexpr auto kPeerLimit = std::chrono::milliseconds(500);
constexpr auto kQuiet = std::chrono::milliseconds(200);
constexpr auto kSweepPoll = std::chrono::milliseconds(5);
constexpr const char* kWholeEntry = "\"done\"";

// Whether a process waits for a lock of ours. In /proc/locks, "12: -> FLOCK ADVISORY WRITE 4711 fe:01:12345 0
// EOF" is a process that waits for the file with inode 12345 (fs/locks.c, lock_get_status).
bool SomebodyWaits(const Root& root) {
  const std::string directory = paths::Lock(root, "").substr(0, paths::Lock(root, "").rfind('/'));
  std::set<std::string> inodes;
  const auto names = ListDirectory(directory);
  if (!names || !*names) return false;
  for (const std::string& name : **names) {
    struct stat status = {};
    if (::stat((directory + "/" + name).c_str(), &status) == 0) inodes.insert(std::to_string(status.st_ino));
  }
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    if (line.find("-> FLOCK") == std::string::npos) continue;
    std::istringstream words(line.substr(line.find("FLOCK")));
    std::string word;
    for (int i = 0; i < 5; ++i) words >> word;  // FLOCK ADVISORY WRITE PID DEVICE:INODE
    if (inodes.contains(word.substr(word.rfind(':') + 1))) return true;
  }
  return false;
}

bool DisturbsAdd(Variant variant) {
  switch (variant) {
    case Variant::kAddDel:
    case Variant::kAddOrphan:
    case Variant::kAddAgain:
    case Variant::kAddLate:
    case Variant::kAddAlone:
    case Variant::kAddGone:
      return true;
    case Variant::kDelDel:
    case Variant::kDelLate:
    case Variant::kDelAlone:
    case Variant::kGoneDel:
      break;
  }
  return false;
}

std::string Where(Variant variant, const CallPoint& point, const TraceResult& disturbed) {
  const auto process = static_cast<std::size_t>(point.process);
  std::string text = std::string(NameOf(variant)) + ": process " + std::to_string(point.process);
  if (process < disturbed.processes.size()) text += " (" + disturbed.processes[process].program + ")";
  text += disturbed.reached ? " at call " : " ended before call ";
  text += std::to_string(point.call);
  if (disturbed.reached) text += ", " + NameOfCall(disturbed.call);
  return text;
}

}  // namespace

const char* NameOf(Variant variant) {
  switch (variant) {
    case Variant::kAddDel:
      return "add-del";
    case Variant::kAddOrphan:
      return "add-orphan";
    case Variant::kAddAgain:
      return "add-again";
    case Variant::kAddLate:
      return "add-late";
    case Variant::kAddAlone:
      return "add-alone";
    case Variant::kDelDel:
      return "del-del";
    case Variant::kDelLate:
      return "del-late";
    case Variant::kDelAlone:
      return "del-alone";
    case Variant::kAddGone:
      return "add-gone";
    case Variant::kGoneDel:
      return "gone-del";
  }
  return "";
}

bool NeedsHardware(Variant variant) {
  return variant == Variant::kAddGone || variant == Variant::kGoneDel;
}

bool NeedsReconciler(Variant variant) {
  return variant == Variant::kAddAlone || variant == Variant::kDelAlone;
}

Result<Tally> Sweep::Run(Variant variant) {
  tally_ = {};
  RH_TRY_WRAP(ReadBaseline(), "the state before");
  std::vector<CallPoint> points = RH_TRY(PointsOf(variant));
  const auto start = std::chrono::steady_clock::now();
  for (const auto& point : points) {
    const bool enough = tally_.tried * 100.0 >= setting_.percent * tally_.possible;
    if (enough && std::chrono::steady_clock::now() - start >= setting_.time) break;
    (void)RH_TRY(Try(variant, point));
  }
  if (setting_.percent < 100) return tally_;
  // Runs have different lengths, since the plugin polls.
  std::map<int, int> last;
  for (const auto& point : points) last[point.process] = std::max(last[point.process], point.call);
  for (auto [process, call] : last) {
    while (RH_TRY(Try(variant, {process, ++call}))) {
    }
  }
  return tally_;
}

// Waits until the state is stable: the kernel still adds addresses to new links.
Result<void> Sweep::ReadBaseline() {
  const auto deadline = std::chrono::steady_clock::now() + kSweepSettleLimit;
  for (auto last = RH_TRY(Settled());; last = baseline_) {
    std::this_thread::sleep_for(kQuiet);
    baseline_ = RH_TRY(Settled());
    if (baseline_ == last) return {};
    if (std::chrono::steady_clock::now() >= deadline) {
      return Fail(ErrorCode::kTimeout, "it keeps changing by itself:\n" + Difference(last, baseline_));
    }
  }
}

// The very first ADD makes directories and the address store, so the second one is counted. This also shows
// that an undisturbed ADD and DEL work.
Result<std::vector<CallPoint>> Sweep::PointsOf(Variant variant) {
  Tracing counting;
  counting.count = true;
  TraceResult add;
  TraceResult del;
  for (int i = 0; i < 2; ++i) {
    add = RH_TRY(calls_.Call("ADD", setting_.pod, counting));
    if (!add.Succeeded()) return Fail(ErrorCode::kInvalid, "an undisturbed ADD fails: " + add.output);
    del = RH_TRY(calls_.Call("DEL", setting_.pod, counting));
    if (!del.Succeeded()) return Fail(ErrorCode::kInvalid, "an undisturbed DEL fails: " + del.output);
  }
  RH_TRY_WRAP(ExpectBaseline(), "after an undisturbed ADD and DEL");

  std::vector<CallPoint> distinct;
  std::vector<CallPoint> others;
  const auto& processes = (DisturbsAdd(variant) ? add : del).processes;
  const std::size_t first = variant == Variant::kAddOrphan ? 1 : 0;
  for (std::size_t process = first; process < processes.size(); ++process) {
    const auto& calls = processes[process].calls;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const bool changed = i > 0 && !OnlyLooks(calls[i - 1]);
      (changed ? distinct : others).push_back({static_cast<int>(process), static_cast<int>(i) + 1});
    }
  }
  tally_.distinct = static_cast<int>(distinct.size());
  tally_.possible = static_cast<int>(distinct.size() + others.size());
  std::shuffle(distinct.begin(), distinct.end(), random_);
  std::shuffle(others.begin(), others.end(), random_);
  // A sample tries the distinct states first.
  distinct.insert(distinct.end(), others.begin(), others.end());
  return distinct;
}

Result<bool> Sweep::Try(Variant variant, const CallPoint& point) {
  TraceResult disturbed;
  ++tally_.tried;
  auto done = Disturb(variant, point, disturbed);
  if (done) done = MakeUp(variant, disturbed);
  if (disturbed.reached) ++tally_.reached;
  if (done) return disturbed.reached;
  const std::string what = Where(variant, point, disturbed) + "\n" + Describe(done.error());
  if (++tally_.exceptions == 1) tally_.first = what;
  if (setting_.planted) return Fail(ErrorCode::kConflict, what);  // the sweep was to find this
  if (const auto restored = Restore(); !restored) {
    return Fail(ErrorCode::kConflict, what + "\nand no DEL restores it: " + Describe(restored.error()));
  }
  return disturbed.reached;
}

Result<void> Sweep::Disturb(Variant variant, const CallPoint& point, TraceResult& disturbed) {
  if (!DisturbsAdd(variant)) RH_TRY(Must("ADD", setting_.pod));
  if (variant == Variant::kGoneDel) RH_TRY(RemovePodNetns(setting_.pod.netns));
  Tracing tracing;
  tracing.at = point;
  tracing.orphan = variant == Variant::kAddOrphan;
  Result<void> removed;
  if (variant == Variant::kAddGone) {
    tracing.instead_of_kill = [&] { removed = RemovePodNetns(setting_.pod.netns); };
  }
  disturbed = RH_TRY(calls_.Call(DisturbsAdd(variant) ? "ADD" : "DEL", setting_.pod, tracing));
  return removed;
}

Result<void> Sweep::MakeUp(Variant variant, const TraceResult& disturbed) {
  if (disturbed.frozen != 0) RH_TRY(FinishOrphan(disturbed.frozen));
  if (variant == Variant::kAddLate || variant == Variant::kDelLate) return FinishLate();
  if (NeedsReconciler(variant)) return FinishAlone();
  if (variant == Variant::kAddAgain) RH_TRY(AddUnlessWhole(setting_.pod));
  RH_TRY(Must("DEL", setting_.pod));
  if (NeedsHardware(variant)) RH_TRY(RenewNetns());
  return ExpectBaseline();
}

Result<void> Sweep::FinishLate() {
  const bool taken = RH_TRY(AddUnlessWhole(setting_.other));
  const Snapshot before = RH_TRY(Settled());
  RH_TRY(Must("DEL", setting_.pod));
  if (taken) {
    const Snapshot after = RH_TRY(Settled());
    // DEL may remove only the first pod's lines.
    Snapshot kept;
    std::remove_copy_if(before.begin(), before.end(), std::back_inserter(kept), [&](const std::string& line) {
      return line.find(setting_.pod.id) != std::string::npos &&
             line.find(setting_.other.id) == std::string::npos &&
             !std::binary_search(after.begin(), after.end(), line);
    });
    const std::string difference = Difference(kept, after);
    if (!difference.empty()) {
      return Fail(ErrorCode::kConflict, "the late DEL touched the next pod:\n" + difference);
    }
  } else {
    RH_TRY(Must("ADD", setting_.other));
  }
  RH_TRY(Must("DEL", setting_.other));
  return ExpectBaseline();
}

// The child continues when DEL waits for one of our locks. A DEL that does not wait ends before that.
Result<void> Sweep::FinishOrphan(pid_t frozen) {
  std::atomic<bool> over{false};
  std::thread watcher([&] {
    while (!over && !SomebodyWaits(Root(calls_.plugin().root))) std::this_thread::sleep_for(kSweepPoll);
    (void)::kill(frozen, SIGCONT);
  });
  const auto deleted = calls_.Call("DEL", setting_.pod);
  over = true;
  watcher.join();
  RH_TRY(deleted);
  if (deleted->Succeeded()) return {};
  return Fail(ErrorCode::kConflict, "DEL beside a running child of ADD fails: " + deleted->output);
}

Result<void> Sweep::FinishAlone() {
  RH_TRY(AwaitOrphans(kSweepOrphanLimit));
  if (setting_.hardware) RH_TRY(RemovePodNetns(setting_.pod.netns));
  Command command;
  command.arguments = setting_.reconciler;
  command.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  if (!calls_.plugin().root.empty()) command.environment.push_back("RAILHEAD_ROOT=" + calls_.plugin().root);
  command.input = "";
  const auto done = RH_TRY(Trace(command, {}));
  if (!done.Succeeded()) return Fail(ErrorCode::kConflict, "the reconciler fails: " + done.output);
  if (setting_.hardware) RH_TRY(RenewNetns());
  if (!setting_.hardware && RH_TRY(IsWhole())) RH_TRY(Must("DEL", setting_.pod));
  return WithContext(ExpectBaseline(), "after the reconciler (" + done.output + ")");
}

Result<bool> Sweep::IsWhole() {
  for (const auto& line : RH_TRY(Settled())) {
    if (line.find("/attachments/" + setting_.pod.id + "/") != std::string::npos &&
        line.find(kWholeEntry) != std::string::npos) {
      return true;
    }
  }
  return false;
}

Result<bool> Sweep::AddUnlessWhole(const Pod& pod) {
  const bool whole = RH_TRY(IsWhole());
  const auto added = RH_TRY(AddUnannounced(pod));
  if (added.Succeeded()) return true;
  if (whole && ErrorCodeOf(added.output) != 0) {
    ++tally_.refused;
    return false;
  }
  return Fail(ErrorCode::kConflict, "ADD of " + pod.id + " fails: " + added.output);
}

// Each undisturbed ADD. A child that announces again would have to be waited for while the attachment stays.
Result<TraceResult> Sweep::AddUnannounced(const Pod& pod) {
  const std::string& config = calls_.plugin().config;
  return calls_.CallWith(config.substr(0, config.rfind('}')) + R"(, "announce": false })", "ADD", pod);
}

Result<void> Sweep::Must(const std::string& command, const Pod& pod) {
  Tracing tracing;
  tracing.suppressed = setting_.planted;
  const auto done = RH_TRY(command == "ADD" ? AddUnannounced(pod) : calls_.Call(command, pod, tracing));
  if (done.Succeeded()) return {};
  return Fail(ErrorCode::kConflict, command + " of " + pod.id + " fails: " + done.output);
}

Result<Snapshot> Sweep::Settled() {
  RH_TRY(AwaitOrphans(kSweepOrphanLimit));
  return TakeSnapshot(setting_.world);
}

Result<void> Sweep::ExpectBaseline() {
  // Another plugin may never reach the first state, so each wait for it is short.
  const auto limit = setting_.restore.empty() ? kSweepSettleLimit : kPeerLimit;
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const auto difference = Difference(baseline_, RH_TRY(Settled()));
    if (difference.empty()) return {};
    if (std::chrono::steady_clock::now() >= deadline) {
      return Fail(ErrorCode::kConflict, "the state is another one than before:\n" + difference);
    }
    std::this_thread::sleep_for(kSweepPoll);
  }
}

// Makes the namespace again, whether its name still exists or not.
Result<void> Sweep::RenewNetns() {
  if (Exists(setting_.pod.netns)) RH_TRY(RemovePodNetns(setting_.pod.netns));
  return MakePodNetns(setting_.pod.netns);
}

// Restores the state without the planted fault, so that the sweep can continue.
Result<void> Sweep::Restore() {
  if (!setting_.restore.empty()) return RestoreByCommand();
  for (const auto& pod : {setting_.pod, setting_.other}) {
    const auto deleted = RH_TRY(calls_.Call("DEL", pod));
    if (!deleted.Succeeded()) return Fail(ErrorCode::kConflict, "DEL of " + pod.id + ": " + deleted.output);
  }
  if (!Exists(setting_.pod.netns)) RH_TRY(RenewNetns());
  return ExpectBaseline();
}

Result<void> Sweep::RestoreByCommand() {
  const Command command{{"/bin/bash", "-c", setting_.restore}, {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, ""};
  const auto done = RH_TRY(Trace(command, {}));
  if (!done.Succeeded()) return Fail(ErrorCode::kConflict, "the command to restore it fails: " + done.output);
  return ExpectBaseline();
}

}  // namespace railhead::crash
