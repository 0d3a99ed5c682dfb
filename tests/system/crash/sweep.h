// The kill sweep: ADD and DEL killed before each of their system calls, in each of their
// processes, and what makes up for it.
//
//   add-del     ADD killed; DEL
//   add-orphan  ADD killed while a child of it stands before the call; DEL begins, and the
//               child goes on only when DEL waits for it
//   add-again   ADD killed; ADD of the same pod; DEL
//   add-late    ADD killed; ADD of another pod, then the late DEL of the first, which must
//               not touch the other's; DEL of the other
//   add-alone   ADD killed; a single pass of the reconciler
//   del-del     DEL killed; DEL again
//   del-late    DEL killed; then as add-late
//   del-alone   DEL killed; a single pass of the reconciler
// and on devices that come back from a namespace that dies (hardware, not stand-ins):
//   add-gone    the pod's namespace is removed while ADD stands before the call; DEL
//   gone-del    the namespace is removed after ADD; DEL killed; DEL again
//
// Afterwards everything has to be as before, bit for bit (snapshot.h). ADD of a pod after
// a killed call may be refused only while the attachment that is in its way is whole. The
// reconciler alone: on hardware the pod's namespace is removed before, since that is what
// it goes by; stand-ins would die with it, so there a whole attachment is left to DEL.
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
// Those that need hardware's devices, and those that need the reconciler.
bool NeedsHardware(Variant variant);
bool NeedsReconciler(Variant variant);

struct SweepSetting {
  World world;
  Pod pod;
  Pod other;
  bool hardware = false;                // devices come back from a namespace that dies
  std::vector<std::string> reconciler;  // a single pass, as a command; empty: none
  // Of all calls at least this share, and more until the time is over. At 100 also
  // those that an undisturbed run has not.
  double percent = 100;
  std::chrono::seconds time{0};
  std::uint64_t seed = 0;
  // Makes the first state again where no DEL does it: for other plugins, whose exceptions
  // are counted and do not end the sweep. A shell's command; empty: none.
  std::string restore;
  // Requests that every DEL leaves out: the sweep has to find it.
  std::optional<Suppressed> planted;
};

struct Tally {
  int possible = 0;  // calls of an undisturbed run, all processes together
  int distinct = 0;  // of them: those behind a call that can have changed something
  int tried = 0;
  int reached = 0;  // of them: the process came that far
  int refused = 0;  // ADDs that were refused because an attachment was whole
  int exceptions = 0;
  std::string first;  // exception, as text
};

class Sweep {
 public:
  Sweep(SweepSetting setting, CniCalls calls)
      : setting_(std::move(setting)), calls_(std::move(calls)), random_(setting_.seed) {}

  // An error: it could not go on, because something is broken from the start or a state
  // could not be restored (kConflict).
  Result<Tally> Run(Variant variant);

 private:
  Result<void> ReadBaseline();
  // The points of an undisturbed run in random order; behind them, for a whole sweep, one
  // more for each process.
  Result<std::vector<CallPoint>> PointsOf(Variant variant);
  // One try and all that follows from its failure; false: its point was not reached.
  Result<bool> Try(Variant variant, const CallPoint& point);

  Result<void> Disturb(Variant variant, const CallPoint& point, TraceResult& disturbed);
  Result<void> MakeUp(Variant variant, const TraceResult& disturbed);
  Result<void> FinishLate();
  Result<void> FinishAlone();
  Result<void> FinishOrphan(pid_t frozen);
  // Whether the first pod's attachment is there and finished.
  Result<bool> IsWhole();
  // false: refused, rightly.
  Result<bool> AddUnlessWhole(const Pod& pod);
  Result<void> Must(const std::string& command, const Pod& pod);
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
