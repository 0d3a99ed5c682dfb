#include "netns/base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "netns/base/files.h"

namespace railhead {

Result<FileLock> FileLock::Acquire(const std::string& path, std::chrono::milliseconds limit) {
  int raw = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (raw < 0 && errno == ENOENT) {
    RH_TRY(MakeDirectories(path.substr(0, path.rfind('/'))));
    raw = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  }
  UniqueFd fd(raw);
  if (!fd.valid()) return FailSys(errno, "opening lock " + path);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  auto pause = std::chrono::milliseconds(1);
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return FailSys(errno, "locking " + path);
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      return Fail(ErrorCode::kTimeout,
                  "locking " + path + ": still held after " + std::to_string(limit.count()) + " ms");
    }
    std::this_thread::sleep_for(std::min(pause, left));
    pause = std::min(pause * 2, std::chrono::milliseconds(2));
  }
  return FileLock(std::move(fd));
}

}  // namespace railhead
