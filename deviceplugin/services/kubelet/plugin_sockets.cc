#include "deviceplugin/services/kubelet/plugin_sockets.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

#include "deviceplugin/services/kubelet/registrar.h"
#include "netns/base/files.h"
#include "netns/base/fnv.h"
#include "netns/base/unique_fd.h"

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

namespace {

bool HaveLeft(const std::set<std::string>& before, const std::set<std::string>& now) {
  return !std::ranges::includes(now, before);
}

}  // namespace

OtherInstances::Changes OtherInstances::Update(const std::string& directory, const std::string& own_name,
                                               std::span<const std::string> passed) {
  std::set<std::string> newer;
  std::set<std::string> older;
  for (OtherServer& other : OtherServers(directory, own_name)) {
    known_.insert(other.name);
    (other.newer ? newer : older).insert(std::move(other.name));
  }
  Changes changes;
  if (!newer.empty()) changes.newer = *newer.begin();
  changes.newer_left = HaveLeft(newer_, newer);
  changes.older_left = HaveLeft(older_, older);
  for (const std::string& name : passed) {
    // A server that came since the last update is newer.
    if (known_.erase(name) == 0 && IsOther(name, own_name)) changes.newer_left = true;
  }
  newer_ = std::move(newer);
  older_ = std::move(older);
  return changes;
}

namespace {

constexpr std::string_view kPrefix = "railhead-";
constexpr std::string_view kSuffix = ".sock";
static_assert(kMaxSocketPath == sizeof(sockaddr_un::sun_path) - 1);

// Eight hexadecimal digits.
std::string Hash(std::string_view text) {
  std::array<char, 9> buffer{};
  (void)std::snprintf(buffer.data(), buffer.size(), "%08x", Fnv1a32(text));
  return buffer.data();
}

// connect(2)'s errno: 0 when a process listens, ECONNREFUSED when the listener has ended.
int Probe(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() > kMaxSocketPath) return ENAMETOOLONG;
  std::memcpy(address.sun_path, path.data(), path.size());
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return errno;
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  return ::connect(fd.get(), generic, sizeof address) == 0 ? 0 : errno;
}

// When the socket was made; nullopt when it is gone.
std::optional<std::pair<std::int64_t, std::int64_t>> MadeAt(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return std::make_pair(static_cast<std::int64_t>(status.st_mtim.tv_sec),
                        static_cast<std::int64_t>(status.st_mtim.tv_nsec));
}

// railhead-RESOURCE-PID-STARTED-N.sock without N.
std::string_view ProcessPart(std::string_view name) {
  return name.substr(0, name.rfind('-'));
}

// "railhead-RESOURCE".
std::string_view ResourcePart(std::string_view name) {
  for (int part = 0; part < 3; ++part) name = name.substr(0, name.rfind('-'));
  return name;
}

bool IsOurs(std::string_view name) {
  return name.size() > kPrefix.size() + kSuffix.size() && name.substr(0, kPrefix.size()) == kPrefix &&
         name.substr(name.size() - kSuffix.size()) == kSuffix;
}

}  // namespace

std::optional<SocketIdentity> IdentityOf(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return std::nullopt;
  return SocketIdentity{
      status.st_dev, status.st_ino,
      static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec};
}

std::string SocketName(const std::string& directory, const std::string& resource, const std::string& tag,
                       int number) {
  std::string readable = resource;
  std::replace(readable.begin(), readable.end(), '/', '_');
  const std::string tail = "-" + tag + "-" + std::to_string(number) + std::string(kSuffix);
  const bool fits = directory.size() + 1 + kPrefix.size() + readable.size() + tail.size() <= kMaxSocketPath;
  return std::string(kPrefix) + (fits ? readable : Hash(resource)) + tail;
}

Result<void> CheckSocketPath(const std::string& directory, const std::string& resource,
                             const std::string& tag) {
  constexpr int kManyServers = 9999;
  const std::string path = directory + "/" + SocketName(directory, resource, tag, kManyServers);
  if (path.size() <= kMaxSocketPath) return {};
  return Fail(ErrorCode::kInvalid,
              "the socket path " + path + " is longer than " + std::to_string(kMaxSocketPath) +
                  " bytes, the limit of Linux",
              "use a shorter --kubelet-dir");
}

bool IsOther(const std::string& name, const std::string& own_name) {
  return IsOurs(name) && ResourcePart(name) == ResourcePart(own_name) &&
         ProcessPart(name) != ProcessPart(own_name);
}

std::vector<OtherServer> OtherServers(const std::string& directory, const std::string& own_name) {
  std::vector<OtherServer> others;
  const auto own = MadeAt(directory + "/" + own_name);
  const auto names = ListDirectory(directory);
  if (!own || !names || !*names) return others;
  for (const std::string& name : **names) {
    if (name == own_name || !IsOurs(name) || ResourcePart(name) != ResourcePart(own_name)) continue;
    std::string path = directory;
    path.append("/").append(name);
    const auto made = MadeAt(path);
    if (made && Probe(path) == 0) others.push_back({name, *made > *own});
  }
  return others;
}

std::vector<std::string> RemoveStaleSockets(const std::string& directory) {
  std::vector<std::string> removed;
  const auto names = ListDirectory(directory);
  if (!names || !*names) return removed;
  for (const std::string& name : **names) {
    std::string path = directory;
    path.append("/").append(name);
    if (IsOurs(name) && Probe(path) == ECONNREFUSED && RemoveFile(path).value_or(false))
      removed.push_back(name);
  }
  return removed;
}

}  // namespace railhead::kubelet
