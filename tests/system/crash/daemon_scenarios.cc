// The scenarios during which railheadd is killed; see daemon_sweep.h.
#include <chrono>
#include <csignal>
#include <thread>

#include "cni/state/journal.h"
#include "tests/system/crash/daemon_check.h"
#include "tests/system/crash/daemon_sweep.h"

namespace railhead::crash {
namespace {

constexpr std::chrono::seconds kPatience{30};

Result<void> Nothing(DaemonNode& /*node*/) {
  return {};
}
Result<void> Ready(DaemonNode& node) {
  return node.AwaitReady();
}

Result<void> GiveOfBoth(DaemonNode& node) {
  RH_TRY(node.Allocate(kEarly, 2));
  return node.Allocate(kLate, 2);
}
Result<void> GiveThree(DaemonNode& node) {
  return node.Allocate(kEarly, 3);
}
Result<void> GiveNamed(DaemonNode& node) {
  return node.Allocate(kNamed, 2);
}

Result<void> AfterReboot(DaemonNode& node) {
  RH_TRY(node.StartDaemon());
  RH_TRY(node.AwaitReady());
  if (node.IsNamed()) {
    RH_TRY(GiveNamed(node));
  } else {
    RH_TRY(GiveOfBoth(node));
  }
  node.KillDaemon();
  return node.LoseRun();
}
Result<void> AfterRebootNamed(DaemonNode& node) {
  RH_TRY(node.ConfigureNamed());
  return AfterReboot(node);
}

Result<void> RestartKubelet(DaemonNode& node) {
  node.RestartKubelet();
  return node.AwaitReady();
}

// ---- late binding ----------------------------------------------------------------------

Result<void> Must(const DaemonNode& node, const std::string& command, const Pod& pod) {
  const auto done = RH_TRY(node.Cni(command, pod));
  if (done.Succeeded()) return {};
  return Fail(ErrorCode::kConflict, command + " of " + pod.id + " fails: " + done.output);
}

Result<void> GiveSlotsToBoth(DaemonNode& node) {
  RH_TRY(node.StartDaemon());
  RH_TRY(node.AwaitReady());
  RH_TRY(node.Allocate(kLate, 2));
  RH_TRY(node.Allocate(kLate, 2));
  node.KillDaemon();
  return node.WriteCheckpoint();
}

Result<void> AddBoth(DaemonNode& node) {
  Result<void> first;
  // railheadd may not have finished its first checks.
  const auto add = [&](const Pod& pod) {
    auto added = Must(node, "ADD", pod);
    while (!added && node.IsRunning()) added = Must(node, "ADD", pod);
    return added;
  };
  std::thread beside([&] { first = add(node.setting().first); });
  auto other = add(node.setting().other);
  beside.join();
  RH_TRY(first);
  return other;
}

Result<bool> IsAttached(const DaemonNode& node, const Pod& pod) {
  const auto entries = RH_TRY(Journal(node.root()).OfSandbox(pod.id));
  return entries.size() == 1 && entries.front().phase == Phase::kDone && entries.front().devices.size() == 2;
}

// Does what kubelet does: removes what failed and makes it again.
Result<void> AddUntilItWorks(const DaemonNode& node, const Pod& pod) {
  Result<void> added;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    if (RH_TRY(IsAttached(node, pod))) return {};
    RH_TRY(Must(node, "DEL", pod));
    added = Must(node, "ADD", pod);
  }
  return added;
}

Result<void> AddAgain(DaemonNode& node) {
  const Pod* pods[] = {&node.setting().first, &node.setting().other};
  for (const Pod* pod : pods) RH_TRY(AddUntilItWorks(node, *pod));
  RH_TRY_WRAP(CheckNode(node), "with both pods attached");
  for (const Given& given : node.given()) RH_TRY(node.kubelet().PreStart(given.resource, given.ids));
  for (const Pod* pod : pods) RH_TRY(Must(node, "DEL", *pod));
  const auto left = RH_TRY(Journal(node.root()).Scan()).entries;
  if (left.empty()) return {};
  return Fail(ErrorCode::kConflict, "after DEL there is still " + left.front().key.ToString());
}

// ---- the rest --------------------------------------------------------------------------

Result<void> LoseCarrier(DaemonNode& node) {
  const auto all = node.expected().at(kEarly);
  node.Expect(kEarly, {all.devices, 0});
  node.SetCarrier(false);
  node.Signal(SIGHUP);
  return node.AwaitReady();
}
Result<void> RegainCarrier(DaemonNode& node) {
  const auto all = node.expected().at(kEarly);
  node.Expect(kEarly, {all.devices, all.devices});
  node.SetCarrier(true);
  node.Signal(SIGHUP);
  return node.AwaitReady();
}

// An ADD that is killed after three quarters of its calls.
Result<void> KillAdd(DaemonNode& node) {
  RH_TRY(node.StartDaemon());
  RH_TRY(node.AwaitReady());
  RH_TRY(node.Allocate(kEarly, 1));
  RH_TRY(node.WriteCheckpoint());
  const Pod& pod = node.setting().first;
  Tracing counting;
  counting.count = true;
  const auto whole = RH_TRY(node.Cni("ADD", pod, counting));
  if (!whole.Succeeded()) return Fail(ErrorCode::kConflict, "an undisturbed ADD fails: " + whole.output);
  RH_TRY(Must(node, "DEL", pod));
  Tracing killing;
  killing.at = CallPoint{0, static_cast<int>(whole.processes.at(0).calls.size() * 3 / 4)};
  (void)RH_TRY(node.Cni("ADD", pod, killing));
  node.KillDaemon();
  if (RH_TRY(Journal(node.root()).OfSandbox(pod.id)).size() == 1) return {};
  return Fail(ErrorCode::kConflict, "the killed ADD has left no entry");
}

Result<void> AwaitRestore(DaemonNode& node) {
  RH_TRY(node.AwaitReady());
  return node.Await("the killed ADD's device to be on the host", [&] {
    const auto scan = Journal(node.root()).Scan();
    return scan && scan->entries.empty();
  });
}
Result<void> AddAndDel(DaemonNode& node) {
  RH_TRY(AwaitRestore(node));
  RH_TRY(Must(node, "ADD", node.setting().first));
  return Must(node, "DEL", node.setting().first);
}

Result<void> Reload(DaemonNode& node) {
  RH_TRY(node.Configure(kMore));
  node.Signal(SIGHUP);
  return node.AwaitReady();
}
Result<void> Follow(DaemonNode& node) {
  return node.Follow();
}
Result<void> FollowMore(DaemonNode& node) {
  RH_TRY(node.Configure(kMore));
  return node.AwaitReady();
}
Result<void> GiveMore(DaemonNode& node) {
  RH_TRY(node.Allocate(kMore, 2));
  return node.Allocate(kEarly, 2);
}

Result<void> Stop(DaemonNode& node) {
  node.Signal(SIGTERM);
  const int status = RH_TRY(node.AwaitEnd());
  if (status == 0) return {};
  return Fail(ErrorCode::kConflict, "SIGTERM ends it with status " + std::to_string(status));
}

}  // namespace

const std::vector<Scenario>& DaemonScenarios() {
  static const std::vector<Scenario> scenarios = {
      {"start", true, Nothing, Ready, GiveOfBoth},
      {"reboot", true, AfterReboot, Ready, GiveThree},
      {"named", true, AfterRebootNamed, GiveNamed, GiveNamed},
      {"register", false, Nothing, RestartKubelet, GiveThree},
      {"allocate", false, Nothing, GiveThree, GiveThree},
      {"bind", false, GiveSlotsToBoth, AddBoth, AddAgain},
      {"health", false, Nothing, LoseCarrier, RegainCarrier},
      {"reconcile", true, KillAdd, AwaitRestore, AddAndDel},
      {"reload", false, Nothing, Reload, GiveMore},
      {"follow", false, Follow, FollowMore, GiveMore},
      {"stop", false, Nothing, Stop, GiveOfBoth},
  };
  return scenarios;
}

}  // namespace railhead::crash
