#include "bench/ipam_work.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "bench/contender.h"
#include "bench/ipam_series.h"
#include "bench/process.h"
#include "ipam/store/store.h"
#include "netns/base/files.h"
#include "netns/base/unique_fd.h"

namespace railhead::bench {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr int kRails = 8;

double MsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// One plugin with a state of its own.
class Plugin {
 public:
  Plugin(std::string path, std::string root, Json ipam) : path_(std::move(path)), root_(std::move(root)) {
    input_ =
        Json{{"cniVersion", "1.0.0"}, {"name", "bench"}, {"type", "none"}, {"ipam", std::move(ipam)}}.dump();
  }

  [[nodiscard]] Result<double> Run(const std::string& command, const std::string& container) const {
    const auto result =
        RH_TRY(RunProcess({path_,
                           {},
                           {"CNI_COMMAND=" + command, "CNI_CONTAINERID=" + container, "CNI_IFNAME=net1",
                            "CNI_NETNS=/proc/self/ns/net", "CNI_PATH=/none", "RAILHEAD_ROOT=" + root_},
                           input_}));
    return result.cost.wall_ms;
  }

 private:
  std::string path_;
  std::string root_;
  std::string input_;
};

class Measurement {
 public:
  Measurement(const IpamSetting& setting, Record* record) : setting_(setting), record_(record) {}

  Result<void> Run() {
    RH_TRY(ByFill(kAddEmpty, "empty", 0));
    RH_TRY(ByFill(kAddTaken, "taken", setting_.taken));
    RH_TRY(Crowded());
    RH_TRY(EightRails());
    RH_TRY(Burst());
    return Pods();
  }

 private:
  Result<std::string> Directory(const std::string& name) {
    const std::string path = setting_.disk + "/" + name;
    RH_TRY(MakeDirectories(path));
    return path;
  }

  Result<Plugin> Ours(const std::string& name, const std::string& subnet) {
    return Plugin(setting_.programs + "/railhead-ipam", RH_TRY(Directory("ours-" + name)),
                  {{"type", "railhead-ipam"}, {"subnet", subnet}});
  }
  Result<Plugin> HostLocal(const std::string& name, const std::string& subnet) {
    return Plugin(setting_.peers + "/host-local", "",
                  {{"type", "host-local"},
                   {"dataDir", RH_TRY(Directory("theirs-" + name))},
                   {"ranges", Json::array({Json::array({{{"subnet", subnet}}})})}});
  }

  // One after the other by turns, so that both have the same disk.
  Result<void> ByFill(const char* what, const std::string& name, int taken) {
    const Plugin ours = RH_TRY(Ours(name, "10.20.0.0/20"));
    const Plugin theirs = RH_TRY(HostLocal(name, "10.20.0.0/20"));
    for (int i = 0; i < taken; ++i) {
      for (const Plugin* plugin : {&ours, &theirs}) RH_TRY(plugin->Run("ADD", "taken" + std::to_string(i)));
    }
    for (int i = 0; i < setting_.rounds; ++i) {
      for (const auto& [plugin, who] : {std::pair(&ours, kIpam), std::pair(&theirs, kHostLocal)}) {
        const std::string container = "round" + std::to_string(i);
        record_->Add(kIpamGroup, who, what, "ms", RH_TRY(plugin->Run("ADD", container)));
        RH_TRY(plugin->Run("DEL", container));
      }
    }
    return {};
  }

  // The fill is made in one transaction; host-local would take hours.
  Result<void> Crowded() {
    const std::string subnet = "10.16.0.0/12";
    const Plugin ours = RH_TRY(Ours("crowded", subnet));
    RH_TRY(ours.Run("ADD", "first"));
    {
      const Root root(RH_TRY(Directory("ours-crowded")));
      const auto ranges = RH_TRY(RangeSet::Make({*IpPrefix::Parse(subnet), {}, {}, {}}));
      std::vector<OwnerClaim> claims;
      for (int i = 0; i < setting_.crowd; ++i) {
        OwnerClaim claim;
        claim.owner = {"bench", "crowd" + std::to_string(i), "net1"};
        claim.pools.push_back({subnet, ranges, {}});
        claims.push_back(std::move(claim));
      }
      AddressStore store = RH_TRY(AddressStore::Open(root));
      RH_TRY(store.Allocate(claims));
    }
    for (int i = 0; i < setting_.rounds; ++i)
      record_->Add(kIpamGroup, kIpam, kAddCrowded, "ms",
                   RH_TRY(ours.Run("ADD", "round" + std::to_string(i))));
    return {};
  }

  Result<Plugin> Rails(const std::string& name) {
    Json links = Json::array();
    for (int rail = 0; rail < kRails; ++rail)
      links.push_back({{"ifname", "rail" + std::to_string(rail)},
                       {"subnet", "10." + std::to_string(40 + rail) + ".0.0/16"}});
    return Plugin(setting_.programs + "/railhead-ipam", RH_TRY(Directory(name)),
                  {{"type", "railhead-ipam"}, {"links", std::move(links)}});
  }

  Result<void> EightRails() {
    const Plugin rails = RH_TRY(Rails("rails"));
    RH_TRY(rails.Run("ADD", "first"));
    for (int i = 0; i < setting_.rounds; ++i)
      record_->Add(kIpamGroup, kIpam, kAddEight, "ms", RH_TRY(rails.Run("ADD", "round" + std::to_string(i))));
    return {};
  }

  // `count` ADDs, `burst` of them at any time; seconds for all. `took`: of each, ms.
  Result<double> AtOnce(const Plugin& plugin, const std::string& prefix, int count,
                        std::vector<double>* took) const {
    std::atomic<int> next = 0;
    std::mutex mutex;
    std::optional<Error> failed;
    const auto start = Clock::now();
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(setting_.burst));
    for (int t = 0; t < setting_.burst; ++t) {
      threads.emplace_back([&] {
        for (int i = next++; i < count; i = next++) {
          auto ms = plugin.Run("ADD", prefix + std::to_string(i));
          const std::lock_guard lock(mutex);
          if (ms) took->push_back(*ms);
          if (!ms && !failed) failed = std::move(ms.error());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    const double seconds = MsSince(start) / 1e3;
    if (failed) return Fail(std::move(*failed));
    return seconds;
  }

  Result<void> Burst() {
    const Plugin ours = RH_TRY(Ours("burst", "10.20.0.0/16"));
    const Plugin theirs = RH_TRY(HostLocal("burst", "10.20.0.0/16"));
    // In parts by turns: what the one leaves to the disk, the other has to wait for, too.
    constexpr int kParts = 4;
    const int count = std::max(1, setting_.burst * setting_.burst_rounds / kParts);
    for (int part = 0; part < kParts; ++part) {
      for (const auto& [plugin, who] : {std::pair(&ours, kIpam), std::pair(&theirs, kHostLocal)}) {
        std::vector<double> took;
        const double seconds = RH_TRY(AtOnce(*plugin, "p" + std::to_string(part) + "-", count, &took));
        record_->Add(kIpamGroup, who, kThroughput, "/s", count / seconds);
        for (const double ms : took) record_->Add(kIpamGroup, who, kAddBurst, "ms", ms);
      }
    }
    return {};
  }

  // By turns, too: a disk that is shared is at times ten times as slow.
  Result<void> Pods() {
    const Plugin rails = RH_TRY(Rails("pods"));
    constexpr int kParts = 8;
    const int count = std::max(1, setting_.pods / kParts);
    double ours = 0;
    double disk = 0;
    for (int part = 0; part < kParts; ++part) {
      std::vector<double> took;
      ours += RH_TRY(AtOnce(rails, "p" + std::to_string(part) + "-", count, &took));
      disk += RH_TRY(SyncedCommits(count));
    }
    record_->Add(kIpamGroup, kIpam, kThousandPods, "s", ours);
    record_->Add(kIpamGroup, kSyncedCommits, kThousandPods, "s", disk);
    return {};
  }

  // What the disk needs for as many commits: LMDB syncs the pages, then the page that names them
  // the newest (its O_DSYNC descriptor), one commit after the other.
  [[nodiscard]] Result<double> SyncedCommits(int count) const {
    const std::string path = setting_.disk + "/commits";
    const UniqueFd pages(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    const UniqueFd meta(::open(path.c_str(), O_WRONLY | O_DSYNC | O_CLOEXEC));
    if (!pages.valid() || !meta.valid()) return FailSys(errno, "opening " + path);
    const std::array<char, 4096> page{};
    const auto write = [&](const UniqueFd& fd, int at) {
      return ::pwrite(fd.get(), page.data(), page.size(), static_cast<off_t>(page.size()) * at) ==
             static_cast<ssize_t>(page.size());
    };
    for (int i = 0; i < 64; ++i) {
      if (!write(pages, i)) return FailSys(errno, "writing " + path);
    }
    const auto start = Clock::now();
    for (int i = 0; i < count; ++i) {
      // So many pages of a tree does an allocation on eight rails change.
      for (int changed = 0; changed < kRails; ++changed) {
        if (!write(pages, 2 + (i + changed) % 60)) return FailSys(errno, "writing " + path);
      }
      if (::fdatasync(pages.get()) != 0 || !write(meta, i % 2)) return FailSys(errno, "syncing " + path);
    }
    return MsSince(start) / 1e3;
  }

  const IpamSetting& setting_;
  Record* record_;
};

}  // namespace

Result<void> MeasureIpam(const IpamSetting& setting, Record* record) {
  return Measurement(setting, record).Run();
}

}  // namespace railhead::bench
