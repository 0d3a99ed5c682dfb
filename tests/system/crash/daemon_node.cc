#include "tests/system/crash/daemon_node.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "tests/support/listening.h"

namespace railhead::crash {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

constexpr std::chrono::seconds kLimit{60};
constexpr std::chrono::milliseconds kPoll{5};
constexpr std::size_t kShown = 3000;  // bytes of the log
constexpr const char* kCarrier = "/sys/class/net/pf0/carrier";
constexpr const char* kFabric = "/etc/railhead/fabric.json";
constexpr const char* kWantedDirectory = "/config";
constexpr const char* kWanted = "/config/fabric.json";
constexpr const char* kConfig = "/etc/railhead/config.json";
constexpr const char* kStateDirectories[] = {"/run", "/var"};

Plugin PluginOf(const DaemonSetting& setting) {
  Plugin plugin;
  plugin.directory = setting.programs;
  plugin.type = "railhead";
  plugin.ifname = "net1";
  plugin.root = setting.root;
  // The stand-ins have no RDMA devices, so there can be no NCCL configuration.
  plugin.config =
      R"({"cniVersion": "1.0.0", "name": "crash", "type": "railhead", "linkTimeoutSeconds": 120, "previousDelTimeoutSeconds": 20,
          "conflictProbeMs": 0, "announce": false, "ncclConfig": "off"})";
  return plugin;
}

std::string UidOf(const Pod& pod) {
  return "uid-of-" + pod.id;
}

}  // namespace

DaemonNode::DaemonNode(DaemonSetting setting)
    : setting_(std::move(setting)), root_(setting_.root), calls_(PluginOf(setting_)) {}

DaemonNode::~DaemonNode() {
  KillDaemon();
  RetireKubelet();
  for (std::thread& thread : ending_) thread.join();
}

void DaemonNode::RetireKubelet() {
  if (!kubelet_) return;
  ending_.emplace_back([kubelet = std::move(kubelet_), directory = KubeletDirectory()]() mutable {
    kubelet.reset();
    std::error_code error;
    fs::remove_all(directory, error);
  });
}

Result<void> DaemonNode::Reset() {
  KillDaemon();
  RetireKubelet();
  directory_ = "/kubelet" + std::to_string(++kubelets_);
  given_.clear();
  expected_.clear();
  named_ = follows_ = false;
  std::error_code error;
  for (const char* directory : kStateDirectories) fs::remove_all(root_.Path(directory), error);
  fs::remove(LogPath(), error);
  SetCarrier(true);
  RH_TRY(MakeDirectories(KubeletDirectory()));
  RH_TRY(MakeDirectories(root_.Path("/var/lib/kubelet/device-plugins")));
  RH_TRY(Configure(kLate));
  kubelet_ = std::make_unique<testing::DeviceManager>(KubeletDirectory());
  return kubelet_->Start();
}

Result<void> DaemonNode::LoseRun() {
  std::error_code error;
  fs::remove_all(root_.Path("/run"), error);
  fs::remove_all(root_.Path("/var/run"), error);
  return {};
}

void DaemonNode::LetAnHourPass() const {
  std::error_code error;
  for (const char* directory : {"/run", "/var"}) {
    for (fs::recursive_directory_iterator at(root_.Path(directory), error), end; at != end;
         at.increment(error)) {
      if (error) return;
      timespec times[2] = {{::time(nullptr) - 3600, 0}, {::time(nullptr) - 3600, 0}};
      (void)::utimensat(AT_FDCWD, at->path().c_str(), times, AT_SYMLINK_NOFOLLOW);
    }
  }
}

Result<void> DaemonNode::Configure(const std::string& late) {
  const std::string rail = R"({"name": "railN", "pf": "pfN", "subnet": "10.10N.0.0/24",
      "nodeRanges": {"node0": "10.10N.0.10-10.10N.0.99"}})";
  std::string rails;
  for (const char number : {'0', '1'}) {
    if (!rails.empty()) rails.append(", ");
    for (const char c : rail) rails += c == 'N' ? number : c;
  }
  const std::string text = R"({"version": 1, "rails": [)" + rails + R"(],
    "addresses": {"reuseDelaySeconds": 0}, "policy": {"networks": [{"allow": ["*"], "devices": "any"}]},
    "health": {"intervalSeconds": 1, "vfSeconds": 1, "link": {"downAfter": 0, "upAfter": 0}},
    "pools": [{"resource": ")" +
                           kEarly + R"(", "rails": ["rail0"]},
              {"resource": ")" +
                           late + R"(", "rails": ["rail1"], "binding": "late"}]})";
  const auto count = static_cast<std::size_t>(setting_.vfs);
  // A resource that railheadd offers no longer stays registered, with an empty list.
  for (auto& [resource, expected] : expected_) expected = {};
  expected_[kEarly] = {count, count};
  expected_[late] = {count, count};
  return WriteAtomic(root_.Path(follows_ ? kWanted : kFabric), text, Sync::kVolatile, 0644);
}

Result<void> DaemonNode::Follow() {
  follows_ = true;
  RH_TRY(MakeDirectories(root_.Path(kWantedDirectory)));
  return Configure(kLate);
}

Result<void> DaemonNode::ConfigureNamed() {
  named_ = true;
  expected_.clear();
  const auto count = static_cast<std::size_t>(setting_.vfs);
  expected_[kNamed] = {count, count};
  return WriteAtomic(root_.Path(kConfig),
                     R"({"resourceList": [{"resourceName": "named", "selectors": {"pfNames": ["pf0"]}}]})",
                     Sync::kVolatile, 0644);
}

void DaemonNode::SetCarrier(bool on) {
  (void)WriteInPlace(root_.Path(kCarrier), on ? "1\n" : "0\n");
}

Result<void> DaemonNode::StartDaemon(std::function<bool(const Change&)> kill_before) {
  KillDaemon();
  Command command;
  command.arguments = {
      setting_.programs + "/railheadd", "--kubelet-dir", directory_,          "--log-level", "debug",
      "--reconcile-interval",           "3600",          "--resync-interval", "3600"};
  if (follows_) command.arguments.insert(command.arguments.end(), {"--follow-config", kWantedDirectory});
  if (named_) command.arguments.insert(command.arguments.end(), {"--config-file", kConfig, "--use-cdi"});
  command.environment = {"RAILHEAD_ROOT=" + root_.prefix(), "PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  command.input = "";
  command.errors = LogPath();
  Tracing tracing;
  tracing.kill_before = std::move(kill_before);
  tracing.changes_below = root_.prefix() + "/";
  tracing.started = [this](pid_t pid) { pid_ = pid; };
  pid_ = 0;
  ended_ = false;
  daemon_ = std::thread([this, command, tracing] {
    result_ = Trace(command, tracing);
    ended_ = true;
  });
  // AwaitEnd() reports errors.
  while (pid_ == 0 && !ended_) std::this_thread::sleep_for(kPoll);
  return {};
}

void DaemonNode::Signal(int signal) const {
  if (pid_ > 0 && !ended_) (void)::kill(pid_, signal);
}

void DaemonNode::KillDaemon() {
  if (!daemon_.joinable()) return;
  Signal(SIGKILL);
  daemon_.join();
}

Result<int> DaemonNode::AwaitEnd() {
  const auto deadline = Clock::now() + kLimit;
  while (!ended_ && Clock::now() < deadline) std::this_thread::sleep_for(kPoll);
  const bool late = !ended_;
  KillDaemon();
  if (late) return Fail(ErrorCode::kTimeout, "railheadd does not end\n" + EndOfLog());
  RH_TRY(result_);
  return result_->status;
}

Result<void> DaemonNode::Await(const std::string& what, const std::function<bool()>& condition) const {
  const auto deadline = Clock::now() + kLimit;
  while (!condition()) {
    if (!IsRunning())
      return Fail(ErrorCode::kConflict, "railheadd has ended before " + what + "\n" + EndOfLog());
    if (Clock::now() >= deadline) return Fail(ErrorCode::kTimeout, "waiting for " + what + "\n" + EndOfLog());
    std::this_thread::sleep_for(kPoll);
  }
  return {};
}

// The process's number is part of its sockets' names.
bool DaemonNode::IsServed(const std::string& resource) const {
  return kubelet_->OnlyServer(resource).find("-" + std::to_string(pid_) + "-") != std::string::npos;
}

bool DaemonNode::IsAsExpected() const {
  for (const auto& [resource, expected] : expected_) {
    if (expected.devices > 0 && !IsServed(resource)) return false;
    const auto devices = kubelet_->Present(resource);
    const auto healthy = static_cast<std::size_t>(
        std::count_if(devices.begin(), devices.end(), [](const auto& device) { return device.healthy; }));
    // kubelet still knows a resource for a while after its plugin has gone.
    const bool all_there = devices.size() == expected.devices || expected.devices == 0;
    if (!all_there || healthy != expected.healthy) return false;
  }
  return true;
}

Result<void> DaemonNode::AwaitReady() const {
  RH_TRY(Await("kubelet to see what is configured", [&] { return IsAsExpected(); }));
  return Await("health and the socket for ADD", [&] {
    return Exists(root_.Path("/run/railhead/health.json")) &&
           testing::SomebodyListens(paths::BindSocket(root_));
  });
}

Result<void> DaemonNode::Allocate(const std::string& resource, std::size_t count) {
  const auto seen = RH_TRY(kubelet_->Allocate(resource, count));
  given_.push_back({resource, seen.ids});
  return {};
}

Result<void> DaemonNode::WriteCheckpoint() const {
  Json entries = Json::array();
  const Pod* pods[] = {&setting_.first, &setting_.other};
  std::size_t next = 0;
  for (const Given& given : given_) {
    if (next == std::size(pods)) break;
    entries.push_back({{"PodUID", UidOf(*pods[next++])},
                       {"ContainerName", "main"},
                       {"ResourceName", given.resource},
                       {"DeviceIDs", {{"-1", given.ids}}},
                       {"AllocResp", ""}});
  }
  return WriteAtomic(paths::KubeletCheckpoint(root_),
                     Json{{"Data", {{"PodDeviceEntries", entries}}}, {"Checksum", 1}}.dump(),
                     Sync::kVolatile);
}

Result<TraceResult> DaemonNode::Cni(const std::string& command, const Pod& pod,
                                    const Tracing& tracing) const {
  Pod with = pod;
  with.arguments = "IgnoreUnknown=1;K8S_POD_UID=" + UidOf(pod);
  return calls_.Call(command, with, tracing);
}

void DaemonNode::RestartKubelet() {
  kubelet_->Stop();
  (void)kubelet_->Start();
}

std::string DaemonNode::EndOfLog() const {
  const auto log = ReadFile(LogPath());
  if (!log || !*log) return "";
  return (*log)->size() <= kShown ? **log : "..." + (*log)->substr((*log)->size() - kShown);
}

}  // namespace railhead::crash
