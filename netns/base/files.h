// Small files, whole: sysfs attributes, configuration, state.
//
// Reading: absence is a value. Writing: WriteAtomic replaces a file in one step (temporary file beside it,
// then rename). So a reader or a crash sees the old content or the new one, never a part. The temporary file
// is PATH.new, locked by its writer, and found without listing the directory. If a writer was killed, the
// next writer overwrites its temporary file, or RemoveWritten removes the file. Sync::kDurable adds fsync of
// the file and its directory: needed under /var/lib, useless on tmpfs.
// Threads: all functions are thread-safe; two writers of one path follow one another, and the last one wins.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/unique_fd.h"

namespace railhead {

enum class Sync { kVolatile, kDurable };

inline constexpr std::size_t kMaxFileSize = std::size_t{4} << 20;

// nullopt when the file (or its directory) does not exist. A file larger than
// `max_size` is an error.
Result<std::optional<std::string>> ReadFile(const std::string& path, std::size_t max_size = kMaxFileSize);

// As ReadFile, for a file that root's decisions depend on, or for a path that an unprivileged user may have
// chosen. Refuses it, and opens nothing, if it is not a regular file, or if others than root and us could
// change it (netns/base/root_file.h has the rule).
Result<std::optional<std::string>> ReadRootFile(const std::string& path, std::size_t max_size = kMaxFileSize);

// As ReadFile, but without trailing white space: for sysfs attributes. Also nullopt while the kernel removes
// the object of the attribute (ENODEV, fs/kernfs/file.c). For an interface's: ReadNetdevAttribute
// (netns/sys/netdev_sysfs.h).
Result<std::optional<std::string>> ReadAttribute(const std::string& path);

inline constexpr std::string_view kTemporarySuffix = ".new";

// open(2) with `flags` and close-on-exec, for a file that we make or have made. Refuses a link, a pipe or a
// device in its place. Refuses a file with a second name, or of another user than root and us. Writing to
// such a file would change something else.
Result<UniqueFd> OpenOwnFile(const std::string& path, int flags, mode_t mode = 0600);

Result<void> WriteAtomic(const std::string& path, std::string_view content, Sync sync, mode_t mode = 0600);

// Several files at once, of different paths. When all are written, they are replaced one after the other,
// each in one step. The disk is waited for as a whole, not for each by itself. After an error some may be
// replaced.
struct FileContent {
  std::string path;
  std::string_view content;
};
Result<void> WriteAllAtomic(std::vector<FileContent> files, Sync sync, mode_t mode = 0600);

// Removes what WriteAtomic has made of `path`, whole or half; true if there was something.
Result<bool> RemoveWritten(const std::string& path);

// Removes the temporary file `temporary` of a writer that was killed. false: the file does not exist, or its
// writer lives and has it locked. The file's age does not matter: clocks can be set.
Result<bool> RemoveAbandoned(const std::string& temporary);

// One write(2) to an existing file: for sysfs, where the kernel's answer is the
// write's errno. Does not create the file.
Result<void> WriteAttribute(const std::string& path, std::string_view value);

// Overwrites the content and keeps the inode: for files that are already bind
// mounted somewhere. Not atomic.
Result<void> WriteInPlace(const std::string& path, std::string_view content, mode_t mode = 0644);

// mkdir -p; existing directories keep their mode.
Result<void> MakeDirectories(const std::string& path, mode_t mode = 0755);

// true if something was removed, false if there was nothing.
Result<bool> RemoveFile(const std::string& path);

// Removes a directory if it is empty; true when it is gone afterwards.
bool RemoveEmptyDirectory(const std::string& path);

// Names in a directory, sorted, without . and ..; nullopt when it does not exist.
Result<std::optional<std::vector<std::string>>> ListDirectory(const std::string& path);

// Target of a symbolic link; nullopt when it does not exist.
Result<std::optional<std::string>> ReadLink(const std::string& path);

bool Exists(const std::string& path);

}  // namespace railhead
