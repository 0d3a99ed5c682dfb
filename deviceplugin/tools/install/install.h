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

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/unique_fd.h"
#include "netns/json/record.h"

namespace railhead::install {

struct FileToInstall {
  std::string name;
  std::string content;
};

enum class InstallOutcome : std::uint8_t {
  kInstalled,  // there was none
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

// Puts the programs that the container runtime starts into its directory of CNI plugins.
//
// A program that says it is newer than ours is not replaced without `force`: a node may be
// updated by two hands, and during an update of the DaemonSet the older of two pods may be the one
// that starts last. Both programs or none: nothing is written when one of them may not be.
// What runs goes on with the file that it has; the next ADD runs the new one.
// Threads: one; waits for children. Errors: kNotFound for a directory or a program of ours that is
// not there, kInvalid for one that does not run, kConflict when the host's is newer.

struct ProgramOrder {
  std::string from;  // directory
  std::string to;    // directory
  std::vector<std::string> names{"railhead", "railhead-ipam"};
  bool force = false;
};

struct InstalledProgram {
  std::string name;
  InstallOutcome outcome = InstallOutcome::kUnchanged;
  std::string version;
  std::optional<std::string> previous;  // nullopt: there was none, or none that tells its version

  static void List(auto& f) {
    f("name", &InstalledProgram::name, {.column = "PROGRAM"});
    f("outcome", &InstalledProgram::outcome, {.column = "WHAT"});
    f("version", &InstalledProgram::version, {.column = "VERSION"});
    f("previous", &InstalledProgram::previous, {.column = "BEFORE"});
  }
};

Result<std::vector<InstalledProgram>> InstallPrograms(const ProgramOrder& order);

// Versions as "MAJOR.MINOR.PATCH[-PRERELEASE][+BUILD]", and what a program says its version is.
//
// Order: https://semver.org, version 2.0.0, section 11; what is behind '+' does not count.
// Threads: ParseVersion and the order are pure; AskVersion waits for a child.

struct Version {
  std::array<std::int64_t, 3> numbers{};
  std::vector<std::string> prerelease;

  std::weak_ordering operator<=>(const Version& other) const;
  bool operator==(const Version& other) const = default;
};

std::optional<Version> ParseVersion(std::string_view text);

// The second word that `PATH --version` prints, when the first one is `name` and it is a version:
// of the programs of Railhead. nullopt for everything else: no program at all, one cut short, one
// of another name, one that does not end within `limit` (it is killed then).
std::optional<std::string> AskVersion(const std::string& path, std::string_view name,
                                      std::chrono::milliseconds limit);

}  // namespace railhead::install

template <>
struct railhead::Names<railhead::install::InstallOutcome> {
  using Outcome = install::InstallOutcome;
  static constexpr std::array kAll = {std::pair{"installed", Outcome::kInstalled},
                                      std::pair{"replaced", Outcome::kReplaced},
                                      std::pair{"unchanged", Outcome::kUnchanged}};
};
