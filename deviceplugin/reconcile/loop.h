// The reconciler's thread: a pass at once, then one every interval, give or take a fifth
// (so that the nodes of a cluster do not do it all at the same moment).
//
// Ownership: borrows the reconciler. Threads: its own one calls `report`; Stop() and the
// waits from any other.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <random>
#include <thread>

#include "deviceplugin/reconcile/reconciler.h"

namespace railhead {

class ReconcileLoop {
 public:
  using Report = std::function<void(const ReconcileReport&)>;

  ReconcileLoop(Reconciler& reconciler, std::chrono::seconds interval, Report report);
  // Ends the thread, however long its step takes.
  ~ReconcileLoop();
  ReconcileLoop(const ReconcileLoop&) = delete;
  ReconcileLoop& operator=(const ReconcileLoop&) = delete;

  // true when the first pass is over, false at the limit or when stopped before.
  bool AwaitFirst(std::chrono::milliseconds limit);
  // The pass that runs ends before its next step.
  void Stop();
  // Whether the thread has ended.
  bool AwaitEnd(std::chrono::milliseconds limit);

 private:
  void Loop();
  std::chrono::milliseconds Pause();

  Reconciler& reconciler_;
  const std::chrono::seconds interval_;
  const Report report_;
  std::minstd_rand random_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool first_over_ = false;
  bool stopped_ = false;
  bool ended_ = false;
  std::thread thread_;  // last: it uses all of the others
};

}  // namespace railhead
