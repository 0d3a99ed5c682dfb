#include "netns/base/state_folder.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace railhead::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

class FileLockTest : public ::testing::Test {
 protected:
  FileLockTest() {
    std::string directory = std::filesystem::temp_directory_path() / "file-lock-XXXXXX";
    directory_ = ::mkdtemp(directory.data());
    path_ = directory_ + "/lock";
  }
  ~FileLockTest() override { std::filesystem::remove_all(directory_); }

  // Counts waiting lines of /proc/locks: "12: -> FLOCK  ADVISORY  WRITE 4711 fe:01:12345 0 EOF".
  [[nodiscard]] long Waiting() const {
    struct stat status = {};
    if (::stat(path_.c_str(), &status) != 0) return 0;
    const std::string inode = ":" + std::to_string(status.st_ino) + " ";
    std::ifstream locks("/proc/locks");
    long count = 0;
    for (std::string line; std::getline(locks, line);) {
      if (line.find("->") != std::string::npos && line.find(inode) != std::string::npos) ++count;
    }
    return count;
  }

  std::string directory_;
  std::string path_;
};

TEST_F(FileLockTest, WaitersGetItInTheirOrder) {
  constexpr int kWaiters = 8;
  auto first = std::make_optional(*FileLock::Acquire(path_, minutes(1)));
  std::mutex mutex;
  std::vector<int> order;
  std::vector<std::thread> threads;
  for (int i = 0; i < kWaiters; ++i) {
    threads.emplace_back([&, i] {
      const auto lock = FileLock::Acquire(path_, minutes(1));
      ASSERT_TRUE(lock) << Describe(lock.error());
      const std::lock_guard guard(mutex);
      order.push_back(i);
    });
    while (Waiting() != i + 1) std::this_thread::yield();
  }
  first.reset();
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(order.size(), static_cast<std::size_t>(kWaiters));
}

TEST_F(FileLockTest, GivesUp) {
  const auto first = FileLock::Acquire(path_, minutes(1));
  for (const milliseconds limit : {milliseconds(0), milliseconds(1), milliseconds(50)}) {
    const auto start = std::chrono::steady_clock::now();
    const auto second = FileLock::Acquire(path_, limit);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kTimeout);
    EXPECT_NE(second.error().message.find(path_), std::string::npos);
    EXPECT_GE(std::chrono::steady_clock::now() - start, limit);
  }
}

// Like a daemon in which one thread receives all signals.
TEST_F(FileLockTest, GivesUpWithSignalsBlocked) {
  const auto first = FileLock::Acquire(path_, minutes(1));
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  EXPECT_FALSE(FileLock::Acquire(path_, milliseconds(20)));
  sigset_t after;
  ::pthread_sigmask(SIG_SETMASK, &before, &after);
  EXPECT_EQ(::sigismember(&after, SIGRTMAX - 1), 1) << "the mask is as it was";
}

}  // namespace
}  // namespace railhead::testing
