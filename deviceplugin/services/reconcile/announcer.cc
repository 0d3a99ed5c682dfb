#include "deviceplugin/services/reconcile/announcer.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/state_folder.h"

namespace railhead::reconcile {

class Announcer::Loop {
 public:
  Loop(Root root, Kernel& kernel, Report report, int stop)
      : root_(std::move(root)), kernel_(kernel), report_(std::move(report)), stop_(stop) {}

  void Run() {
    while (!stopped_) {
      if (const auto served = Serve(); !served) report_({}, Fail(served.error()));
      Wait(-1, Clock::now() + kAgain);
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kAgain{1};

  struct Due {
    Clock::time_point when;
    int left = attachment::kResends;
  };

  // Returns when stopped, when another daemon serves, and when the directory is gone.
  Result<void> Serve() {
    const std::string directory = paths::Announcements(root_);
    // What lies above is not only root's: railctl health reads there.
    RH_TRY(MakeStateFolder(root_, directory));
    const UniqueFd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (!watch.valid()) return FailSys(errno, "making an inotify instance");
    static constexpr std::uint32_t kEvents = IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
    if (::inotify_add_watch(watch.get(), directory.c_str(), kEvents) < 0)
      return FailSys(errno, "watching " + directory);
    // The lock when the watch stands: requests that follow are seen.
    const auto lock =
        FileLock::Acquire(paths::Lock(root_, attachment::kResendLock), std::chrono::milliseconds(0));
    if (!lock) return lock.error().code == ErrorCode::kTimeout ? Result<void>() : Fail(lock.error());
    while (!stopped_ && Exists(directory)) {
      RH_TRY(ReadRequests(directory));
      Wait(watch.get(), Next());
      Drain(watch.get());
      ResendDue();
    }
    return {};
  }

  Result<void> ReadRequests(const std::string& directory) {
    const auto names = RH_TRY(ListDirectory(directory));
    for (const auto& name : names.value_or(std::vector<std::string>{})) {
      std::string path = directory;
      path.append("/").append(name);
      const auto key = attachment::ReadResendRequest(path);
      if (key && !*key) continue;
      if (!key) {
        // It costs its own repeats, not those of others; the reconciler removes it.
        if (unreadable_.insert(name).second) report_({}, Fail(key.error()));
        continue;
      }
      RH_TRY(RemoveFile(path));
      due_[**key] = Due{Clock::now() + attachment::kResendInterval};
    }
    return {};
  }

  [[nodiscard]] std::optional<Clock::time_point> Next() const {
    std::optional<Clock::time_point> next;
    for (const auto& [key, due] : due_) next = next ? std::min(*next, due.when) : due.when;
    return next;
  }

  void ResendDue() {
    for (auto it = due_.begin(); it != due_.end() && !stopped_;) {
      auto& [key, due] = *it;
      if (due.when > Clock::now()) {
        ++it;
        continue;
      }
      due.when = Clock::now() + attachment::kResendInterval;
      const auto resent = attachment::ResendAnnouncements(root_, kernel_, key);
      report_(key, resent);
      const bool over = --due.left == 0 || (resent && *resent == attachment::ResendResult::kGone);
      it = over ? due_.erase(it) : std::next(it);
    }
  }

  // For an event on `fd`, for the end, or for `until` to come.
  void Wait(int fd, std::optional<Clock::time_point> until) {
    std::array<pollfd, 2> polled{pollfd{stop_, POLLIN, 0}, pollfd{fd, POLLIN, 0}};
    int limit = -1;
    if (until) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*until - Clock::now()).count();
      limit = static_cast<int>(std::max<std::int64_t>(left + 1, 0));
    }
    if (::poll(polled.data(), polled.size(), limit) > 0 && polled[0].revents != 0) stopped_ = true;
  }

  // What happened is seen by looking at the directory.
  static void Drain(int fd) {
    std::array<char, 4096> events{};
    while (::read(fd, events.data(), events.size()) > 0) {
    }
  }

  const Root root_;
  Kernel& kernel_;
  const Report report_;
  const int stop_;
  bool stopped_ = false;
  std::map<AttachmentKey, Due> due_;
  std::set<std::string> unreadable_;  // names of requests that were reported
};

Announcer::Announcer(Root root, Kernel& kernel, Report report)
    : stop_(::eventfd(0, EFD_CLOEXEC)),
      thread_(
          [loop = Loop(std::move(root), kernel, std::move(report), stop_.get())]() mutable { loop.Run(); }) {}

Announcer::~Announcer() {
  Stop();
  thread_.join();
}

void Announcer::Stop() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(stop_.get(), &one, sizeof one);
}

}  // namespace railhead::reconcile
