#include "deviceplugin/services/kubelet/socket_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

namespace railhead::kubelet {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kResync{30'000};
constexpr milliseconds kUnwatched{1'000};

void Drain(int fd) {
  std::array<char, 4096> buffer;
  while (::read(fd, buffer.data(), buffer.size()) > 0) {
  }
}

}  // namespace

SocketWatch::SocketWatch()
    : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), inotify_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}

Result<void> SocketWatch::Check() const {
  if (!wake_.valid() || !inotify_.valid()) return FailSys(errno, "making eventfd and inotify descriptors");
  return {};
}

void SocketWatch::Watch(const std::string& directory) {
  constexpr auto kEvents = IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_DELETE_SELF | IN_ONLYDIR;
  watching_ = ::inotify_add_watch(inotify_.get(), directory.c_str(), kEvents) >= 0;
}

void SocketWatch::Wake() const {
  const std::uint64_t one = 1;
  // A full counter means that a wake-up is pending already.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
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

void SocketWatch::WaitUntil(Clock::time_point until) {
  until = std::min(until, Clock::now() + (watching_ ? kResync : kUnwatched));
  const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
  std::array<pollfd, 2> fds{{{wake_.get(), POLLIN, 0}, {inotify_.get(), POLLIN, 0}}};
  if (::poll(fds.data(), fds.size(), static_cast<int>(std::max<std::int64_t>(left.count(), 0))) <= 0) return;
  if ((fds[0].revents & POLLIN) != 0) Drain(wake_.get());
  if ((fds[1].revents & POLLIN) != 0) ReadEvents();
}

}  // namespace railhead::kubelet
