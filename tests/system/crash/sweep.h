// The kill sweep: kills ADD and DEL before each of their system calls, in each of their processes. Then a
// later call has to clean up.
//
//   `add-del`: ADD killed; DEL.
//   `add-orphan`: ADD killed while its child has stopped before the call. DEL begins, and the child
//     continues only when DEL waits for it.
//   `add-again`: ADD killed; ADD of the same pod; DEL.
//   `add-late`: ADD killed; ADD of another pod. Then the late DEL of the first pod, which must not touch
//     the other pod; DEL of the other.
//   `add-alone`: ADD killed; a single pass of the reconciler.
//   `del-del`: DEL killed; DEL again.
//   `del-late`: DEL killed; then as `add-late`.
//   `del-alone`: DEL killed; a single pass of the reconciler.
//
// Two more need devices that survive the end of a namespace (hardware, not stand-ins):
//
//   `add-gone`: the pod's namespace is removed while ADD has stopped before the call; DEL.
//   `gone-del`: the namespace is removed after ADD; DEL killed; DEL again.
//
// Afterwards everything has to be as before, bit for bit (snapshot.h). After a killed call, ADD of a pod may
// be refused only while the attachment in its way is whole. For the reconciler alone, the sweep first removes
// the pod's namespace on hardware, since the reconciler goes by the namespace. Stand-ins would die with the
// namespace, so DEL removes a whole attachment there.
// Threads: one. The process must have called Adopt().
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "tests/system/crash/cni_calls.h"
#include "tests/system/crash/snapshot.h"
#include "tests/system/crash/tracer.h"

namespace railhead::crash {

enum class Variant : std::uint8_t {
  kAddDel,
  kAddOrphan,
  kAddAgain,
  kAddLate,
  kAddAlone,
  kDelDel,
  kDelLate,
  kDelAlone,
  kAddGone,
  kGoneDel,
};

inline constexpr Variant kVariants[] = {
    Variant::kAddDel, Variant::kAddOrphan, Variant::kAddAgain, Variant::kAddLate, Variant::kAddAlone,
    Variant::kDelDel, Variant::kDelLate,   Variant::kDelAlone, Variant::kAddGone, Variant::kGoneDel};
static_assert(std::size(kVariants) == static_cast<std::size_t>(Variant::kGoneDel) + 1);
const char* NameOf(Variant variant);
// The variants that need hardware, and those that need the reconciler.
bool NeedsHardware(Variant variant);
bool NeedsReconciler(Variant variant);

struct SweepSetting {
  World world;
  Pod pod;
  Pod other;
  bool hardware = false;                // devices come back from a namespace that dies
  std::vector<std::string> reconciler;  // a single pass, as a command; empty: none
  // Tries at least this share of all calls, and more until the time is over. At 100 it also tries calls
  // beyond those of an undisturbed run.
  double percent = 100;
  std::chrono::seconds time{0};
  std::uint64_t seed = 0;
  // A shell command that restores the first state for plugins whose DEL does not. Their exceptions are
  // counted and do not end the sweep. Empty: no command.
  std::string restore;
  // Requests that every DEL omits; the sweep has to find this.
  std::optional<Suppressed> planted;
};

struct Tally {
  int possible = 0;  // calls of an undisturbed run, all processes together
  int distinct = 0;  // of them: those after a call that may have changed something
  int tried = 0;
  int reached = 0;  // of them: the process got that far
  int refused = 0;  // ADDs that were refused because an attachment was whole
  int exceptions = 0;
  std::string first;  // exception, as text
};

class Sweep {
 public:
  Sweep(SweepSetting setting, CniCalls calls)
      : setting_(std::move(setting)), calls_(std::move(calls)), random_(setting_.seed) {}

  // An error: it could not continue, because an undisturbed run fails or a state could not be restored
  // (kConflict).
  Result<Tally> Run(Variant variant);

 private:
  Result<void> ReadBaseline();
  // The points of an undisturbed run in random order. A whole sweep adds one more for each process.
  Result<std::vector<CallPoint>> PointsOf(Variant variant);
  // Makes one try and handles its failure. false: the process did not reach the point.
  Result<bool> Try(Variant variant, const CallPoint& point);

  Result<void> Disturb(Variant variant, const CallPoint& point, TraceResult& disturbed);
  Result<void> MakeUp(Variant variant, const TraceResult& disturbed);
  Result<void> FinishLate();
  Result<void> FinishAlone();
  Result<void> FinishOrphan(pid_t frozen);
  // Whether the first pod's attachment exists and is complete.
  Result<bool> IsWhole();
  // false: ADD was rightly refused.
  Result<bool> AddUnlessWhole(const Pod& pod);
  Result<void> Must(const std::string& command, const Pod& pod);
  Result<TraceResult> AddUnannounced(const Pod& pod);
  Result<Snapshot> Settled();
  Result<void> ExpectBaseline();
  Result<void> RenewNetns();
  Result<void> Restore();
  Result<void> RestoreByCommand();

  SweepSetting setting_;
  CniCalls calls_;
  std::mt19937_64 random_;
  Snapshot baseline_;
  Tally tally_;
};

}  // namespace railhead::crash
