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
  // Waits for another installer.
  static Result<InstallDirectory> Open(const std::string& path);

  [[nodiscard]] std::string PathOf(std::string_view name) const;
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

// Puts programs of ours into a directory of the host: those that the container runtime starts, or railctl.
//
// Without `force`, a newer program on the host stays. A node may be updated in two ways. During an update of
// the DaemonSet the older of two pods may start last. Either both programs are replaced, or none. A running
// program keeps its old file; the next ADD runs the new one. Threads: one; waits for children. Errors:
// kNotFound for a missing directory or program of `from`, kInvalid for a program that does not run, kConflict
// when the host's is newer.

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
  std::optional<std::string> previous;  // nullopt: none before, or without a version

  static void List(auto& f) {
    f("name", &InstalledProgram::name, {.column = "PROGRAM"});
    f("outcome", &InstalledProgram::outcome, {.column = "WHAT"});
    f("version", &InstalledProgram::version, {.column = "VERSION"});
    f("previous", &InstalledProgram::previous, {.column = "BEFORE"});
  }
};

Result<std::vector<InstalledProgram>> InstallPrograms(const ProgramOrder& order);

// Versions as "MAJOR.MINOR.PATCH[-PRERELEASE][+BUILD]", and the version that a program prints.
//
// Order: https://semver.org, version 2.0.0, section 11. The part behind '+' does not count.
// Threads: ParseVersion and the order are pure; AskVersion waits for a child.

struct Version {
  std::array<std::int64_t, 3> numbers{};
  std::vector<std::string> prerelease;

  std::weak_ordering operator<=>(const Version& other) const;
  bool operator==(const Version& other) const = default;
};

std::optional<Version> ParseVersion(std::string_view text);

// The version in the output of `PATH --version`, as Railhead's programs print it. The first word must be
// `name`, the second one a version. Otherwise nullopt: for a missing, truncated or differently named program.
// So, too, for one that does not end within `limit`, which is then killed.
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
