#include "deviceplugin/support/worker/worker.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace railhead {
namespace {

constexpr std::uint32_t kChanges =
    IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_ONLYDIR;

// Empties `fd`. Returns whether it had anything.
bool Drain(int fd) {
  std::array<char, 4096> buffer{};
  bool some = false;
  while (::read(fd, buffer.data(), buffer.size()) > 0) some = true;
  return some;
}

}  // namespace

Result<NodeEvents> NodeEvents::Open(OpenUevents open) {
  UniqueFd files(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!files.valid() || !wake.valid()) return FailSys(errno, "making inotify and eventfd descriptors");
  NodeEvents events(std::move(open), std::move(files), std::move(wake));
  events.ConnectUevents();
  return events;
}

void NodeEvents::ConnectUevents() {
  if (hardware_) return;
  auto hardware = open_();
  if (!hardware) {
    uevents_error_ = std::move(hardware.error());
    if (uevents_error_->hint.empty())
      uevents_error_->hint = "allow the process netlink sockets of the family NETLINK_KOBJECT_UEVENT";
    return;
  }
  hardware_ = *std::move(hardware);
  uevents_error_.reset();
}

void NodeEvents::WatchFiles(const std::vector<std::string>& paths) {
  std::set<std::string> wanted;
  for (const std::string& path : paths) wanted.insert(path.substr(0, path.rfind('/')));
  for (auto watch = watches_.begin(); watch != watches_.end();) {
    if (wanted.contains(watch->first)) {
      ++watch;
      continue;
    }
    (void)::inotify_rm_watch(files_.get(), watch->second);
    watch = watches_.erase(watch);
  }
  // Also for directories that are watched already: one may have been replaced.
  for (const std::string& directory : wanted) {
    const int watch = ::inotify_add_watch(files_.get(), directory.c_str(), kChanges);
    if (watch >= 0) watches_[directory] = watch;
  }
}

NodeEvents::Seen NodeEvents::Wait(Clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  std::array<pollfd, 3> fds{
      {{wake_.get(), POLLIN, 0}, {files_.get(), POLLIN, 0}, {hardware_ ? hardware_->fd() : -1, POLLIN, 0}}};
  Seen seen;
  if (::poll(fds.data(), fds.size(), static_cast<int>(std::max<std::int64_t>(left.count(), 0))) <= 0)
    return seen;
  seen.woken = fds[0].revents != 0 && Drain(wake_.get());
  seen.files = fds[1].revents != 0 && Drain(files_.get());
  seen.hardware = fds[2].revents != 0 && hardware_->TakeRelevant();
  return seen;
}

void NodeEvents::Wake() const {
  const std::uint64_t one = 1;
  // A full counter means that a wake-up is pending already.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

namespace {

constexpr std::chrono::milliseconds kFirstRetry{1000};

}  // namespace

PassLoop::PassLoop(std::chrono::seconds interval, Pass pass)
    : interval_(interval),
      pass_(std::move(pass)),
      random_(std::random_device{}()),
      retry_(kFirstRetry),
      thread_([this] { Loop(); }) {}

PassLoop::~PassLoop() {
  Stop();
  thread_.join();
}

std::chrono::milliseconds PassLoop::Pause() {
  std::chrono::milliseconds whole = interval_;
  if (pass_.unfinished && pass_.unfinished()) {
    whole = std::min(whole, retry_);
    retry_ = whole * 2;
  } else {
    retry_ = kFirstRetry;
  }
  std::uniform_int_distribution<std::chrono::milliseconds::rep> jitter(whole.count() * 4 / 5,
                                                                       whole.count() * 6 / 5);
  return std::chrono::milliseconds(jitter(random_));
}

void PassLoop::Loop() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    lock.unlock();
    pass_.run();
    const auto pause = Pause();
    lock.lock();
    first_over_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, pause, [this] { return stopped_; });
  }
  ended_ = true;
  changed_.notify_all();
}

bool PassLoop::AwaitFirst(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [this] { return first_over_ || stopped_; });
  return first_over_ && !stopped_;
}

void PassLoop::Stop() {
  pass_.stop();
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

bool PassLoop::AwaitEnd(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return ended_; });
}

}  // namespace railhead
