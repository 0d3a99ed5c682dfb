// Published: one immutable value, which one part of railheadd makes and others read.
// Threads: thread-safe. Get() never waits for a writer's work.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace railhead {

template <typename T>
class Published {
 public:
  // Never nullptr: a default value before the first Set(). Two pointers are equal if nothing came between.
  [[nodiscard]] std::shared_ptr<const T> Get() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }
  void Set(T value) {
    auto next = std::make_shared<const T>(std::move(value));
    const std::lock_guard lock(mutex_);
    value_.swap(next);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const T> value_ = std::make_shared<const T>();
};

}  // namespace railhead
