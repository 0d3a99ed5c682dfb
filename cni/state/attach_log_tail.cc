#include "cni/state/attach_log_tail.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <utility>

#include "cni/state/paths.h"
#include "netns/base/unique_fd.h"

namespace railhead {
namespace {

// 0: the file does not exist.
ino_t FileAt(const std::string& path, std::int64_t* size) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return 0;
  *size = status.st_size;
  return status.st_ino;
}

}  // namespace

AttachLogTail::AttachLogTail(const Root& root) : path_(paths::AttachLog(root)) {
  file_ = FileAt(path_, &place_);
}

Result<void> AttachLogTail::ReadOn(const std::string& path, std::vector<AttachTiming>* timings) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) return errno == ENOENT ? Result<void>{} : FailSys(errno, "opening " + path);
  std::string text(2 * kMaxAttachLog, '\0');
  const ssize_t size = ::pread(fd.get(), text.data(), text.size(), place_);
  if (size < 0) return FailSys(errno, "reading " + path);
  text.resize(static_cast<std::size_t>(size));
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    if (auto timing = ParseAttachTiming(text.substr(begin, end - begin)))
      timings->push_back(*std::move(timing));
  }
  place_ += static_cast<std::int64_t>(begin);
  return {};
}

Result<std::vector<AttachTiming>> AttachLogTail::Next() {
  std::vector<AttachTiming> timings;
  std::int64_t size = 0;
  const ino_t now = FileAt(path_, &size);
  if (now != file_) {
    if (file_ != 0 && FileAt(path_ + ".1", &size) == file_) RH_TRY(ReadOn(path_ + ".1", &timings));
    file_ = now;
    place_ = 0;
  } else if (size < place_) {
    place_ = 0;  // another program truncated it
  }
  if (file_ != 0) RH_TRY(ReadOn(path_, &timings));
  return timings;
}

}  // namespace railhead
