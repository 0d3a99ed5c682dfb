// The thread of railheadd that tells the cluster of bad rails (isolator.h).
//
// It looks when it is woken, when a heartbeat is due, and again after what failed; it is never waited for.
// What is looked at says by which isolator it is told: with other settings, by another.
// Threads: its own one calls `look` and `report`; all else from any.
// Errors: none; what fails is reported and tried again.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "deviceplugin/services/node_status/node_status_writer.h"

namespace railhead {

struct IsolationStatus {
  IsolationCounts counts;
  std::optional<int> whole_rails;  // by the latest look; nullopt: none so far
};

struct IsolationTurn {
  std::shared_ptr<Isolator> isolator;  // nullptr: the cluster is told nothing, until Wake()
  Situation situation;
};

class IsolationLoop {
 public:
  // nullopt: nothing can be said yet, or another railheadd says it.
  using Look = std::function<std::optional<IsolationTurn>()>;
  using Report = std::function<void(const IsolationOutcome&)>;

  IsolationLoop(Look look, Report report);
  // Ends the thread; a request to the API is waited for.
  ~IsolationLoop();
  IsolationLoop(const IsolationLoop&) = delete;
  IsolationLoop& operator=(const IsolationLoop&) = delete;

  // Something may be different. Does not shorten the wait after a failure.
  void Wake();
  void Stop();
  // Whether the thread has ended.
  bool AwaitEnd(std::chrono::milliseconds limit);
  [[nodiscard]] IsolationStatus Status() const;

 private:
  void Loop();
  // How long to wait, and whether Wake() may end that.
  std::pair<std::chrono::milliseconds, bool> StepOnce();

  void Take(const IsolationTurn& turn);

  const Look look_;
  const Report report_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Isolator> isolator_;  // of the latest turn
  IsolationCounts earlier_;             // of those before it
  std::optional<int> whole_rails_;
  bool woken_ = false;
  bool stopped_ = false;
  bool ended_ = false;
  std::thread thread_;  // last: it uses all of the others
};

}  // namespace railhead
