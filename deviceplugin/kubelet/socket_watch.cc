#include "deviceplugin/kubelet/socket_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

namespace railhead {
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

void SocketWatch::Watch(const std::vector<std::string>& directories) {
  all_watched_ = true;
  for (const std::string& directory : directories) {
    constexpr auto kEvents = IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_DELETE_SELF | IN_ONLYDIR;
    if (::inotify_add_watch(inotify_.get(), directory.c_str(), kEvents) < 0) all_watched_ = false;
  }
}

void SocketWatch::Wake() const {
  const std::uint64_t one = 1;
  // Full means that a wake-up is pending already.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void SocketWatch::WaitUntil(Clock::time_point until) const {
  until = std::min(until, Clock::now() + (all_watched_ ? kResync : kUnwatched));
  const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
  std::array<pollfd, 2> fds{{{wake_.get(), POLLIN, 0}, {inotify_.get(), POLLIN, 0}}};
  if (::poll(fds.data(), fds.size(), static_cast<int>(std::max<std::int64_t>(left.count(), 0))) <= 0) return;
  // Which file it was does not matter: everything is looked at again.
  for (const pollfd& fd : fds) {
    if ((fd.revents & POLLIN) != 0) Drain(fd.fd);
  }
}

}  // namespace railhead
