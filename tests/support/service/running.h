// Running: a service on a thread of its own, as the Supervisor runs it. Its end stops the service.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <utility>

#include "deviceplugin/support/service/service.h"
#include "deviceplugin/support/service/worker.h"

namespace railhead::testing {

template <typename S>
class Running {
 public:
  Running() = default;
  explicit Running(std::unique_ptr<S> service) : service_(std::move(service)) {
    auto worker = Worker::Make();
    if (!worker) {
      ADD_FAILURE() << Describe(worker.error());
      return;
    }
    worker_ = *std::move(worker);
    ended_ = std::async(std::launch::async,
                        [service = service_.get(), worker = worker_.get()] { return service->Run(*worker); });
  }
  Running(Running&&) = default;
  Running& operator=(Running&& other) {
    Stop();
    service_ = std::move(other.service_);
    worker_ = std::move(other.worker_);
    ended_ = std::move(other.ended_);
    return *this;
  }
  ~Running() { Stop(); }

  [[nodiscard]] bool IsEmpty() const { return service_ == nullptr; }
  S* operator->() const { return service_.get(); }
  S& operator*() const { return *service_; }
  [[nodiscard]] Worker& worker() const { return *worker_; }

  void RequestStop() { worker_->RequestStop(); }
  // Whether it ends within `limit`.
  bool AwaitEnd(std::chrono::milliseconds limit) {
    return ended_.wait_for(limit) == std::future_status::ready;
  }
  // Waits for its end.
  void Stop() {
    if (!ended_.valid()) return;
    worker_->RequestStop();
    const auto ran = ended_.get();
    EXPECT_TRUE(ran) << Describe(ran.error());
  }

 private:
  std::unique_ptr<S> service_;
  std::unique_ptr<Worker> worker_;
  std::future<Result<void>> ended_;
};

template <typename S, typename... Arguments>
Running<S> RunService(Arguments&&... arguments) {
  return Running<S>(std::make_unique<S>(std::forward<Arguments>(arguments)...));
}

}  // namespace railhead::testing
