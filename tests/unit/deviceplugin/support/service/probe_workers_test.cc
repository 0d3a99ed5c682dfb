#include "deviceplugin/support/service/probe_workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace railhead::testing {
namespace {

using std::chrono::milliseconds;

constexpr const char* kSick = "0000:43:00.0";
constexpr const char* kWell = "0000:83:00.0";

// A read that lasts until it is opened.
class Gate {
 public:
  auto Reading() {
    return [opened = opened_] {
      opened.wait();
      return 1;
    };
  }
  void Open() { open_.set_value(); }

 private:
  std::promise<void> open_;
  std::shared_future<void> opened_ = open_.get_future().share();
};

void ExpectNoAnswer(ProbeWorkers& workers) {
  const auto answer = workers.Ask(kSick, [] { return 2; });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(answer.error().message, "0000:43:00.0 does not answer");
}

TEST(ProbeWorkersTest, AnswersComeFromOneThreadPerDevice) {
  ProbeWorkers workers(std::chrono::minutes(5));
  const auto thread_of = [&](const char* device) {
    return workers.Ask(device, [] { return std::this_thread::get_id(); }).value();
  };
  const auto one = thread_of(kSick);
  const auto other = thread_of(kWell);
  EXPECT_NE(one, other);
  EXPECT_NE(one, std::this_thread::get_id());
  EXPECT_EQ(thread_of(kSick), one);
  EXPECT_EQ(thread_of(kWell), other);
}

TEST(ProbeWorkersTest, ADeviceThatHangsCostsOnlyItsOwnAnswers) {
  ProbeWorkers workers(milliseconds(50));
  Gate gate;
  EXPECT_FALSE(workers.Ask(kSick, gate.Reading()));
  // Its further reads do not even begin.
  ExpectNoAnswer(workers);
  // On a busy machine a read of another device may need more than one deadline.
  Result<int> well = Fail(ErrorCode::kTimeout, "not asked");
  while (!well && well.error().code == ErrorCode::kTimeout) well = workers.Ask(kWell, [] { return 3; });
  EXPECT_EQ(well, 3);
  ExpectNoAnswer(workers);
  gate.Open();
  Result<int> again = Fail(ErrorCode::kTimeout, "not asked");
  while (!again && again.error().code == ErrorCode::kTimeout) again = workers.Ask(kSick, [] { return 4; });
  EXPECT_EQ(again, 4) << "it answers again";
}

TEST(ProbeWorkersTest, TwoCallersOfADeviceTakeTurns) {
  ProbeWorkers workers(std::chrono::minutes(5));
  std::atomic<int> at_once{0};
  std::atomic<int> most{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int call = 0; call < 50; ++call) {
        const auto answer = workers.Ask(kWell, [&, call] {
          most = std::max(most.load(), ++at_once);
          --at_once;
          return call;
        });
        EXPECT_EQ(answer, call);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(most, 1);
}

// What a read that hangs uses lives as long as the read.
TEST(ProbeWorkersTest, NobodyWaitsForAReadThatHangs) {
  Gate gate;
  std::promise<std::string> read;
  auto result = read.get_future();
  {
    ProbeWorkers workers(milliseconds(1));
    const auto owned = std::make_shared<std::string>("owned by the read");
    EXPECT_FALSE(workers.Ask(kSick, [wait = gate.Reading(), owned, &read] {
      wait();
      read.set_value(*owned);
      return 1;
    }));
  }
  gate.Open();
  EXPECT_EQ(result.get(), "owned by the read");
}

TEST(ProbeWorkersTest, ADeviceThatComesBackIsAskedByAnotherThread) {
  ProbeWorkers workers(milliseconds(1));
  Gate gate;
  EXPECT_FALSE(workers.Ask(kSick, gate.Reading()));
  workers.KeepOnly({kWell});
  Result<int> again = Fail(ErrorCode::kTimeout, "not asked");
  while (!again && again.error().code == ErrorCode::kTimeout) again = workers.Ask(kSick, [] { return 4; });
  EXPECT_EQ(again, 4);
  gate.Open();
}

}  // namespace
}  // namespace railhead::testing
