// Published: one immutable value, which one part of railheadd makes and others read.
//
// A worker that has subscribed is woken by each new value. It finds the newest one, and may miss others.
// Ownership: shares the value; a worker's end ends its subscription. Threads: thread-safe. Get() never waits
// for a writer's work.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "deviceplugin/support/service/worker.h"
#include "netns/base/mutex.h"

namespace railhead {

template <typename T>
class Published {
 public:
  Published() = default;
  explicit Published(T first) : value_(std::make_shared<const T>(std::move(first))) {}

  // Never nullptr: a default value before the first Set(). Two pointers are equal if nothing came between.
  [[nodiscard]] std::shared_ptr<const T> Get() const {
    const MutexLock lock(mutex_);
    return value_;
  }
  void Set(T value) {
    auto next = std::make_shared<const T>(std::move(value));
    const MutexLock lock(mutex_);
    value_.swap(next);
    std::erase_if(subscribers_, [](const auto& subscriber) {
      const auto waker = subscriber.lock();
      if (waker) waker->Wake();
      return !waker;
    });
  }
  void Subscribe(Worker& worker) const {
    const MutexLock lock(mutex_);
    subscribers_.push_back(worker.waker());
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const T> value_ RH_GUARDED_BY(mutex_) = std::make_shared<const T>();
  mutable std::vector<std::weak_ptr<const Worker::Waker>> subscribers_ RH_GUARDED_BY(mutex_);
};

}  // namespace railhead
