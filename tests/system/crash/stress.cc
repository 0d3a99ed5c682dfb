#include "tests/system/crash/stress.h"

#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "tests/system/crash/pod_netns.h"

namespace railhead::crash {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTryAgainLater = 11;  // CNI specification, "Error codes"
constexpr int kMostKillsInARow = 3;
constexpr auto kOrphanLimit = std::chrono::seconds(120);
constexpr auto kSettleLimit = std::chrono::seconds(30);
constexpr auto kPoll = std::chrono::milliseconds(10);

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

double MillisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// What the workers share: kubelet's view of the node, and the results.
class Node {
 public:
  explicit Node(std::vector<std::string> devices) : free_(std::move(devices)) {}

  std::string TakeDevice(std::mt19937_64& random) {
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [&] { return !free_.empty(); });
    const auto at = free_.begin() + static_cast<std::ptrdiff_t>(random() % free_.size());
    std::string device = *at;
    free_.erase(at);
    return device;
  }
  void GiveBack(const std::string& device) {
    const std::lock_guard lock(mutex_);
    free_.push_back(device);
    freed_.notify_one();
  }

  void Hold(const std::string& address, const std::string& pod) {
    const std::lock_guard lock(mutex_);
    const auto [holder, is_new] = holders_.try_emplace(address, pod);
    if (!is_new)
      report.wrong.push_back("address " + address + " was given to " + pod + ", but " + holder->second +
                             " has it");
  }
  // Call it before DEL: afterwards the addresses may belong to another pod.
  void LetGo(const std::vector<std::string>& addresses) {
    const std::lock_guard lock(mutex_);
    for (const auto& address : addresses) holders_.erase(address);
  }

  template <typename Change>
  void Report(const Change& change) {
    const std::lock_guard lock(mutex_);
    change(report);
  }
  void Wrong(const std::string& what) {
    Report([&](StressReport& r) { r.wrong.push_back(what); });
  }

  void Step() { ++steps_; }
  [[nodiscard]] long steps() const { return steps_; }

  StressReport report;  // read it only after the workers' end

 private:
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<std::string> free_;
  std::map<std::string, std::string> holders_;
  std::atomic<long> steps_ = 0;
};

// How many system calls ADD and DEL make, per process.
struct Lengths {
  std::vector<int> add;
  std::vector<int> del;
};

class Worker {
 public:
  Worker(const StressSetting& setting, const CniCalls& calls, const Lengths& lengths, Node& node, int number)
      : setting_(setting),
        calls_(calls),
        lengths_(lengths),
        node_(node),
        random_(setting.seed * 1000 + static_cast<std::uint64_t>(number)) {}

  void Run(std::atomic<int>& next) {
    for (int number = next++; number < setting_.pods; number = next++) {
      if (const auto lived = Live(number); !lived) node_.Wrong(Describe(lived.error()));
    }
  }

 private:
  bool Happens(int percent) { return static_cast<int>(random_() % 100) < percent; }

  Tracing RandomKill(const std::vector<int>& lengths) {
    const auto process = random_() % lengths.size();
    const auto calls = static_cast<std::uint64_t>(std::max(lengths[process], 1));
    Tracing tracing;
    tracing.at = CallPoint{static_cast<int>(process), static_cast<int>(random_() % calls) + 1};
    return tracing;
  }

  Result<void> Live(int number) {
    Pod pod{"stress-" + std::to_string(number), ""};
    pod.netns = setting_.netns_directory + "/" + pod.id;
    RH_TRY(MakePodNetns(pod.netns));
    const std::string device = node_.TakeDevice(random_);
    config_ = Replaced(calls_.plugin().config, "DEVICE", device);
    const auto addresses = RH_TRY(Attach(pod));
    const bool early = Happens(setting_.early_percent);
    node_.LetGo(addresses);
    if (early) node_.GiveBack(device);
    RH_TRY(Detach(pod, !addresses.empty()));
    if (!early) node_.GiveBack(device);
    return RemovePodNetns(pod.netns);
  }

  // The pod's addresses; none when its ADD was killed.
  Result<std::vector<std::string>> Attach(const Pod& pod) {
    const bool kill = Happens(setting_.kill_percent);
    for (;;) {
      const auto start = Clock::now();
      const auto added = RH_TRY(Call("ADD", pod, kill ? RandomKill(lengths_.add) : Tracing{}));
      if (WIFSIGNALED(added.status)) {
        node_.Report([](StressReport& report) { ++report.killed_adds; });
        return std::vector<std::string>{};
      }
      if (added.Succeeded()) {
        if (!kill)
          node_.Report([&](StressReport& report) { report.add_ms.push_back(MillisecondsSince(start)); });
        return Attached(pod, added.output);
      }
      // Its IPAM child was killed, or the device's last DEL is still running.
      if (added.reached) return std::vector<std::string>{};
      if (ErrorCodeOf(added.output) != kTryAgainLater) {
        return Fail(ErrorCode::kConflict, "ADD of " + pod.id + ": " + added.output);
      }
      node_.Report([](StressReport& report) { ++report.retried; });
      std::this_thread::sleep_for(kPoll);
    }
  }

  Result<std::vector<std::string>> Attached(const Pod& pod, const std::string& output) {
    const auto addresses = RH_TRY(AddressesOf(output));
    for (const auto& address : addresses) node_.Hold(address, pod.id);
    node_.Report([](StressReport& report) { ++report.attached; });
    if (!Happens(setting_.check_percent)) return addresses;
    const auto checked = RH_TRY(Check(pod, output));
    if (!checked.Succeeded()) node_.Wrong("CHECK of " + pod.id + ": " + checked.output);
    return addresses;
  }

  Result<TraceResult> Check(const Pod& pod, const std::string& result) {
    node_.Step();
    const auto end = config_.rfind('}');
    return calls_.CallWith(config_.substr(0, end) + ", \"prevResult\": " + result + "}", "CHECK", pod);
  }

  // Repeats DEL until it succeeds.
  Result<void> Detach(const Pod& pod, bool measured) {
    for (int kills = 0; kills < kMostKillsInARow && Happens(setting_.kill_percent); ++kills) {
      measured = false;
      const auto killed = RH_TRY(Call("DEL", pod, RandomKill(lengths_.del)));
      if (killed.reached) node_.Report([](StressReport& report) { ++report.killed_dels; });
    }
    const auto start = Clock::now();
    const auto deleted = RH_TRY(Call("DEL", pod, Tracing{}));
    if (!deleted.Succeeded()) return Fail(ErrorCode::kConflict, "DEL of " + pod.id + ": " + deleted.output);
    if (measured)
      node_.Report([&](StressReport& report) { report.del_ms.push_back(MillisecondsSince(start)); });
    return {};
  }

  Result<TraceResult> Call(const std::string& command, const Pod& pod, const Tracing& tracing) {
    node_.Step();
    return calls_.CallWith(config_, command, pod, tracing);
  }

  const StressSetting& setting_;
  const CniCalls& calls_;
  const Lengths& lengths_;
  Node& node_;
  std::mt19937_64 random_;
  std::string config_;
};

std::vector<int> LengthsOf(const TraceResult& traced) {
  std::vector<int> lengths;
  for (const auto& process : traced.processes) lengths.push_back(static_cast<int>(process.calls.size()));
  return lengths;
}

Result<Lengths> Measure(const StressSetting& setting, const CniCalls& calls) {
  const Pod pod{"stress-first", setting.netns_directory + "/stress-first"};
  const std::string config = Replaced(calls.plugin().config, "DEVICE", setting.devices.at(0));
  Tracing counting;
  counting.count = true;
  RH_TRY(MakePodNetns(pod.netns));
  const auto add = RH_TRY(calls.CallWith(config, "ADD", pod, counting));
  if (!add.Succeeded()) return Fail(ErrorCode::kInvalid, "an undisturbed ADD fails: " + add.output);
  const auto del = RH_TRY(calls.CallWith(config, "DEL", pod, counting));
  if (!del.Succeeded()) return Fail(ErrorCode::kInvalid, "an undisturbed DEL fails: " + del.output);
  RH_TRY(RemovePodNetns(pod.netns));
  return Lengths{LengthsOf(add), LengthsOf(del)};
}

// Ends the program when the workers make no progress.
class Watchdog {
 public:
  Watchdog(const Node& node, std::chrono::seconds patience)
      : thread_([this, &node, patience] { Watch(node, patience); }) {}
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

 private:
  void Watch(const Node& node, std::chrono::seconds patience) {
    std::unique_lock lock(mutex_);
    for (long last = -1; node.steps() != last;) {
      last = node.steps();
      if (changed_.wait_for(lock, patience, [&] { return over_; })) return;
    }
    (void)std::fprintf(stderr, "deadlock: no call has begun for %lld s\n",
                       static_cast<long long>(patience.count()));
    std::_Exit(1);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

Result<void> ExpectSame(const StressSetting& setting, const Snapshot& before, StressReport& report) {
  const auto deadline = Clock::now() + kSettleLimit;
  for (;;) {
    RH_TRY(AwaitOrphans(kOrphanLimit));
    const auto difference = Difference(before, RH_TRY(TakeSnapshot(setting.world)));
    if (difference.empty()) return {};
    if (Clock::now() >= deadline) {
      report.wrong.push_back("the state is another one than before:\n" + difference);
      return {};
    }
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace

Result<StressReport> RunStress(const StressSetting& setting, const Plugin& plugin) {
  const CniCalls calls(plugin);
  const Snapshot before = RH_TRY(TakeSnapshot(setting.world));
  const Lengths lengths = RH_TRY(Measure(setting, calls));
  Node node(setting.devices);
  std::atomic<int> next = 0;
  const auto start = Clock::now();
  {
    const Watchdog watchdog(node, setting.patience);
    std::vector<std::thread> workers;
    for (int number = 0; number < setting.workers; ++number) {
      workers.emplace_back([&, number] { Worker(setting, calls, lengths, node, number).Run(next); });
    }
    for (auto& worker : workers) worker.join();
  }
  node.report.seconds = MillisecondsSince(start) / 1000;
  RH_TRY(ExpectSame(setting, before, node.report));
  return std::move(node.report);
}

}  // namespace railhead::crash
