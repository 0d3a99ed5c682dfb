// Supervisor: starts the services of railheadd, finds those that are stuck, and stops them.
//
// All services are constructed before the first one runs. Those that serve kubelet start at once. All others
// need the node for themselves: they start when no other railheadd of the node has a lock, which this one
// then keeps. During an update, the other one is the one that is about to end. Ownership: owns services,
// workers and threads. What the services borrow outlives it. Threads: FindStuck() and Failure() from any, all
// others on one. Errors: kIo without free descriptors, kLimited without threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "deviceplugin/support/metrics/metric_registry.h"
#include "deviceplugin/support/service/service.h"
#include "deviceplugin/support/service/worker.h"
#include "netns/base/mutex.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/base/state_folder.h"

namespace railhead {

class Supervisor {
 public:
  enum class Start : std::uint8_t { kAtOnce, kAlone };

  struct Stuck {
    std::string_view service;
    std::string at;  // what it is busy at
    bool operator==(const Stuck&) const = default;
  };

  // `lock`: the file that one railheadd of the node has locked, in a folder of the state. `failed` is called
  // by the thread of the first service that cannot go on.
  Supervisor(Root root, const std::string& lock, std::function<void()> failed)
      : root_(std::move(root)), lock_path_(root_.Path(lock)), failed_(std::move(failed)) {}
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  // Waits for all services. A process that cannot wait so long uses AwaitEnd() and ends.
  ~Supervisor();

  template <typename S>
  S& Add(std::unique_ptr<S> service, Start start) {
    S& added = *service;
    members_.push_back({std::move(service), start, nullptr, {}, {}});
    return added;
  }
  // The services' metrics, and railhead_thread_alive.
  void Register(MetricRegistry& metrics);

  // Starts what serves kubelet.
  Result<void> StartAll();
  // Starts the others if the lock is free. false: it is not; call it again, as after an error.
  Result<bool> StartOthers();

  [[nodiscard]] std::vector<Stuck> FindStuck(Worker::Clock::time_point now = Worker::Clock::now()) const;
  // Of the first service that cannot go on.
  [[nodiscard]] std::optional<Error> Failure() const;

  void RequestStop();
  // The names of the services whose threads have not ended by `deadline`.
  std::vector<std::string_view> AwaitEnd(Worker::Clock::time_point deadline);

 private:
  struct Member {
    std::unique_ptr<Service> service;
    Start start;
    std::unique_ptr<Worker> worker;
    std::future<void> ended;  // valid once it runs
    std::thread thread;
  };

  Result<void> StartGroup(Start start);
  Result<void> StartOne(Member* member);
  void NoteFailure(const Error& error);

  const Root root_;
  const std::string lock_path_;
  const std::function<void()> failed_;
  std::optional<FileLock> lock_;
  bool others_run_ = false;
  std::vector<Member> members_;  // complete before the first thread

  mutable Mutex mutex_;
  std::optional<Error> failure_ RH_GUARDED_BY(mutex_);
};

}  // namespace railhead
