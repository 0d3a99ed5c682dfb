#include "deviceplugin/services/health/rate_window.h"

#include <algorithm>
#include <limits>

namespace railhead::health {
namespace {

constexpr int kSteps = 30;

std::uint64_t SaturatingSum(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t sum = a + b;
  return sum < a ? std::numeric_limits<std::uint64_t>::max() : sum;
}

}  // namespace

RateWindow::RateWindow(std::chrono::seconds window)
    : window_(window), step_(std::chrono::steady_clock::duration(window) / kSteps) {}

void RateWindow::Read(std::uint64_t value, Time now) {
  if (last_ && value > *last_) Add(value - *last_, now);
  last_ = value;
}

void RateWindow::Add(std::uint64_t rises, Time when) {
  const auto old = std::remove_if(steps_.begin(), steps_.end(),
                                  [&](const Step& step) { return step.start + window_ <= when; });
  steps_.erase(old, steps_.end());
  if (!steps_.empty() && when < steps_.back().start + step_) {
    steps_.back().rises = SaturatingSum(steps_.back().rises, rises);
    return;
  }
  steps_.push_back({when, rises});
}

std::uint64_t RateWindow::Sum(Time now) const {
  std::uint64_t sum = 0;
  for (const Step& step : steps_) {
    if (step.start + window_ > now) sum = SaturatingSum(sum, step.rises);
  }
  return sum;
}

}  // namespace railhead::health
