#include "deviceplugin/services/kubelet/cdi_reader.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "cni/state/cdi_spec.h"
#include "cni/state/paths.h"
#include "netns/base/state_folder.h"
#include "netns/base/unique_fd.h"

namespace railhead::kubelet {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// The events of one file of a directory from now on.
class FileEvents {
 public:
  static Result<FileEvents> Watch(const std::string& directory, std::string name) {
    UniqueFd inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (!inotify.valid()) return FailSys(errno, "making an inotify descriptor");
    if (::inotify_add_watch(inotify.get(), directory.c_str(), IN_OPEN | IN_MOVED_TO | IN_ONLYDIR) < 0)
      return FailSys(errno, "watching " + directory);
    return FileEvents(std::move(inotify), std::move(name));
  }

  // Whether the file was opened after it was put in place.
  Result<bool> AwaitOpened(Clock::time_point deadline) {
    while (!opened_) {
      const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
      pollfd ready{inotify_.get(), POLLIN, 0};
      const int count = ::poll(&ready, 1, static_cast<int>(std::max(left, milliseconds(0)).count()));
      if (count < 0 && errno != EINTR) return FailSys(errno, "waiting for a reader of " + name_);
      if (count == 0) return false;
      Read();
    }
    return true;
  }

 private:
  FileEvents(UniqueFd inotify, std::string name) : inotify_(std::move(inotify)), name_(std::move(name)) {}

  void Read() {
    alignas(inotify_event) std::array<char, 4096> buffer;
    for (ssize_t size = 0; (size = ::read(inotify_.get(), buffer.data(), buffer.size())) > 0;) {
      for (const char* at = buffer.data(); at < buffer.data() + size;) {
        const auto* event = reinterpret_cast<const inotify_event*>(at);
        at += sizeof(inotify_event) + event->len;
        // Padded with zeros.
        if (event->len == 0 || name_ != std::string_view(event->name)) continue;
        if ((event->mask & IN_MOVED_TO) != 0) placed_ = true;
        if ((event->mask & IN_OPEN) != 0 && placed_) opened_ = true;
      }
    }
  }

  UniqueFd inotify_;
  std::string name_;
  bool placed_ = false;
  bool opened_ = false;
};

// false: an ADD or DEL is at work on the device, or it has no spec.
Result<bool> Publish(const Root& root, const std::string& id, const std::string& name) {
  const auto lock = FileLock::Acquire(paths::Lock(root, id), milliseconds(0));
  if (!lock && lock.error().code == ErrorCode::kTimeout) return false;
  if (!lock) return Fail(lock.error());
  return PublishCdiSpec(root, name);
}

}  // namespace

Result<bool> AwaitCdiReader(const Root& root, const std::vector<std::string>& ids, milliseconds limit) {
  for (const std::string& id : ids) {
    const std::string path = paths::CdiSpec(root, id);
    const std::string name = path.substr(path.rfind('/') + 1);
    if (DeviceOfCdiSpec(name) != id) continue;
    auto events = FileEvents::Watch(paths::CdiDirectory(root), name);
    if (!events && events.error().code == ErrorCode::kNotFound) return true;  // no directory, no specs
    if (RH_TRY_WRAP(Publish(root, id, name), "writing " + path + " again")) {
      // Without inotify nobody knows, as after the limit: most runtimes have read it by then.
      if (!events) return false;
      return events->AwaitOpened(Clock::now() + limit);
    }
  }
  return true;
}

}  // namespace railhead::kubelet
