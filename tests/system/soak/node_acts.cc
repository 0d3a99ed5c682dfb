#include "tests/system/soak/node_acts.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <random>

#include "cni/state/journal.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/unique_fd.h"

namespace railhead::soak {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFiller = "/run/railhead/filler";
constexpr std::uint64_t kLongestPause = 1500;  // ms, between two halves of a disturbance
constexpr std::time_t kFarthestJump = 400L * 24 * 3600;

void Pause(std::uint64_t luck) {
  std::this_thread::sleep_for(std::chrono::milliseconds(luck % kLongestPause));
}

void Fill(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  for (const std::size_t size : {4096U, 1U}) {
    const std::string zeros(size, '\0');
    while (::write(file.get(), zeros.data(), zeros.size()) > 0) {
    }
  }
}

// Cuts a file, before its first hole if it is sparse: the address store has all content in its first MiB. Its
// end restores the file, unless the file was rewritten.
class CutFile {
 public:
  CutFile(std::string path, std::uint64_t luck) : path_(std::move(path)) {
    const UniqueFd file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    const off_t written = file.valid() ? ::lseek(file.get(), 0, SEEK_HOLE) : 0;
    if (written <= 0) return;
    size_ = ::lseek(file.get(), 0, SEEK_END);
    whole_.resize(std::min(static_cast<std::size_t>(size_), kMaxFileSize));
    const bool read = ::pread(file.get(), whole_.data(), whole_.size(), 0) == std::ssize(whole_);
    cut_ = whole_.substr(0, luck % static_cast<std::uint64_t>(written));
    if (!read || ::truncate(path_.c_str(), std::ssize(cut_)) != 0) whole_.clear();
  }
  CutFile(const CutFile&) = delete;
  CutFile& operator=(const CutFile&) = delete;
  ~CutFile() {
    if (whole_.empty()) return;
    const auto now = ReadFile(path_);
    if (!now || !*now || **now != cut_) return;
    (void)WriteInPlace(path_, whole_, 0600);
    [[maybe_unused]] const int ignored = ::truncate(path_.c_str(), size_);
  }
  [[nodiscard]] bool IsCut() const { return !whole_.empty(); }

 private:
  std::string path_;
  off_t size_ = 0;
  std::string whole_;
  std::string cut_;
};

// Files that calls read or write, without the journal and the store.
std::vector<std::string> StateFiles(const Root& root) {
  std::vector<std::string> files;
  for (const char* const name : {"/run/railhead", "/var/lib/railhead"}) {
    std::error_code error;
    for (fs::recursive_directory_iterator at(root.Path(name), error), end; at != end; at.increment(error)) {
      const std::string path = at->path();
      const bool other = path.find("/attachments/") != std::string::npos ||
                         path.find("/ipam/") != std::string::npos ||
                         path.find("/locks/") != std::string::npos;
      if (!other && fs::is_regular_file(at->symlink_status(error))) files.push_back(path);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::uint64_t NodeEvent::Luck() {
  luck_ = std::mt19937_64(wave_.node_seed + luck_)();
  return luck_ >> 1U;
}

Weather NodeEvent::Begin() {
  node_.Count(NameOf(wave_.node));
  Weather weather;
  weather.late_adds_may_fail = wave_.node == NodeAct::kDaemonKilled || wave_.node == NodeAct::kDaemonDoubled;
  if (wave_.node == NodeAct::kRunFull) {
    weather.adds_may_fail = true;
    Fill(node_.root().Path(kFiller));
  }
  return weather;
}

void NodeEvent::Beside() {
  switch (wave_.node) {
    case NodeAct::kDaemonKilled:
      Pause(Luck());
      node_.KillDaemon(0);
      Pause(Luck());
      node_.StartDaemon();
      return;
    case NodeAct::kDaemonStopped:
      Pause(Luck());
      node_.SignalDaemon(0, SIGSTOP);
      Pause(Luck());
      return node_.SignalDaemon(0, SIGCONT);
    case NodeAct::kDaemonDoubled:
      return Double();
    case NodeAct::kClockJump:
      return JumpClock();
    case NodeAct::kPfDown:
      return FlapPfs();
    case NodeAct::kCutJournal:
    case NodeAct::kCutStore:
    case NodeAct::kCutState:
      return Cut();
    default:
      return;
  }
}

void NodeEvent::End() {
  if (wave_.node == NodeAct::kRunFull) (void)RemoveFile(node_.root().Path(kFiller));
  if (const auto answers = node_.AwaitDaemon(); !answers) node_.Wrong(Describe(answers.error()));
}

// As in an update. Either of the two processes may be killed.
void NodeEvent::Double() {
  Pause(Luck());
  node_.StartDaemon();
  Pause(2 * Luck());
  node_.KillDaemon(Luck() % 2);
}

void NodeEvent::JumpClock() {
  Pause(Luck());
  timespec now{};
  (void)::clock_gettime(CLOCK_REALTIME, &now);
  const auto jump = static_cast<std::time_t>(Luck() % (2 * kFarthestJump)) - kFarthestJump;
  now.tv_sec += jump;
  (void)::clock_settime(CLOCK_REALTIME, &now);
}

void NodeEvent::FlapPfs() {
  const std::string pf = Luck() % 2 == 0 ? "pf0" : "pf1";
  if (node_.setting().hardware) {
    // No call may meet a half-reset VF, so no pod acts run beside this, and it waits for the link.
    (void)Shell("ip link set " + pf + " down");
    (void)Shell("ip link set " + pf + " up");
    const bool up = Await([&] {
      const auto state = ReadAttribute("/sys/class/net/" + pf + "/operstate");
      return state && *state == "up";
    });
    if (!up) node_.Wrong(pf + " does not come up");
    return;
  }
  for (std::uint64_t i = 0; i < 5; ++i) {
    (void)Shell("ip link set " + pf + " down");
    Pause(Luck() / 4);
    (void)Shell("ip link set " + pf + " up");
  }
}

void NodeEvent::Cut() {
  const Choice& choice = wave_.choices.at(0);
  Slot& slot = slots_.at(choice.slot);
  Leave(node_, slot);
  Come(node_, slot, choice.pod, choice.seed);
  if (wave_.node == NodeAct::kCutJournal) TryCutJournal(slot);
  if (wave_.node == NodeAct::kCutStore) TryCutStore(slot);
  if (wave_.node == NodeAct::kCutState) TryCutState(slot);
  Leave(node_, slot);
}

// An unreadable entry may affect only its own attachment.
void NodeEvent::TryCutJournal(Slot& slot) {
  Add(node_, slot, {});
  const auto entries = Journal(node_.root()).OfSandbox(slot.pod.id);
  if (!entries || entries->empty()) return node_.Wrong("no journal entry of " + slot.pod.id);
  const CutFile cut(paths::Attachments(node_.root()) + "/" + entries->front().key.ToString() + ".json",
                    Luck());
  if (!cut.IsCut())
    return node_.Wrong("the journal entry of " + slot.pod.id + " is not where it was looked for");
  const Answer deleted = node_.Call("DEL", slot);
  if (deleted.succeeded) node_.Wrong("DEL of " + slot.pod.id + " succeeds without its journal entry");
}

void NodeEvent::TryCutStore(Slot& slot) {
  const CutFile cut(paths::AddressStore(node_.root()) + "/store.mdb", Luck());
  const Answer added = node_.Call("ADD", slot);
  if (added.succeeded) node_.Hold(slot, added.output);
}

void NodeEvent::TryCutState(Slot& slot) {
  const auto files = StateFiles(node_.root());
  if (files.empty()) return node_.Wrong("there is no file of state");
  const std::uint64_t which = Luck();
  const CutFile cut(files[which % files.size()], Luck());
  const Answer added = node_.Call("ADD", slot);
  if (added.succeeded) node_.Hold(slot, added.output);
  Leave(node_, slot);
}

}  // namespace railhead::soak
