#include "deviceplugin/support/service/supervisor.h"

#include <pthread.h>

#include <algorithm>
#include <system_error>

#include "netns/base/mutex.h"

namespace railhead {

Supervisor::~Supervisor() {
  RequestStop();
  for (Member& member : members_) {
    if (member.thread.joinable()) member.thread.join();
  }
}

void Supervisor::Register(MetricRegistry& metrics) {
  for (const Member& member : members_) member.service->Register(metrics);
  metrics.Add(MetricType::kGauge, "railhead_thread_alive", "1 while this thread of railheadd makes progress",
              [this](Exposition& page) {
                for (const Member& member : members_) {
                  if (member.worker == nullptr) continue;
                  page.Sample({{"thread", member.service->name()}},
                              std::uint64_t{member.worker->StuckAt() ? 0U : 1U});
                }
              });
}

Result<void> Supervisor::StartAll() {
  for (Member& member : members_)
    member.worker = RH_TRY_WRAP(Worker::Make(), "starting " + std::string(member.service->name()));
  return StartGroup(Start::kAtOnce);
}

Result<bool> Supervisor::StartOthers() {
  if (others_run_) return true;
  if (!lock_) {
    RH_TRY(MakeStateFolderOf(root_, lock_path_));
    auto lock = FileLock::Acquire(lock_path_, std::chrono::milliseconds(0));
    if (!lock && lock.error().code == ErrorCode::kTimeout) return false;
    if (!lock) return Fail(std::move(lock.error()));
    lock_.emplace(*std::move(lock));
  }
  RH_TRY(StartGroup(Start::kAlone));
  others_run_ = true;
  return true;
}

Result<void> Supervisor::StartGroup(Start start) {
  for (Member& member : members_) {
    if (member.start == start && !member.thread.joinable()) RH_TRY(StartOne(&member));
  }
  return {};
}

Result<void> Supervisor::StartOne(Member* member) {
  const std::string name(member->service->name());
  std::promise<void> ended;
  member->ended = ended.get_future();
  try {
    member->thread = std::thread([this, member, ended = std::move(ended)]() mutable {
      member->worker->Busy(Worker::kLongestStep, "its start");
      if (const auto ran = member->service->Run(*member->worker); !ran) NoteFailure(ran.error());
      member->worker->Busy(std::chrono::hours(24 * 365), "nothing: it has ended");
      ended.set_value();
    });
  } catch (const std::system_error& error) {
    member->ended = {};
    return Fail(ErrorCode::kLimited, "starting a thread for " + name + ": " + error.what(),
                "raise the limit of threads (pids.max of the cgroup, kernel.threads-max)");
  }
  (void)::pthread_setname_np(member->thread.native_handle(), name.c_str());
  return {};
}

void Supervisor::NoteFailure(const Error& error) {
  {
    const MutexLock lock(mutex_);
    if (failure_) return;
    failure_ = error;
  }
  failed_();
}

std::optional<Error> Supervisor::Failure() const {
  const MutexLock lock(mutex_);
  return failure_;
}

std::vector<Supervisor::Stuck> Supervisor::FindStuck(Worker::Clock::time_point now) const {
  std::vector<Stuck> stuck;
  for (const Member& member : members_) {
    if (member.worker == nullptr) continue;
    if (auto at = member.worker->StuckAt(now)) stuck.push_back({member.service->name(), *std::move(at)});
  }
  return stuck;
}

void Supervisor::RequestStop() {
  for (const Member& member : members_) {
    if (member.worker != nullptr) member.worker->RequestStop();
  }
}

std::vector<std::string_view> Supervisor::AwaitEnd(Worker::Clock::time_point deadline) {
  std::vector<std::string_view> late;
  for (Member& member : members_) {
    const bool runs = member.ended.valid();
    if (runs && member.ended.wait_until(deadline) != std::future_status::ready)
      late.push_back(member.service->name());
  }
  return late;
}

}  // namespace railhead
