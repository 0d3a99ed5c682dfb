#include "cni/attachment/announcement_resend.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <vector>

#include "cni/attachment/device_locks.h"
#include "netns/base/close_descriptors.h"
#include "netns/base/unique_fd.h"

namespace railhead::attachment {
namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kChildLimit = 5;  // seconds

Result<void> SendOnce(Kernel& kernel, const NetNs& pod_ns, const JournalEntry& entry) {
  const auto pod = RH_TRY(kernel.OpenRoute(pod_ns));
  for (const AttachedDevice& attached : entry.devices) {
    const auto& prefixes = attached.addressing.addresses;
    if (attached.before.user_space || prefixes.empty()) continue;
    const auto link = RH_TRY(pod->FindLink(attached.pod_name));
    if (!link || !link->up) continue;
    std::vector<IpAddress> addresses;
    addresses.reserve(prefixes.size());
    for (const auto& prefix : prefixes) addresses.push_back(prefix.address);
    RH_TRY(kernel.Announce(pod_ns, *link, addresses));
  }
  return {};
}

// Reports when a file is removed or replaced. Watching it keeps no namespace alive.
class FileWatch {
 public:
  explicit FileWatch(const std::string& path) : fd_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    watching_ = fd_.valid() &&
                ::inotify_add_watch(fd_.get(), path.c_str(), IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF) >= 0;
  }
  [[nodiscard]] bool watching() const { return watching_; }
  // false: the file changed before that.
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

// Ends when all is sent, or when the attachment has ended. A finished entry is never written again, so any
// change of its file is its end.
void ResendUntilDone(const Root& root, Kernel& kernel, const AttachmentKey& key) {
  const auto begun = Clock::now();
  const Journal journal(root);
  const FileWatch watch(journal.PathOf(key));
  const auto entry = journal.Find(key);
  if (!watch.watching() || !entry || !*entry || (*entry)->phase != Phase::kDone) return;
  auto last = begun;
  for (int i = 0; i < kResends; ++i) {
    if (!watch.QuietUntil(last + kResendInterval)) return;
    const auto sent = ResendAnnouncements(root, kernel, key);
    // A busy node may be slow to send, and the next one is no sooner for that.
    last = Clock::now();
    if (sent && *sent == ResendResult::kGone) return;
  }
}

[[noreturn]] void RunChild(const Root& root, Kernel& kernel, const AttachmentKey& key) {
  CloseDescriptors(0);
  if (::open("/dev/null", O_RDWR) == STDIN_FILENO) {
    (void)::dup2(STDIN_FILENO, STDOUT_FILENO);
    (void)::dup2(STDIN_FILENO, STDERR_FILENO);
  }
  (void)::setsid();
  // Under a relative root chdir would change all paths.
  if (root.prefix().empty() || root.prefix()[0] == '/') {
    [[maybe_unused]] const int changed = ::chdir("/");  // if not, a mount stays busy for a few seconds
  }
  (void)::signal(SIGALRM, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  (void)::sigprocmask(SIG_SETMASK, &none, nullptr);
  (void)::alarm(kChildLimit);
  ResendUntilDone(root, kernel, key);
  // Runs no destructors: the objects belong to the plugin.
  ::_exit(0);
}

}  // namespace

Result<ResendResult> ResendAnnouncements(const Root& root, Kernel& kernel, const AttachmentKey& key) {
  const Journal journal(root);
  const auto seen = RH_TRY(journal.Find(key));
  if (!seen || seen->phase != Phase::kDone) return ResendResult::kGone;
  const auto locks = DeviceLocks::Acquire(root, DevicesOf(*seen), std::chrono::milliseconds(0));
  if (!locks && locks.error().code == ErrorCode::kTimeout) return ResendResult::kBusy;
  if (!locks) return Fail(locks.error());
  const auto entry = RH_TRY(journal.Find(key));
  if (!entry || entry->phase != Phase::kDone || DevicesOf(*entry) != DevicesOf(*seen))
    return ResendResult::kGone;
  const auto pod_ns = kernel.OpenNetns(entry->netns);
  if (!pod_ns || pod_ns->inode() != entry->netns_inode) return ResendResult::kGone;
  RH_TRY_WRAP(SendOnce(kernel, *pod_ns, *entry), "announcing the addresses of " + key.ToString() + " again");
  return ResendResult::kSent;
}

void ResendInBackground(const Root& root, Kernel& kernel, const AttachmentKey& key) {
  if (::fork() == 0) RunChild(root, kernel, key);
}

}  // namespace railhead::attachment
