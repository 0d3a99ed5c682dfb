// AnswerLimit: so many answers in a second and no more, whoever asks. Threads: one at a time.
#pragma once

#include <chrono>

namespace railhead {

class AnswerLimit {
 public:
  using Clock = std::chrono::steady_clock;

  explicit AnswerLimit(int most) : most_(most) {}

  bool May(Clock::time_point now) {
    if (now - second_ >= std::chrono::seconds(1)) {
      second_ = now;
      answers_ = 0;
    }
    return answers_++ < most_;
  }

 private:
  const int most_;
  Clock::time_point second_;  // of which `answers_` were given
  int answers_ = 0;
};

}  // namespace railhead
