#include "tests/support/plugin/faults_fixture.h"

#include <sys/file.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>
#include <thread>

namespace railhead::testing {
namespace {

// The log's mark of a call that was made to fail.
constexpr const char* kInjected = "(injected)";

// The kernel drops the locks of a killed process; a parked thread keeps its own.
void DropLocks(const std::string& root) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const std::string target = std::filesystem::read_symlink(entry.path(), error);
    if (target.rfind(root, 0) == 0 && target.ends_with(".lock")) {
      (void)::flock(std::stoi(entry.path().filename()), LOCK_UN);
    }
  }
}

}  // namespace

std::pair<int, int> FaultsFixture::CountCalls(const Call& call, int least_add, int least_del) {
  const int first = kernel_.calls();
  const auto added = Add(call);
  EXPECT_TRUE(added) << Describe(added.error());
  const int second = kernel_.calls();
  EXPECT_TRUE(Del(call));
  const int third = kernel_.calls();
  EXPECT_GE(second - first, least_add) << "calls of ADD";
  EXPECT_GE(third - second, least_del) << "calls of DEL";
  return {second - first, third - second};
}

void FaultsFixture::FailAddEverywhere(const Call& call, FakeKernel::Fault fault, int least) {
  const auto before = World();
  const int calls = CountAdd(call, least);
  ASSERT_EQ(ChangedSince(before), "");
  for (int nth = 1; nth <= calls; ++nth) {
    kernel_.FailCall(nth, EIO, fault);
    const auto added = Add(call);
    const bool reached = kernel_.Log().find(kInjected) != std::string::npos;
    kernel_.StopFailing();
    SCOPED_TRACE("call " + std::to_string(nth) + ":\n" + kernel_.Log());
    ASSERT_TRUE(reached) << "nothing failed";
    if (added) {  // e.g. only an announcement failed: the attachment must be complete
      EXPECT_TRUE(Check(call));
      ASSERT_TRUE(Del(call));
    }
    ASSERT_EQ(ChangedSince(before), "") << (added ? "succeeded" : Describe(added.error()));
  }
}

void FaultsFixture::FailDelEverywhere(const Call& call, FakeKernel::Fault fault, int least) {
  const auto before = World();
  const int calls = CountDel(call, least);
  for (int nth = 1; nth <= calls; ++nth) {
    ASSERT_TRUE(Add(call));
    kernel_.FailCall(nth, EIO, fault);
    const auto deleted = Del(call);
    const bool reached = kernel_.Log().find(kInjected) != std::string::npos;
    kernel_.StopFailing();
    SCOPED_TRACE("call " + std::to_string(nth) + ":\n" + kernel_.Log());
    ASSERT_TRUE(reached) << "nothing failed";
    if (deleted) {
      ASSERT_EQ(ChangedSince(before), "") << "DEL succeeded";
      continue;
    }
    const auto again = Del(call);
    ASSERT_TRUE(again) << Describe(again.error());
    ASSERT_EQ(ChangedSince(before), "");
  }
}

bool FaultsFixture::Kill(const Call& call, int nth) {
  kernel_.ParkAt(nth);
  const auto done = std::make_shared<std::atomic<bool>>(false);
  const CniRequest request = Request(call);
  std::thread([this, request, done, add = call.command == "ADD"] {
    if (add) {
      (void)plugin_.Add(request);
    } else {
      (void)plugin_.Del(request);
    }
    *done = true;
  }).detach();
  const bool parked = kernel_.AwaitParked([&] { return done->load(); });
  DropLocks(sysfs_.directory());
  return parked;
}

}  // namespace railhead::testing
