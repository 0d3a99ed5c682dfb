#include "deviceplugin/services/kubelet/socket_watch.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace railhead::kubelet {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kResync{30'000};
constexpr milliseconds kUnwatched{1'000};

}  // namespace

SocketWatch::SocketWatch() : inotify_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}

Result<void> SocketWatch::Check() const {
  if (!inotify_.valid()) return FailSys(errno, "making an inotify descriptor");
  return {};
}

void SocketWatch::Watch(const std::string& directory) {
  constexpr auto kEvents = IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_DELETE_SELF | IN_ONLYDIR;
  watching_ = ::inotify_add_watch(inotify_.get(), directory.c_str(), kEvents) >= 0;
}

void SocketWatch::ReadEvents() {
  alignas(inotify_event) std::array<char, 4096> buffer;
  for (ssize_t size = 0; (size = ::read(inotify_.get(), buffer.data(), buffer.size())) > 0;) {
    for (const char* at = buffer.data(); at < buffer.data() + size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      at += sizeof(inotify_event) + event->len;
      if (event->len == 0) continue;
      const std::string name = event->name;  // padded with zeros
      // kubelet's checkpoints have names that are never used again, and they stay.
      if (!name.ends_with(".sock")) continue;
      if ((event->mask & IN_CREATE) != 0) created_.insert(name);
      if ((event->mask & IN_DELETE) != 0 && created_.erase(name) != 0) removed_sockets_.push_back(name);
    }
  }
}

void SocketWatch::WaitUntil(Worker& worker, Clock::time_point until) {
  std::array<pollfd, 1> fds{{{inotify_.get(), POLLIN, 0}}};
  worker.Wait(std::min(until, Clock::now() + (watching_ ? kResync : kUnwatched)), fds);
  if ((fds[0].revents & POLLIN) != 0) ReadEvents();
}

}  // namespace railhead::kubelet
