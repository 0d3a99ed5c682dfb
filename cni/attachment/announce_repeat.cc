#include "cni/attachment/announce_repeat.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <string_view>
#include <vector>

#include "cni/attachment/acquire.h"
#include "cni/attachment/release.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/state_folder.h"
#include "netns/base/text.h"
#include "netns/base/unique_fd.h"

namespace railhead::attachment {
namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kChildLimit = 5;       // seconds
constexpr std::size_t kRequestName = 16;  // hexadecimal digits

// The content says whose it is.
std::string RequestName(const AttachmentKey& key) {
  std::array<char, kRequestName + 1> name{};
  (void)std::snprintf(name.data(), name.size(), "%016llx",
                      static_cast<unsigned long long>(Fnv1a64(key.ToString())));
  return name.data();
}

Result<void> SendOnce(Kernel& kernel, const NetNs& pod_ns, const JournalEntry& entry) {
  const auto pod = RH_TRY(kernel.OpenRoute(pod_ns));
  for (const AttachedDevice& attached : entry.devices) {
    const auto& prefixes = attached.addressing.addresses;
    if (attached.before.user_space || prefixes.empty()) continue;
    const auto link = RH_TRY(pod->FindLink(attached.pod_name));
    if (!link || !link->up) continue;
    std::vector<IpAddress> addresses;
    for (const auto& prefix : prefixes) addresses.push_back(prefix.address);
    RH_TRY(kernel.Announce(pod_ns, *link, addresses));
  }
  return {};
}

// Whether a process has the taker's lock. Asked with a shared one: two plugins that ask
// at the same time must not take each other for it.
bool HasTaker(const Root& root) {
  const std::string path = paths::Lock(root, kRepeatTaker);
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return false;
  while (::flock(fd.get(), LOCK_SH | LOCK_NB) != 0) {
    if (errno != EINTR) return errno == EWOULDBLOCK;
  }
  return false;
}

// Reports when the file is removed or replaced; the file is none of those that keep a
// namespace alive.
class FileWatch {
 public:
  explicit FileWatch(const std::string& path) : fd_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    watching_ = fd_.valid() &&
                ::inotify_add_watch(fd_.get(), path.c_str(), IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF) >= 0;
  }
  [[nodiscard]] bool watching() const { return watching_; }
  // false: something happened to it before.
  [[nodiscard]] bool QuietUntil(Clock::time_point when) const {
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(when - Clock::now()).count();
      if (left <= 0) return true;
      pollfd polled{fd_.get(), POLLIN, 0};
      const int ready = ::poll(&polled, 1, static_cast<int>(left) + 1);
      if (ready > 0 || (ready < 0 && errno != EINTR)) return false;
    }
  }

 private:
  UniqueFd fd_;
  bool watching_ = false;
};

// Until all is sent or the attachment is not the same any more. A finished entry is never
// written again, so whatever happens to its file is its end.
void RepeatNow(const Root& root, Kernel& kernel, const AttachmentKey& key) {
  const auto begun = Clock::now();
  const Journal journal(root);
  const FileWatch watch(journal.PathOf(key));
  const auto entry = journal.Find(key);
  if (!watch.watching() || !entry || !*entry || (*entry)->phase != Phase::kDone) return;
  auto last = begun;
  for (int i = 0; i < kRepeats; ++i) {
    if (!watch.QuietUntil(last + kRepeatInterval)) return;
    last = Clock::now();
    const auto sent = AnnounceAgain(root, kernel, key);
    if (sent && *sent == Repeated::kGone) return;
  }
}

[[noreturn]] void RunChild(const Root& root, Kernel& kernel, const AttachmentKey& key) {
  CloseDescriptors(0);
  if (::open("/dev/null", O_RDWR) == STDIN_FILENO) {
    (void)::dup2(STDIN_FILENO, STDOUT_FILENO);
    (void)::dup2(STDIN_FILENO, STDERR_FILENO);
  }
  (void)::setsid();
  // Under a root that is relative all paths would be others then.
  if (root.prefix().empty() || root.prefix()[0] == '/') {
    [[maybe_unused]] const int changed = ::chdir("/");  // if not, a mount stays busy for a few seconds
  }
  (void)::signal(SIGALRM, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  (void)::sigprocmask(SIG_SETMASK, &none, nullptr);
  (void)::alarm(kChildLimit);
  RepeatNow(root, kernel, key);
  // The destructors of what the plugin had are the plugin's.
  ::_exit(0);
}

}  // namespace

Result<Repeated> AnnounceAgain(const Root& root, Kernel& kernel, const AttachmentKey& key) {
  const Journal journal(root);
  const auto seen = RH_TRY(journal.Find(key));
  if (!seen || seen->phase != Phase::kDone) return Repeated::kGone;
  const auto locks = DeviceLocks::Acquire(root, DevicesOf(*seen), std::chrono::milliseconds(0));
  if (!locks && locks.error().code == ErrorCode::kTimeout) return Repeated::kBusy;
  if (!locks) return Fail(locks.error());
  const auto entry = RH_TRY(journal.Find(key));
  if (!entry || entry->phase != Phase::kDone || DevicesOf(*entry) != DevicesOf(*seen)) return Repeated::kGone;
  const auto pod_ns = kernel.OpenNetns(entry->netns);
  if (!pod_ns || pod_ns->inode() != entry->netns_inode) return Repeated::kGone;
  RH_TRY_WRAP(SendOnce(kernel, *pod_ns, *entry), "announcing the addresses of " + key.ToString() + " again");
  return Repeated::kSent;
}

void RepeatLater(const Root& root, Kernel& kernel, const AttachmentKey& key) {
  if (HasTaker(root) && WriteRepeatRequest(root, key)) return;
  if (::fork() == 0) RunChild(root, kernel, key);
}

Result<void> WriteRepeatRequest(const Root& root, const AttachmentKey& key) {
  const std::string text = key.network + "\n" + key.container_id + "\n" + key.ifname + "\n";
  return WriteStateFile(root, paths::Announcements(root) + "/" + RequestName(key), text);
}

Result<std::optional<AttachmentKey>> ReadRepeatRequest(const std::string& path) {
  const auto text = RH_TRY(ReadFile(path));
  if (!text) return std::nullopt;
  const auto lines = Split(*text, '\n');
  static constexpr std::size_t kLines = 4;  // the last one is empty
  if (lines.size() != kLines || !lines.back().empty()) return std::nullopt;
  const AttachmentKey key{lines[0], lines[1], lines[2]};
  // Also what is not written to the end yet, or named by someone else.
  if (path.substr(path.rfind('/') + 1) != RequestName(key)) return std::nullopt;
  return key;
}

}  // namespace railhead::attachment
