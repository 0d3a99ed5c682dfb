#include "deviceplugin/support/service/probe_workers.h"

#include <condition_variable>
#include <cstdint>
#include <system_error>
#include <thread>

#include "netns/base/mutex.h"

namespace railhead {

// One thread, which holds it, too. So it lives as long as a read that hangs.
class ProbeWorkers::Worker {
 public:
  static Result<std::shared_ptr<Worker>> Start() {
    auto worker = std::make_shared<Worker>();
    try {
      std::thread([worker] { worker->Loop(); }).detach();
    } catch (const std::system_error& error) {
      return Fail(ErrorCode::kLimited, std::string("starting a thread: ") + error.what());
    }
    return worker;
  }

  // One caller at a time: another one waits for its turn within its own deadline.
  Result<void> Run(const std::string& device, std::function<void()> read, std::chrono::milliseconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    MutexLock lock(mutex_);
    if (hangs_ || !changed_.wait_until(lock, deadline, [this]() RH_REQUIRES(mutex_) { return !read_; }))
      return Late(device);
    read_ = std::move(read);
    const auto number = ++begun_;
    changed_.notify_all();
    if (changed_.wait_until(lock, deadline, [&]() RH_REQUIRES(mutex_) { return ended_ >= number; }))
      return {};
    hangs_ = true;
    return Late(device);
  }

  void End() {
    const MutexLock lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }

 private:
  // Without a time, so that the same fault has the same text.
  static tl::unexpected<Error> Late(const std::string& device) {
    return Fail(ErrorCode::kTimeout, device + " does not answer");
  }

  void Loop() {
    MutexLock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this]() RH_REQUIRES(mutex_) { return over_ || read_; });
      if (!read_) return;
      const auto read = read_;
      lock.unlock();
      read();
      lock.lock();
      read_ = nullptr;
      hangs_ = false;
      ++ended_;
      changed_.notify_all();
    }
  }

  Mutex mutex_;
  std::condition_variable_any changed_;
  std::function<void()> read_ RH_GUARDED_BY(mutex_);
  bool hangs_ RH_GUARDED_BY(mutex_) = false;
  std::uint64_t begun_ RH_GUARDED_BY(mutex_) = 0;
  std::uint64_t ended_ RH_GUARDED_BY(mutex_) = 0;
  bool over_ RH_GUARDED_BY(mutex_) = false;
};

ProbeWorkers::~ProbeWorkers() {
  for (const auto& [device, worker] : workers_) worker->End();
}

Result<std::shared_ptr<ProbeWorkers::Worker>> ProbeWorkers::WorkerOf(const std::string& device) {
  const MutexLock lock(mutex_);
  if (const auto known = workers_.find(device); known != workers_.end()) return known->second;
  auto worker = RH_TRY(Worker::Start());
  workers_.emplace(device, worker);
  return worker;
}

Result<void> ProbeWorkers::Run(const std::string& device, std::function<void()> read) {
  const auto worker = RH_TRY(WorkerOf(device));
  return worker->Run(device, std::move(read), longest_answer_);
}

void ProbeWorkers::KeepOnly(const std::set<std::string>& devices) {
  const MutexLock lock(mutex_);
  std::erase_if(workers_, [&](const auto& one) {
    if (devices.contains(one.first)) return false;
    one.second->End();
    return true;
  });
}

}  // namespace railhead
