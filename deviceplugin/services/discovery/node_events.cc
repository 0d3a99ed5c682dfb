#include "deviceplugin/services/discovery/node_events.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <set>

namespace railhead::discovery {
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
  if (!files.valid()) return FailSys(errno, "making an inotify descriptor");
  NodeEvents events(std::move(open), std::move(files));
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

NodeEvents::Seen NodeEvents::Wait(Worker& worker, Clock::time_point until) {
  std::array<pollfd, 2> fds{{{files_.get(), POLLIN, 0}, {hardware_ ? hardware_->fd() : -1, POLLIN, 0}}};
  Seen seen;
  seen.woken = worker.Wait(until, fds);
  seen.files = fds[0].revents != 0 && Drain(files_.get());
  seen.hardware = fds[1].revents != 0 && hardware_->TakeRelevant();
  return seen;
}

}  // namespace railhead::discovery
