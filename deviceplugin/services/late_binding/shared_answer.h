// SharedAnswer: one call to kubelet for all who wait for the same answer.
//
// Whoever asks gets the answer of a call that began after he asked: one that is under way may not know his
// pod yet. So a burst of N costs two calls one after the other, not N. Threads: thread-safe; `ask` is called
// by one of those who wait, one call at a time. Errors: those of `ask`.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "deviceplugin/services/kubelet/pod_resources.h"
#include "netns/base/result.h"

namespace railhead {

class SharedAnswer {
 public:
  using Answer = Result<std::vector<GivenDevices>>;
  using Ask = std::function<Answer()>;

  explicit SharedAnswer(Ask ask) : ask_(std::move(ask)) {}

  // false: there is nobody to ask.
  explicit operator bool() const { return ask_ != nullptr; }

  Answer Get() {
    std::unique_lock lock(mutex_);
    const std::uint64_t wanted = begun_ + 1;
    while (ended_ < wanted) {
      if (begun_ != ended_) {
        changed_.wait(lock);
        continue;
      }
      ++begun_;
      lock.unlock();
      Answer answer = ask_();
      lock.lock();
      latest_ = std::move(answer);
      ended_ = begun_;
      changed_.notify_all();
    }
    return latest_;
  }

 private:
  const Ask ask_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t begun_ = 0;
  std::uint64_t ended_ = 0;
  Answer latest_;
};

}  // namespace railhead
