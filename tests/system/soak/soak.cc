#include "tests/system/soak/soak.h"

#include <algorithm>
#include <cstdio>

#include "cni/state/journal.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "tests/system/crash/pod_netns.h"
#include "tests/system/soak/invariants.h"
#include "tests/system/soak/node_acts.h"
#include "tests/system/soak/plan.h"
#include "tests/system/soak/pod_acts.h"

namespace railhead::soak {
namespace {

// The soak may take this many times longer, until rare acts have come often enough.
constexpr int kMostPatience = 20;
constexpr int kSecondsPerMinute = 60;

class Soak {
 public:
  explicit Soak(const SoakSetting& setting)
      : setting_(setting),
        node_(setting.node),
        invariants_(node_),
        slots_(setting.slots),
        planner_(setting.seed, slots_.size(), FirstLate(), setting.node.hardware) {}

  Result<void> Begin() {
    const Node::Step step(node_, "the beginning");
    node_.StartDaemon();
    RH_TRY(node_.AwaitDaemon());
    Slot first = slots_.front();
    Come(node_, first, 0, 0);
    RH_TRY(crash::RemovePodNetns(first.pod.netns));
    RH_TRY(node_.Measure(first));
    return invariants_.ReadBaseline();
  }

  SoakReport Run() {
    const auto start = Clock::now();
    const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    SoakReport report;
    const auto goes_on = [&] {
      if (!node_.wrong().empty() || (setting_.rounds > 0 && report.rounds >= setting_.rounds)) return false;
      if (seconds() < setting_.seconds) return true;
      return !Missing().empty() && seconds() < setting_.seconds * kMostPatience;
    };
    while (goes_on()) {
      LiveRound(planner_.Next());
      ++report.rounds;
      (void)std::printf("round %d is over after %.1f s\n", report.rounds, seconds());
      (void)std::fflush(stdout);
    }
    invariants_.ExpectNoGrowth();
    if (setting_.rounds == 0 && node_.wrong().empty() && !Missing().empty())
      node_.Wrong("drawn too seldom: " + Missing());
    report.seconds = seconds();
    report.counts = node_.counts();
    report.codes = node_.codes();
    report.longest = node_.longest();
    report.wrong = node_.wrong();
    return report;
  }

 private:
  [[nodiscard]] std::size_t FirstLate() const {
    const auto late =
        std::find_if(setting_.slots.begin(), setting_.slots.end(), [](const Slot& s) { return s.late; });
    return static_cast<std::size_t>(late - setting_.slots.begin());
  }

  // Acts that came less often than required.
  [[nodiscard]] std::string Missing() const {
    std::string missing;
    for (const auto& [name, per_minute] : LeastPerMinute(setting_.node.hardware)) {
      const int least = std::max(1, per_minute * setting_.seconds / kSecondsPerMinute);
      const auto count = node_.counts().find(name);
      const int drawn = count == node_.counts().end() ? 0 : count->second;
      if (drawn >= least) continue;
      missing += name + " " + std::to_string(drawn) + " of " + std::to_string(least) + "; ";
    }
    return missing;
  }

  void LiveRound(const Round& round) {
    for (const Wave& wave : round.waves) LiveWave(wave);
    Settle(round.settlement);
  }

  void Tell(const Wave& wave) const {
    if (!setting_.verbose) return;
    (void)std::printf("  wave: %s", NameOf(wave.node).c_str());
    for (const Choice& choice : wave.choices)
      (void)std::printf(", %s of soak-%d on %s", NameOf(choice.act).c_str(), choice.pod,
                        slots_.at(choice.slot).device.c_str());
    (void)std::printf("\n");
    (void)std::fflush(stdout);
  }

  void LiveWave(const Wave& wave) {
    Tell(wave);
    const Node::Step step(node_, "a wave with " + NameOf(wave.node));
    WriteCheckpoint(wave);
    NodeEvent event(node_, slots_, wave);
    const Weather weather = event.Begin();
    std::vector<std::thread> acts;
    const bool cuts = Cuts(wave.node);
    for (const Choice& choice : wave.choices) {
      if (cuts) break;  // the event does it
      acts.emplace_back([&, choice] { Do(node_, slots_.at(choice.slot), choice, weather); });
    }
    event.Beside();
    for (auto& act : acts) act.join();
    event.End();
    invariants_.Sample();
    std::vector<Slot*> leaving;
    for (const Choice& choice : wave.choices) {
      if (Ends(choice.act)) leaving.push_back(&slots_.at(choice.slot));
    }
    LeaveAtOnce(leaving);
  }

  static bool Ends(PodAct act) {
    return act == PodAct::kDel || act == PodAct::kDelTwice || act == PodAct::kGone;
  }

  void LeaveAtOnce(const std::vector<Slot*>& slots) {
    std::vector<std::thread> leaving;
    leaving.reserve(slots.size());
    for (Slot* slot : slots) leaving.emplace_back([&, slot] { Leave(node_, *slot); });
    for (auto& pod : leaving) pod.join();
  }

  // Writes kubelet's checkpoint, which gives railheadd the pods' slots.
  void WriteCheckpoint(const Wave& wave) {
    std::map<std::size_t, std::string> pods;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].late && slots_[i].number != 0) pods[i] = "soak-" + std::to_string(slots_[i].number);
    }
    for (const Choice& choice : wave.choices) {
      if (slots_.at(choice.slot).late) pods[choice.slot] = "soak-" + std::to_string(choice.pod);
    }
    std::string entries;
    for (const auto& [slot, pod] : pods) {
      if (!entries.empty()) entries += ", ";
      entries += R"({"PodUID": "uid-of-)" + pod +
                 R"(", "ContainerName": "main", "ResourceName": "railhead.io/late",
        "DeviceIDs": {"-1": [")" +
                 slots_[slot].device + R"("]}, "AllocResp": ""})";
    }
    const auto written = WriteAtomic(
        paths::KubeletCheckpoint(node_.root()),
        R"({"Data": {"PodDeviceEntries": [)" + entries + R"(], "RegisteredDevices": {}}, "Checksum": 1})",
        Sync::kVolatile);
    if (!written) node_.Wrong(Describe(written.error()));
  }

  void Settle(Settlement settlement) {
    LeaveAll(settlement);
    const Node::Step step(node_, "what is looked at after " + NameOf(settlement));
    NameAll();
    invariants_.Expect();
  }

  void LeaveAll(Settlement settlement) {
    const Node::Step step(node_, NameOf(settlement));
    node_.Count(NameOf(settlement));
    const auto now = Clock::now();
    if (settlement == Settlement::kGc) {
      for (Slot& slot : slots_) node_.LetGo(slot, now);
      Collect();
    }
    if (settlement == Settlement::kReconciler) {
      for (Slot& slot : slots_) {
        if (slot.number == 0 || !Exists(slot.pod.netns)) continue;
        node_.LetGo(slot, now);
        (void)crash::RemovePodNetns(slot.pod.netns);
      }
      if (!Await([&] { return IsJournalEmpty(); }))
        node_.Wrong("railheadd has not restored what has no namespace any more");
    }
    std::vector<Slot*> all;
    for (Slot& slot : slots_) all.push_back(&slot);
    LeaveAtOnce(all);
  }

  [[nodiscard]] bool IsJournalEmpty() const {
    const auto scan = Journal(node_.root()).Scan();
    return scan && scan->entries.empty() && scan->unreadable.empty();
  }

  // An interrupted reset that railheadd completes gives a NIC the name from before the reset. So this waits
  // for the end of all of them.
  void NameAll() {
    const auto is_unnamed = [](const Slot& slot) { return slot.unnamed; };
    if (std::ranges::none_of(slots_, is_unnamed)) return;
    (void)Await([&] { return IsJournalEmpty(); });
    for (Slot& slot : slots_) {
      if (slot.unnamed) Bind(node_, slot, kLimit);
    }
  }

  void Collect() {
    std::string config = setting_.node.plugin.config;
    const auto replace = [&](const std::string& what, const std::string& by) {
      const auto at = config.find(what);
      if (at != std::string::npos) config.replace(at, what.size(), by);
    };
    replace("SETTINGS", "");
    replace("\"deviceID\": \"DEVICE\"", "\"cni.dev/valid-attachments\": []");
    Answer answer;
    const bool collected = Await([&] {
      answer = node_.CallWith(config, "GC", {"", "", ""});
      return answer.succeeded;
    });
    if (!collected) node_.Wrong("GC does not succeed: " + answer.output);
    const auto scan = Journal(node_.root()).Scan();
    if (scan && !scan->entries.empty()) node_.Wrong("GC has left " + scan->entries.front().key.ToString());
  }

  const SoakSetting& setting_;
  Node node_;
  Invariants invariants_;
  std::vector<Slot> slots_;
  Planner planner_;
};

}  // namespace

Result<SoakReport> RunSoak(const SoakSetting& setting) {
  Soak soak(setting);
  RH_TRY(soak.Begin());
  return soak.Run();
}

}  // namespace railhead::soak
