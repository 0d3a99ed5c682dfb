#include "bench/node_daemon.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <memory>
#include <random>
#include <thread>

#include "bench/node_client.h"
#include "bench/node_series.h"
#include "bench/node_tree.h"
#include "bench/process_facts.h"
#include "bench/report.h"
#include "netns/base/files.h"
#include "tests/support/kubelet/device_manager.h"

namespace railhead::bench {
namespace {

using Clock = std::chrono::steady_clock;
using testing::DeviceManager;

constexpr std::chrono::seconds kPatience{60};
constexpr const char* kKubeletDirectory = "/k";  // paths of sockets are short

double MsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// railheadd, with its log in a file; ends with the object.
class Daemon {
 public:
  static Result<std::unique_ptr<Daemon>> Start(const NodeDaemonSetting& setting) {
    std::unique_ptr<Daemon> daemon(new Daemon(setting.root.Path("/railheadd.log")));
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 2, daemon->log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    std::vector<std::string> arguments = {setting.program, "--kubelet-dir", kKubeletDirectory};
    std::string environment = "RAILHEAD_ROOT=" + setting.root.prefix();
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    std::array<char*, 2> envp = {environment.data(), nullptr};
    const int error =
        ::posix_spawn(&daemon->pid_, setting.program.c_str(), &actions, nullptr, argv.data(), envp.data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) return FailSys(error, "running " + setting.program);
    return daemon;
  }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  ~Daemon() {
    if (pid_ <= 0) return;
    (void)::kill(pid_, SIGTERM);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  [[nodiscard]] pid_t pid() const { return pid_; }
  // The error, with what the daemon said last.
  [[nodiscard]] Error With(Error error) const {
    const auto text = ReadFile(log_);
    const std::string said = text && *text ? **text : "";
    error.message +=
        "; railheadd's log ends: " + said.substr(said.size() - std::min<std::size_t>(said.size(), 600));
    return error;
  }

 private:
  explicit Daemon(std::string log) : log_(std::move(log)) {}

  const std::string log_;
  pid_t pid_ = -1;
};

class Measurement {
 public:
  Measurement(const NodeDaemonSetting& setting, Record* record)
      : setting_(setting),
        record_(record),
        who_(setting.late ? kLatePool : kDaemonName),
        directory_(setting.root.Path(kKubeletDirectory)),
        kubelet_(directory_) {}

  Result<void> Run() {
    RH_TRY(kubelet_.Start());
    const auto start = Clock::now();
    daemon_ = RH_TRY(Daemon::Start(setting_));
    auto done = Measure(start);
    if (!done) return Fail(daemon_->With(std::move(done.error())));
    return {};
  }

 private:
  Result<void> Measure(Clock::time_point start) {
    const auto devices = RH_TRY(kubelet_.Devices(kNodeResource, setting_.devices, Clock::now() + kPatience));
    record_->Add(kNode, who_, kStart, "ms", MsSince(start));
    for (const auto& device : devices) ids_.push_back(device.id);
    RH_TRY(AllocateAsKubelet(std::min(100, setting_.allocations)));
    RH_TRY(Memory(kResident));
    if (!setting_.late) RH_TRY(Calls());
    RH_TRY(Changes());
    RH_TRY(Idle());
    return Memory(kResidentLater);
  }

  Result<void> AllocateAsKubelet(int count) {
    for (int i = 0; i < count; ++i) {
      const auto start = Clock::now();
      const auto given = RH_TRY(kubelet_.Allocate(kNodeResource, 1));
      record_->Add(kNode, who_, kKubeletAllocate, "us", MsSince(start) * 1e3);
      kubelet_.Release(kNodeResource, given.ids);
    }
    return {};
  }

  Result<void> Memory(const char* what) {
    const ProcessMemory memory = RH_TRY(MemoryOf(daemon_->pid()));
    record_->Add(kNode, who_, what, "MB", memory.resident_mb);
    if (what == kResidentLater) return {};
    record_->Add(kNode, who_, kAnonymous, "MB", memory.anonymous_mb);
    record_->Add(kNode, who_, kProportional, "MB", memory.proportional_mb);
    record_->Add(kNode, who_, kThreads, "threads", memory.threads);
    return {};
  }

  Result<std::string> Socket() {
    const auto names = RH_TRY(ListDirectory(directory_));
    for (const std::string& name : names.value_or(std::vector<std::string>{})) {
      if (name.rfind("railhead-", 0) == 0) return directory_ + "/" + name;
    }
    return Fail(ErrorCode::kNotFound, "there is no socket of railheadd in " + directory_);
  }

  Result<void> Calls() {
    NodeClient client(RH_TRY(Socket()));
    std::mt19937 random(23);  // NOLINT(cert-msc32-c,cert-msc51-cpp): each run alike
    auto ids = ids_;
    for (int i = 0; i < setting_.preferences; ++i) {
      std::shuffle(ids.begin(), ids.end(), random);
      for (const auto& [what, size, must] :
           {std::tuple(kPreferOne, 1, 0), std::tuple(kPreferEight, 8, 0), std::tuple(kPreferMust, 8, 3)}) {
        const double us = RH_TRY(client.Prefer(ids, {ids.begin(), ids.begin() + must}, size));
        record_->Add(kNode, kOverGrpc, what, "us", us);
      }
    }
    for (int i = 0; i < setting_.allocations; ++i) {
      const std::size_t which = random() % ids.size();
      record_->Add(kNode, kOverGrpc, kAllocateOne, "us", RH_TRY(client.Allocate({ids[which]})));
    }
    return {};
  }

  // Until kubelet has the list without, or with, one more.
  Result<double> Told(std::size_t count, Clock::time_point since) {
    for (;;) {
      if (kubelet_.Present(kNodeResource).size() == count) return MsSince(since);
      if (Clock::now() > since + kPatience)
        return Fail(ErrorCode::kTimeout, "a change of the node was not told to kubelet within a minute");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  // A VF's driver is unbound and bound again. Below another root there are no uevents: the
  // fabric, written anew with what it has, takes their place; what follows is the same.
  Result<void> Changes() {
    const std::string vf = setting_.root.Path("/sys/bus/pci/devices/") + RH_TRY(AnyVf());
    const auto driver = RH_TRY(ReadLink(vf + "/driver"));
    const std::string fabric_path = setting_.root.Path("/etc/railhead/fabric.json");
    const auto fabric = RH_TRY(ReadFile(fabric_path));
    if (!driver || !fabric) return Fail(ErrorCode::kNotFound, vf + " has no driver, or the node no fabric");
    for (int i = 0; i < 2 * setting_.changes; ++i) {
      const bool unbind = i % 2 == 0;
      if (unbind) {
        RH_TRY(RemoveFile(vf + "/driver"));
      } else if (::symlink(driver->c_str(), (vf + "/driver").c_str()) != 0) {
        return FailSys(errno, "making " + vf + "/driver");
      }
      const auto start = Clock::now();
      RH_TRY(WriteAtomic(fabric_path, *fabric, Sync::kVolatile));
      const double ms = RH_TRY(Told(setting_.devices - (unbind ? 1 : 0), start));
      record_->Add(kNode, who_, kHotPlug, "ms", ms);
    }
    return {};
  }

  Result<std::string> AnyVf() {
    const auto names = RH_TRY(ListDirectory(setting_.root.Path("/sys/bus/pci/devices")));
    for (const std::string& name : names.value_or(std::vector<std::string>{})) {
      if (Exists(setting_.root.Path("/sys/bus/pci/devices/") + name + "/physfn")) return name;
    }
    return Fail(ErrorCode::kNotFound, "the node has no VF");
  }

  Result<void> Idle() {
    if (setting_.idle.count() == 0) return {};
    const ProcessTime before = RH_TRY(TimeOf(daemon_->pid()));
    const auto start = Clock::now();
    std::this_thread::sleep_for(setting_.idle);
    const ProcessTime after = RH_TRY(TimeOf(daemon_->pid()));
    const double ms = MsSince(start);
    record_->Add(kNode, who_, kIdleCpu, "%", 100 * (after.cpu_ms - before.cpu_ms) / ms);
    record_->Add(kNode, who_, kWakeups, "/s", std::max(0.0, after.wakeups - before.wakeups) / ms * 1e3);
    return {};
  }

  const NodeDaemonSetting& setting_;
  Record* record_;
  const char* who_;
  const std::string directory_;
  DeviceManager kubelet_;
  std::unique_ptr<Daemon> daemon_;
  std::vector<std::string> ids_;
};

}  // namespace

Result<void> MeasureNodeDaemon(const NodeDaemonSetting& setting, Record* record) {
  RH_TRY(MakeDirectories(setting.root.Path(kKubeletDirectory)));
  return Measurement(setting, record).Run();
}

}  // namespace railhead::bench
