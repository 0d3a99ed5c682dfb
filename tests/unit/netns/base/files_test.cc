// Files that are replaced in one step, by many writers, some of which are killed.
#include "netns/base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <thread>
#include <vector>

#include "netns/base/root_file.h"
#include "netns/base/unique_fd.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

class WriteAtomicTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string Content() const { return ReadFileAt(path_); }

  void SetUp() override { ASSERT_TRUE(MakeDirectories(directory_)); }

  const TempRoot temp_{TempRoot::Where::kMemory};
  const std::string directory_ = temp_.directory() + "/state";
  const std::string path_ = directory_ + "/file";
  const std::string half_ = path_ + std::string(kTemporarySuffix);
};

TEST_F(WriteAtomicTest, ReplacesAndSetsTheMode) {
  ASSERT_TRUE(WriteAtomic(path_, "first, and longer", Sync::kDurable, 0644));
  ASSERT_TRUE(WriteAtomic(path_, "second", Sync::kVolatile, 0640));
  EXPECT_EQ(Content(), "second");
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
  EXPECT_EQ(FilesBelow(directory_), std::vector<std::string>{"file"});
}

TEST_F(WriteAtomicTest, TakesOverWhatAKilledWriterLeft) {
  WriteFileAt(half_, "half of something longer than what follows");
  ASSERT_TRUE(WriteAtomic(path_, "whole", Sync::kVolatile));
  EXPECT_EQ(Content(), "whole");
  EXPECT_FALSE(Exists(half_));
}

TEST_F(WriteAtomicTest, FailureLeavesNothing) {
  ASSERT_TRUE(MakeDirectories(path_));
  EXPECT_FALSE(WriteAtomic(path_, "a directory is there", Sync::kVolatile));
  EXPECT_FALSE(Exists(half_));
}

TEST_F(WriteAtomicTest, SeveralAtOnceInAnyOrder) {
  ASSERT_TRUE(WriteAtomic(path_, "before", Sync::kVolatile));
  const std::string other = temp_.directory() + "/other";
  ASSERT_TRUE(MakeDirectories(other));
  ASSERT_TRUE(
      WriteAllAtomic({{path_ + "2", "two"}, {other + "/3", "three"}, {path_, "one"}}, Sync::kDurable));
  EXPECT_EQ(Content(), "one");
  EXPECT_EQ(ReadFileAt(path_ + "2"), "two");
  EXPECT_EQ(ReadFileAt(other + "/3"), "three");
  EXPECT_EQ(FilesBelow(directory_), (std::vector<std::string>{"file", "file2"}));
  EXPECT_TRUE(WriteAllAtomic({}, Sync::kDurable));
}

TEST_F(WriteAtomicTest, OfSeveralNoneIsReplacedWhenOneCannotBeWritten) {
  ASSERT_TRUE(WriteAtomic(path_, "before", Sync::kVolatile));
  const auto written =
      WriteAllAtomic({{path_, "after"}, {directory_ + "/not/there", "text"}}, Sync::kVolatile);
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("not/there"), std::string::npos) << written.error().message;
  EXPECT_EQ(Content(), "before");
  EXPECT_EQ(FilesBelow(directory_), std::vector<std::string>{"file"});
}

TEST_F(WriteAtomicTest, FollowsNoLinkSomeoneMade) {
  WriteFileAt(directory_ + "/victim", "mine");
  ASSERT_EQ(::symlink("victim", half_.c_str()), 0);
  EXPECT_FALSE(WriteAtomic(path_, "text", Sync::kVolatile));
  EXPECT_EQ(ReadFileAt(directory_ + "/victim"), "mine");
}

// A writer that waited for another one must not write into what that one has renamed.
TEST_F(WriteAtomicTest, WaitsForAnotherWriterAndMakesAFileOfItsOwn) {
  auto other = UniqueFd(::open(half_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(other.valid());
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  std::atomic<bool> written = false;
  std::thread writer([&] {
    EXPECT_TRUE(WriteAtomic(path_, "later", Sync::kVolatile));
    written = true;
  });
  ASSERT_EQ(::write(other.get(), "earlier", 7), 7);
  EXPECT_FALSE(written);
  const std::string elsewhere = directory_ + "/renamed";
  ASSERT_EQ(::rename(half_.c_str(), elsewhere.c_str()), 0);
  other.Reset();
  writer.join();
  EXPECT_EQ(ReadFileAt(elsewhere), "earlier");
  EXPECT_EQ(Content(), "later");
}

TEST_F(WriteAtomicTest, ManyWritersNeverMix) {
  std::vector<std::thread> writers;
  for (char letter = 'a'; letter < 'e'; ++letter) {
    writers.emplace_back([&, letter] {
      for (int i = 0; i < 200; ++i) {
        EXPECT_TRUE(WriteAtomic(path_, std::string(100 + letter, letter), Sync::kVolatile));
        const std::string seen = Content();
        ASSERT_FALSE(seen.empty());
        EXPECT_EQ(seen, std::string(100 + seen[0], seen[0]));
      }
    });
  }
  for (auto& writer : writers) writer.join();
  EXPECT_FALSE(Exists(half_));
}

TEST_F(WriteAtomicTest, RemovedWholeOrHalf) {
  EXPECT_EQ(*RemoveWritten(path_), false);
  WriteFileAt(half_, "half");
  EXPECT_EQ(*RemoveWritten(path_), true);
  WriteFileAt(path_, "whole");
  WriteFileAt(half_, "half");
  EXPECT_EQ(*RemoveWritten(path_), true);
  EXPECT_TRUE(FilesBelow(directory_).empty());
}

class ReadRootFileTest : public WriteAtomicTest {
 protected:
  [[nodiscard]] std::string Refusal() const {
    const auto text = ReadRootFile(path_);
    return text ? "" : Describe(text.error());
  }
};

TEST_F(ReadRootFileTest, ReadsRegularFilesAlsoThroughALink) {
  EXPECT_EQ(ReadRootFile(path_).value(), std::nullopt);
  WriteFileAt(directory_ + "/target", "text");
  ASSERT_EQ(::symlink("target", path_.c_str()), 0);
  EXPECT_EQ(ReadRootFile(path_).value(), "text");
  EXPECT_FALSE(ReadRootFile(path_, 3));
}

// To open a FIFO without a reader makes a waiting writer go on, and to open a watchdog starts it.
TEST_F(ReadRootFileTest, OpensNoPipeNoDeviceAndNoDirectory) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const UniqueFd events(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  ASSERT_GE(::inotify_add_watch(events.get(), path_.c_str(), IN_OPEN), 0);
  EXPECT_NE(Refusal().find("is not a regular file"), std::string::npos) << Refusal();
  char event = 0;
  EXPECT_EQ(::read(events.get(), &event, 1), -1);
  EXPECT_EQ(errno, EAGAIN) << "it was opened";
  for (const char* other : {"/dev/null", "/proc"}) {
    ASSERT_EQ(::unlink(path_.c_str()), 0);
    ASSERT_EQ(::symlink(other, path_.c_str()), 0);
    EXPECT_NE(Refusal().find("is not a regular file"), std::string::npos) << other << ": " << Refusal();
  }
}

TEST_F(ReadRootFileTest, RefusesAFileOfAnotherUser) {
  WriteFileAt(path_, "text");
  if (::chown(path_.c_str(), 4711, 0) != 0) GTEST_SKIP() << "this user cannot give files away";
  EXPECT_NE(Refusal().find("belongs to user 4711"), std::string::npos) << Refusal();
}

TEST_F(ReadRootFileTest, RefusesAFolderOfAnotherUser) {
  WriteFileAt(path_, "text");
  if (::chown(directory_.c_str(), 4711, 0) != 0) GTEST_SKIP() << "this user cannot give folders away";
  EXPECT_NE(Refusal().find(path_ + ": its folder " + directory_ + " belongs to user 4711"), std::string::npos)
      << Refusal();
}

// All modes of `path` for group and others. Each is refused if they may write, with the mode and the command,
// unless `more` has the sticky bit.
class ModesTest : public ReadRootFileTest {
 protected:
  void TryModes(const std::string& path, mode_t owner, mode_t more) const {
    for (mode_t others = 0; others <= 0077; ++others) {
      const mode_t mode = owner | more | others;
      ASSERT_EQ(::chmod(path.c_str(), mode), 0);
      const std::string refusal = Refusal();
      if ((mode & 0022) == 0 || (more & S_ISVTX) != 0) {
        EXPECT_EQ(refusal, "") << path;
        continue;
      }
      std::array<char, 8> octal{};
      (void)std::snprintf(octal.data(), octal.size(), "%04o", static_cast<unsigned>(mode));
      EXPECT_NE(refusal.find(path + " may be written to by others than root (mode " + octal.data() + ")"),
                std::string::npos)
          << refusal;
      EXPECT_NE(refusal.find("chmod go-w " + path + ","), std::string::npos) << refusal;
      EXPECT_EQ(OpenRootFile(path_).has_value(), false);
      EXPECT_EQ(CheckRootFile(path_).has_value(), false);
    }
    ASSERT_EQ(::chmod(path.c_str(), owner), 0);
    EXPECT_EQ(Refusal(), "") << "the command repairs it";
  }
};

TEST_F(ModesTest, OfTheFile) {
  WriteFileAt(path_, "text");
  for (const mode_t owner : {0400U, 0600U, 0700U}) TryModes(path_, owner, 0);
}

TEST_F(ModesTest, OfItsFolder) {
  WriteFileAt(path_, "text");
  for (const mode_t more : {0U, static_cast<unsigned>(S_ISGID), static_cast<unsigned>(S_ISVTX)})
    TryModes(directory_, 0700, more);
}

// Who can remove the file can make the folder look as without one.
TEST_F(ModesTest, OfTheFolderOfAnAbsentFile) {
  TryModes(directory_, 0700, 0);
  ASSERT_EQ(::rmdir(directory_.c_str()), 0);
  EXPECT_EQ(ReadRootFile(path_).value(), std::nullopt);
}

// As kubelet mounts a ConfigMap: name -> ..data/name, ..data -> ..2026.
class VolumeTest : public ModesTest {
 protected:
  void SetUp() override {
    ModesTest::SetUp();
    ASSERT_TRUE(MakeDirectories(real_));
    WriteFileAt(real_ + "/file", "text");
    ASSERT_EQ(::symlink("..2026", (directory_ + "/..data").c_str()), 0);
    ASSERT_EQ(::symlink("..data/file", path_.c_str()), 0);
  }
  [[nodiscard]] bool VolumeIsRead() const { return ReadVolumeFile(path_).value_or(std::nullopt) == "text"; }
  const std::string real_ = directory_ + "/..2026";
};

TEST_F(VolumeTest, TheFolderOfTheLinkCounts) {
  TryModes(directory_, 0700, 0);
  TryModes(real_, 0700, 0);
}

TEST_F(VolumeTest, TheFolderOfTheLinkDoesNotCountForAVolume) {
  ASSERT_EQ(::chmod(directory_.c_str(), 0777), 0);
  EXPECT_NE(Refusal(), "");
  EXPECT_TRUE(VolumeIsRead());
  EXPECT_TRUE(CheckVolumeFile(path_));
  ASSERT_EQ(::chmod(real_.c_str(), 0777), 0);
  EXPECT_FALSE(VolumeIsRead()) << "others can replace the file";
  EXPECT_FALSE(CheckVolumeFile(path_));
  ASSERT_EQ(::chmod(real_.c_str(), 0755), 0);
  ASSERT_EQ(::chmod((real_ + "/file").c_str(), 0646), 0);
  EXPECT_FALSE(VolumeIsRead()) << "others can change the file";
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  WriteFileAt(path_, "text");
  EXPECT_FALSE(VolumeIsRead()) << "no link";
}

}  // namespace
}  // namespace railhead::testing
