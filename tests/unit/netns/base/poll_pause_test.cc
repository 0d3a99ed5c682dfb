#include "netns/base/poll_pause.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

namespace railhead {
namespace {

using namespace std::chrono_literals;

TEST(PollPause, SeesSoonWhatComesSoon) {
  PollPause pause;
  EXPECT_EQ(pause.After(0ms), 1ms);
  EXPECT_EQ(pause.After(1ms), 2ms);
  EXPECT_EQ(pause.After(3ms), 4ms);
  EXPECT_EQ(pause.After(7ms), 8ms);
  EXPECT_EQ(pause.After(15ms), 16ms);
  EXPECT_EQ(pause.After(31ms), 20ms);
  EXPECT_EQ(pause.After(320ms), 20ms);
}

TEST(PollPause, WhoWaitsForLongLooksSeldom) {
  // 20 s at 20 ms were a thousand looks.
  PollPause pause;
  auto waited = 0ms;
  int looks = 0;
  for (; waited < 20s; ++looks) {
    const auto next = pause.After(waited);
    EXPECT_LE(next, 250ms);
    EXPECT_LE(next, std::max<PollPause::Duration>(20ms, waited / 16)) << "after " << waited.count() << " ms";
    waited += next;
  }
  EXPECT_LT(looks, 150);
}

}  // namespace
}  // namespace railhead
