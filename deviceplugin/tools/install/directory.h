// A directory of the host that files are put into: whoever reads it sees each file as it was
// before or as it is after, also when the power is lost.
//
// One installer at a time: the directory is locked while the object lives (flock(2) on the directory
// itself, so that no file of ours is left in it), and what has been read there is still so when it
// is replaced. Others' files are not touched. A process that runs a replaced file goes on with what
// it has: files are replaced by rename, never written to.
// Threads: one. Errors: kNotFound when there is no such directory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/unique_fd.h"

namespace railhead {

struct FileToInstall {
  std::string name;
  std::string content;
};

enum class InstallOutcome : std::uint8_t {
  kInstalled,  // there was none
  kReplaced,
  kUnchanged,  // it was the same already
};
// "installed", "replaced", "unchanged"
std::string_view NameOf(InstallOutcome outcome);

struct InstalledFile {
  std::string name;
  InstallOutcome outcome = InstallOutcome::kUnchanged;
};

class InstallDirectory {
 public:
  // Waits for another installer.
  static Result<InstallDirectory> Open(const std::string& path);

  [[nodiscard]] std::string PathOf(std::string_view name) const;
  // Each is replaced in one step, when all of them are on the disk; what is the same already, its mode
  // included, is left alone. After an error some may be replaced, and none is half.
  [[nodiscard]] Result<std::vector<InstalledFile>> Put(const std::vector<FileToInstall>& files,
                                                       mode_t mode) const;

 private:
  InstallDirectory(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  [[nodiscard]] Result<InstallOutcome> Compare(const FileToInstall& file, mode_t mode) const;

  std::string path_;
  UniqueFd lock_;
};

// Larger than any program of ours, sanitizers included.
inline constexpr std::size_t kMaxInstalledSize = std::size_t{512} << 20;

}  // namespace railhead
