// Waiting for a condition, never for a time: machines are busy.
#pragma once

#include <chrono>
#include <thread>

namespace railhead::testing {

// Whether `condition` holds within two minutes; checks it every few milliseconds.
template <typename Condition>
bool Eventually(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace railhead::testing
