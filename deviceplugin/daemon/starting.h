// Starting: answers for railheadd while something at its start takes long, before there is a
// Daemon.
//
// From the first Doing() on probes hear that it is alive and what it does instead of being ready,
// the service manager hears the same and gives it more time, as long as it is not stuck, and
// SIGTERM and SIGINT set the watch's stop. A start that has nothing long to do is not touched.
// Ownership: borrows pages, which may ask it until they have another handler. Threads: Doing()
// and End() on one; a thread of its own waits for signals, which are blocked in all.
// Errors: of the pages; they are no reason not to start.
#pragma once

#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <string>
#include <thread>

#include "deviceplugin/daemon/pages.h"
#include "deviceplugin/daemon/service.h"
#include "deviceplugin/services/provision/provisioner.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/worker/worker.h"

namespace railhead {

class Starting {
 public:
  Starting(const Notify::Environment& environment, Pages& pages, const sigset_t& signals, Log* log);
  Starting(const Starting&) = delete;
  Starting& operator=(const Starting&) = delete;
  ~Starting() { (void)End(); }

  // What tells this object, and is stopped by it.
  ApplyWatch Watch();
  // Signals are the caller's again. The one that has come meanwhile and ends the daemon; 0: none.
  int End();

 private:
  // Of one PF: locks that others hold, its drivers, and the undo of all of that. A thread that
  // has said nothing new for so long hangs.
  static constexpr std::chrono::minutes kLongestStep{20};
  static constexpr std::chrono::seconds kTellEvery{1};
  // Until the next word: for what follows a start that took long, too.
  static constexpr std::chrono::seconds kMoreTime{120};

  void Doing(const std::string& what);
  void Begin();
  void AwaitSignals();
  void Tell();
  [[nodiscard]] Readiness NotReady();
  HttpResponse Answer(const HttpRequest& request);

  Pages& pages_;
  const sigset_t signals_;
  Log* log_;
  Notify notify_;
  Heartbeats heartbeats_;
  std::mutex mutex_;
  std::string doing_;  // "": nothing yet
  std::atomic<bool> stop_{false};
  std::atomic<bool> ended_{false};
  std::atomic<int> signal_{0};
  std::thread thread_;
};

}  // namespace railhead
