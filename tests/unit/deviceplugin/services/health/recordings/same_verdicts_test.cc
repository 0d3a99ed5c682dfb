// A replay of a recording gives the same verdicts as the recording process. For every order of faults, over
// restarts and other rules. (For files that became too long see recorder_test.cc.)
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/services/health/drains.h"
#include "deviceplugin/services/health/replay.h"
#include "deviceplugin/services/health/watch.h"
#include "tests/support/rapidcheck.h"
#include "tests/support/sysfs/fake_sysfs.h"
#include "tests/unit/deviceplugin/services/health/fake_driver_source.h"
#include "tests/unit/deviceplugin/services/health/support.h"

namespace railhead::testing {
namespace {

using std::chrono::milliseconds;

constexpr const char* kCarrier = "/sys/class/net/pf0/carrier";
constexpr const char* kFatal = "/sys/bus/pci/devices/0000:43:00.0/aer_dev_fatal";
constexpr const char* kLinkErrors =
    "/sys/class/infiniband/mlx5_0/ports/1/counters/local_link_integrity_errors";

inventory::NicFunction FunctionOf(const std::string& id, int vf_index = -1) {
  inventory::NicFunction function;
  function.id = id;
  function.is_vf = vf_index >= 0;
  function.vf_index = vf_index;
  function.pf = *PciAddress::Parse(kPf);
  function.pf_name = "pf0";
  function.vf_count = function.is_vf ? 0 : 2;
  function.numvfs = function.vf_count;
  return function;
}

health::HealthTime TimeAt(milliseconds at) {
  const health::HealthTime begin = At(0);
  return {begin.steady + at, begin.wall + at};
}

std::string Words(const health::HealthChange& change, std::chrono::system_clock::time_point begin) {
  std::string words = std::to_string(std::chrono::duration_cast<milliseconds>(change.time - begin).count()) +
                      " " + change.device + (change.healthy ? " Healthy" : " Unhealthy") +
                      (change.flipped ? "!" : "");
  for (const auto& [sign, reasons] :
       {std::pair('=', &change.reasons), {'+', &change.started}, {'-', &change.ended}}) {
    for (const health::HealthReason& reason : *reasons)
      words.append(1, ' ').append(1, sign).append(reason.text);
  }
  return words;
}

// A node with a PF and two VFs. The test may do anything to them.
class LiveNode {
 public:
  LiveNode() {
    sysfs_.AddPf({.address = kPf, .netdev = "pf0", .rdma = "mlx5_0"});
    MakeVfs();
    Restart();
  }

  void Do(std::uint8_t what) {
    switch (what % 17) {
      case 0:
        return SetLink("0", "1: DOWN");
      case 1:
      case 2:
        return SetLink("1", "4: ACTIVE");
      case 3:
        return RemoveVfs();
      case 4:
      case 5:
        if (vfs_ == 0) MakeVfs();
        return;
      case 6:
        if (vfs_ > 0) sysfs_.Unbind(kVf);
        return;
      case 7:
        return Toggle(kVf2);
      case 8:
        sysfs_.Write(kFatal, "TOTAL_ERR_FATAL " + std::to_string(++fatal_) + "\n");
        return;
      case 9:
        sysfs_.Write(kLinkErrors, std::to_string(++link_errors_) + "\n");
        return;
      case 10:
        source_->statistics["pf0"]["tx_pause_storm_warning_events"] += 4;
        return;
      case 11:
        source_->failed[kPf] =
            source_->failed[kPf].empty() ? std::vector<std::string>{"fw_fatal"} : std::vector<std::string>{};
        return;
      case 12:
        return OtherRules();
      case 13:
        return Restart();
      case 14:
        watch_->ReadAllNow();
        return;
      case 15:
        return Hide();
      default:
        return Drain();
    }
  }

  void Tick(milliseconds passed) {
    now_ += passed;
    const health::HealthTick tick = watch_->Tick(
        functions_, [this](const std::string& id) { return in_use_.contains(id); }, TimeAt(now_));
    if (!begin_) begin_ = TimeAt(now_).wall;
    for (const health::HealthChange& change : tick.changes) said_.push_back(Words(change, *begin_));
  }

  [[nodiscard]] std::vector<std::string> Said() const { return said_; }
  [[nodiscard]] std::vector<health::DeviceHealth> All() const { return watch_->All(); }
  [[nodiscard]] Root root() const { return sysfs_.root(); }
  [[nodiscard]] std::chrono::system_clock::time_point begin() const { return *begin_; }

 private:
  void SetLink(const char* carrier, const char* port) {
    sysfs_.Remove(kCarrier);
    sysfs_.Write(kCarrier, std::string(carrier) + "\n");
    sysfs_.Write("/sys/class/infiniband/mlx5_0/ports/1/state", std::string(port) + "\n");
  }
  // The PF cannot be read until its link is set again.
  void Hide() {
    sysfs_.Remove(kCarrier);
    sysfs_.Write(std::string(kCarrier) + "/a_directory", "");
  }
  void Drain() {
    const std::string id = drained_ ? kPf : kVf;
    if (!health::RemoveDrain(sysfs_.root(), id).value_or(false))
      (void)health::AddDrain(sysfs_.root(), {id, id, "to be looked at", At(0).wall});
    drained_ = !drained_;
  }
  void SetVfs(int count) {
    vfs_ = count;
    sysfs_.Write(std::string("/sys/bus/pci/devices/") + kPf + "/sriov_numvfs", std::to_string(count) + "\n");
    functions_ = {FunctionOf(kPf)};
    functions_[0].vf_count = functions_[0].numvfs = count;
    if (count > 0) functions_.insert(functions_.end(), {FunctionOf(kVf, 0), FunctionOf(kVf2, 1)});
    if (watch_) watch_->ReadAllNow();
  }
  void MakeVfs() {
    sysfs_.AddVfs(kPf, 2);
    SetVfs(2);
  }
  void RemoveVfs() {
    if (vfs_ == 0) return;
    for (const char* vf : {kVf, kVf2}) {
      sysfs_.Unbind(vf);
      sysfs_.Remove(std::string("/sys/bus/pci/devices/") + vf);
    }
    SetVfs(0);
  }
  void Toggle(const std::string& id) {
    if (!in_use_.insert(id).second) in_use_.erase(id);
  }
  void OtherRules() {
    rules_.Of(health::HealthRule::kLink).enabled = !rules_.Of(health::HealthRule::kLink).enabled;
    rules_.Of(health::HealthRule::kGone).up_after += std::chrono::seconds(5);
    watch_->SetRules(rules_);
  }
  void Restart() {
    watch_ = std::make_unique<health::HealthWatch>(sysfs_.root(), rules_, OpenShared(source_), probes_,
                                                   TimeAt(now_));
  }

  FakeSysfs sysfs_;
  health::HealthRules rules_ = [] {
    health::HealthRules rules;
    rules.Of(health::HealthRule::kPauseStorm).enabled = true;
    return rules;
  }();
  const std::shared_ptr<FakeDriverSource> source_ = std::make_shared<FakeDriverSource>();
  ProbeWorkers probes_;
  std::unique_ptr<health::HealthWatch> watch_;
  std::vector<inventory::NicFunction> functions_;
  std::set<std::string> in_use_;
  int vfs_ = 0;
  bool drained_ = false;  // the VF was drained or returned last, not the PF
  int fatal_ = 0;
  int link_errors_ = 0;
  milliseconds now_{0};
  std::optional<std::chrono::system_clock::time_point> begin_;
  std::vector<std::string> said_;
};

std::vector<std::string> ReplayedWords(const health::ReplayResult& replayed,
                                       std::chrono::system_clock::time_point begin) {
  std::vector<std::string> words;
  for (const health::ReplayRound& round : replayed.rounds) {
    for (const health::HealthChange& change : round.changes) words.push_back(Words(change, begin));
  }
  return words;
}

std::map<std::string, bool> States(const std::vector<health::DeviceHealth>& devices) {
  std::map<std::string, bool> states;
  for (const health::DeviceHealth& device : devices) states[device.id] = device.healthy;
  return states;
}

TEST(SameVerdictsTest, AReplaySaysWhatWasSaid) {
  const bool holds = rc::check([](const std::vector<std::pair<std::uint8_t, std::uint8_t>>& steps) {
    LiveNode node;
    node.Tick(milliseconds(0));
    for (const auto& [what, passed] : steps) {
      node.Do(what);
      // From just after an event to a quarter of an hour. Timer ticks are a bit late.
      node.Tick(passed % 8 == 0 ? milliseconds(passed * 3500 + 1) : milliseconds(passed % 32 * 751 + 1));
      node.Tick(milliseconds(5003));
    }
    // The last rounds may still wait to be written.
    node.Do(8);
    node.Tick(milliseconds(60'001));
    const auto text = health::ReadOwnRecording(node.root());
    RC_ASSERT(text.has_value() && text->has_value());
    const auto recording = health::ParseRecording(**text, "recording");
    if (!recording) RC_FAIL(recording.error().message);
    const health::ReplayResult replayed = Replay(*recording, std::nullopt);
    auto said = node.Said();
    auto again = ReplayedWords(replayed, node.begin());
    // The replay reports the devices of one round in the order of their names.
    std::sort(said.begin(), said.end());
    std::sort(again.begin(), again.end());
    RC_ASSERT(again == said);
    RC_ASSERT(States(replayed.end) == States(node.All()));
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace railhead::testing
