// SharedAnswer: one call to kubelet for all threads that wait for the same answer.
//
// A caller gets the answer of a call that began after its own Get(): a running one may not know its pod yet.
// So a burst of N costs two calls one after the other, not N. Threads: thread-safe; one of the waiting
// threads calls the source, one call at a time. Errors: those of the source.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "deviceplugin/services/kubelet/pod_resources.h"
#include "netns/base/mutex.h"
#include "netns/base/result.h"

namespace railhead::late_binding {

class SharedAnswer {
 public:
  using Answer = Result<std::vector<kubelet::AllocatedDevices>>;
  using Source = std::function<Answer()>;

  explicit SharedAnswer(Source source) : source_(std::move(source)) {}

  // false: it has no source.
  explicit operator bool() const { return source_ != nullptr; }

  Answer Get() {
    MutexLock lock(mutex_);
    const std::uint64_t wanted = begun_ + 1;
    while (ended_ < wanted) {
      if (begun_ != ended_) {
        changed_.wait(lock);
        continue;
      }
      ++begun_;
      lock.unlock();
      Answer answer = source_();
      lock.lock();
      latest_ = std::move(answer);
      ended_ = begun_;
      changed_.notify_all();
    }
    return latest_;
  }

 private:
  const Source source_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::uint64_t begun_ RH_GUARDED_BY(mutex_) = 0;
  std::uint64_t ended_ RH_GUARDED_BY(mutex_) = 0;
  Answer latest_ RH_GUARDED_BY(mutex_);
};

}  // namespace railhead::late_binding
