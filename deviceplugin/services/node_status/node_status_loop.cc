#include "deviceplugin/services/node_status/node_status_loop.h"

#include <utility>

namespace railhead {
namespace {

// What changes together is told together.
constexpr std::chrono::milliseconds kSettling{500};
constexpr std::chrono::milliseconds kNotYet{2000};
constexpr std::chrono::hours kOff{1};

IsolationCounts Sum(const IsolationCounts& a, const IsolationCounts& b) {
  return {a.calls + b.calls, a.failed_steps + b.failed_steps, a.events_told + b.events_told,
          a.events_limited + b.events_limited, a.events_failed + b.events_failed};
}

}  // namespace

IsolationLoop::IsolationLoop(Look look, Report report)
    : look_(std::move(look)), report_(std::move(report)), thread_([this] { Loop(); }) {}

IsolationLoop::~IsolationLoop() {
  Stop();
  thread_.join();
}

void IsolationLoop::Wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

void IsolationLoop::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

bool IsolationLoop::AwaitEnd(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return ended_; });
}

IsolationStatus IsolationLoop::Status() const {
  const std::lock_guard lock(mutex_);
  return {isolator_ ? Sum(earlier_, isolator_->Counts()) : earlier_, whole_rails_};
}

void IsolationLoop::Take(const IsolationTurn& turn) {
  const std::lock_guard lock(mutex_);
  if (isolator_ && isolator_ != turn.isolator) earlier_ = Sum(earlier_, isolator_->Counts());
  isolator_ = turn.isolator;
  whole_rails_.reset();
  if (isolator_) whole_rails_ = WholeRails(turn.situation.rails);
}

std::pair<std::chrono::milliseconds, bool> IsolationLoop::StepOnce() {
  const auto turn = look_();
  if (!turn) return {kNotYet, true};
  Take(*turn);
  if (!turn->isolator) return {kOff, true};
  const IsolationOutcome outcome = turn->isolator->Step(turn->situation, std::chrono::steady_clock::now(),
                                                        std::chrono::system_clock::now());
  report_(outcome);
  return {outcome.wait, !outcome.problem};
}

void IsolationLoop::Loop() {
  while (true) {
    const auto [wait, may_wake] = StepOnce();
    std::unique_lock lock(mutex_);
    const bool wakes = may_wake;
    changed_.wait_for(lock, wait, [&] { return stopped_ || (wakes && woken_); });
    if (woken_ && wakes) changed_.wait_for(lock, kSettling, [this] { return stopped_; });
    woken_ = false;
    if (!stopped_) continue;
    ended_ = true;
    changed_.notify_all();
    return;
  }
}

}  // namespace railhead
