// PhaseClock: measures the phases of an ADD for its line in the log of attach timings (attach_log.h).
// Threads: none. Errors: none.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace railhead {

// Each phase begins where the one before ended, the first one at construction.
class PhaseClock {
 public:
  void Done(std::string phase) {
    const auto now = std::chrono::steady_clock::now();
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(now - since_);
    since_ = now;
    // A phase that another attempt repeats.
    for (auto& [name, so_far] : phases_) {
      if (name != phase) continue;
      so_far += took;
      return;
    }
    phases_.emplace_back(std::move(phase), took);
  }
  [[nodiscard]] const std::vector<std::pair<std::string, std::chrono::microseconds>>& phases() const {
    return phases_;
  }

 private:
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  std::vector<std::pair<std::string, std::chrono::microseconds>> phases_;
};

}  // namespace railhead
