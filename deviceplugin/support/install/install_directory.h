// A directory of the host into which files are installed. A reader sees each file either as before or as
// after, even if the power fails.
//
// Only one installer works at a time. While the object lives, the directory is locked with flock(2). The lock
// is on the directory itself, so it needs no file. A file that was read is still the same when it is
// replaced. Other files are not touched. Files are replaced by rename, never written to, so a running process
// keeps its old file.
// Threads: one. Errors: kNotFound when the directory does not exist.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/unique_fd.h"
#include "netns/json/record.h"

namespace railhead::install {

// An installer needs a second or two, mostly for fsync(2).
inline constexpr std::chrono::seconds kInstallerLimit{30};

struct FileToInstall {
  std::string name;
  std::string content;
};

enum class InstallOutcome : std::uint8_t {
  kInstalled,  // the file did not exist
  kReplaced,
  kUnchanged,  // it was the same already
};

struct InstalledFile {
  std::string name;
  InstallOutcome outcome = InstallOutcome::kUnchanged;

  static void List(auto& f) {
    f("name", &InstalledFile::name, {.column = "FILE"});
    f("outcome", &InstalledFile::outcome, {.column = "WHAT"});
  }
};

class InstallDirectory {
 public:
  // Waits for another installer. kTimeout when it still works after `limit`.
  static Result<InstallDirectory> Open(const std::string& path,
                                       std::chrono::milliseconds limit = kInstallerLimit);

  [[nodiscard]] std::string PathOf(std::string_view name) const;
  // Takes from group and others the right to write to the directory, unless it has the sticky bit, and to the
  // files of these names that are there and are root's or ours. Returns the paths that were changed.
  [[nodiscard]] Result<std::vector<std::string>> TakeFromOthers(const std::vector<std::string>& names) const;
  // Replaces each file in one step, once all of them are on the disk. A file with the same content and mode
  // stays. After an error some files may be replaced, but each one is complete.
  [[nodiscard]] Result<std::vector<InstalledFile>> Put(const std::vector<FileToInstall>& files,
                                                       mode_t mode) const;

 private:
  InstallDirectory(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  [[nodiscard]] Result<InstallOutcome> Compare(const FileToInstall& file, mode_t mode) const;

  std::string path_;
  UniqueFd lock_;
};

// Larger than any Railhead program, sanitizers included.
inline constexpr std::size_t kMaxInstalledSize = std::size_t{512} << 20;

}  // namespace railhead::install

template <>
struct railhead::Names<railhead::install::InstallOutcome> {
  using Outcome = install::InstallOutcome;
  static constexpr std::array kAll = {std::pair{"installed", Outcome::kInstalled},
                                      std::pair{"replaced", Outcome::kReplaced},
                                      std::pair{"unchanged", Outcome::kUnchanged}};
};
