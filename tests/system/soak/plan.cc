#include "tests/system/soak/plan.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

namespace railhead::soak {
namespace {

constexpr std::size_t kWavesPerRound = 4;

const std::map<PodAct, const char*>& PodActs() {
  static const std::map<PodAct, const char*> names = {
      {PodAct::kAdd, "add"},
      {PodAct::kAddKilled, "add-killed"},
      {PodAct::kAddTwice, "add-twice"},
      {PodAct::kAddAndDel, "add-and-del"},
      {PodAct::kAddGone, "add-gone"},
      {PodAct::kAddUnbound, "add-unbound"},
      {PodAct::kDel, "del"},
      {PodAct::kDelKilled, "del-killed"},
      {PodAct::kDelTwice, "del-twice"},
      {PodAct::kGone, "gone"},
      {PodAct::kCheck, "check"},
      {PodAct::kConflict, "conflict"},
      {PodAct::kReplaced, "replaced"},
      {PodAct::kRename, "rename"},
      {PodAct::kReaddress, "readdress"},
      {PodAct::kStack, "stack"},
      {PodAct::kAltName, "altname"},
      {PodAct::kUnbound, "unbound"},
  };
  return names;
}

const std::map<NodeAct, const char*>& NodeActs() {
  static const std::map<NodeAct, const char*> names = {
      {NodeAct::kNothing, "nothing"},
      {NodeAct::kDaemonKilled, "daemon-killed"},
      {NodeAct::kDaemonStopped, "daemon-stopped"},
      {NodeAct::kDaemonDoubled, "daemon-doubled"},
      {NodeAct::kRunFull, "run-full"},
      {NodeAct::kClockJump, "clock-jump"},
      {NodeAct::kCutJournal, "cut-journal"},
      {NodeAct::kCutStore, "cut-store"},
      {NodeAct::kCutState, "cut-state"},
      {NodeAct::kPfDown, "pf-down"},
  };
  return names;
}

const std::map<Settlement, const char*>& Settlements() {
  static const std::map<Settlement, const char*> names = {{Settlement::kDel, "settled-del"},
                                                          {Settlement::kGc, "settled-gc"},
                                                          {Settlement::kReconciler, "settled-reconciler"}};
  return names;
}

// Stand-ins have no PCI address. The plugin finds them by name and MAC, and they die with their pod's
// namespace.
bool NeedsHardware(PodAct act) {
  static const std::set<PodAct> acts = {PodAct::kAddGone, PodAct::kAddUnbound, PodAct::kGone,
                                        PodAct::kUnbound, PodAct::kRename,     PodAct::kReaddress};
  return acts.contains(act);
}
bool NeedsHardware(Settlement settlement) {
  return settlement == Settlement::kReconciler;
}
// Only in a guest, since other processes share this machine's clock and memory.
bool NeedsHardware(NodeAct act) {
  return act == NodeAct::kClockJump || act == NodeAct::kRunFull;
}

template <typename Card>
std::vector<Card> Possible(bool hardware, std::vector<Card> cards) {
  if (!hardware) std::erase_if(cards, [](Card card) { return NeedsHardware(card); });
  return cards;
}

}  // namespace

std::string NameOf(PodAct act) {
  return PodActs().at(act);
}
std::string NameOf(NodeAct act) {
  return NodeActs().at(act);
}
std::string NameOf(Settlement settlement) {
  return Settlements().at(settlement);
}

std::map<std::string, int> LeastPerMinute(bool hardware) {
  std::map<std::string, int> least;
  for (const auto& [act, name] : PodActs()) {
    if (hardware || !NeedsHardware(act)) least[name] = 2;
  }
  for (const auto& [act, name] : NodeActs()) {
    if (hardware || !NeedsHardware(act)) least[name] = 1;
  }
  for (const auto& [settlement, name] : Settlements()) {
    if (hardware || !NeedsHardware(settlement)) least[name] = 1;
  }
  return least;
}

bool Cuts(NodeAct act) {
  return act == NodeAct::kCutJournal || act == NodeAct::kCutStore || act == NodeAct::kCutState;
}

Planner::Planner(std::uint64_t seed, std::size_t slots, std::size_t first_late, bool hardware)
    : random_(seed),
      first_late_(first_late),
      hardware_(hardware),
      states_(slots, State::kNone),
      pods_(slots, 0),
      coming_(
          Possible<PodAct>(hardware, {PodAct::kAdd, PodAct::kAdd, PodAct::kAdd, PodAct::kAdd, PodAct::kAdd,
                                      PodAct::kAddKilled, PodAct::kAddKilled, PodAct::kAddTwice,
                                      PodAct::kAddAndDel, PodAct::kAddGone, PodAct::kAddUnbound})),
      there_(Possible<PodAct>(
          hardware, {PodAct::kDel, PodAct::kDel, PodAct::kDelKilled, PodAct::kDelTwice, PodAct::kGone,
                     PodAct::kGone, PodAct::kCheck, PodAct::kConflict, PodAct::kReplaced, PodAct::kRename,
                     PodAct::kReaddress, PodAct::kStack, PodAct::kAltName, PodAct::kUnbound})),
      dirty_({PodAct::kDel, PodAct::kDel, PodAct::kDelTwice, PodAct::kDelKilled}),
      node_(Possible<NodeAct>(hardware, {NodeAct::kNothing, NodeAct::kNothing, NodeAct::kDaemonStopped,
                                         NodeAct::kRunFull, NodeAct::kClockJump, NodeAct::kCutJournal,
                                         NodeAct::kCutStore, NodeAct::kCutState, NodeAct::kPfDown})),
      settlements_(
          Possible<Settlement>(hardware, {Settlement::kDel, Settlement::kGc, Settlement::kReconciler})) {}

Round Planner::Next() {
  Round round;
  std::array<NodeAct, kWavesPerRound> acts{};
  for (auto& act : acts) act = node_.Draw(random_, [](NodeAct) { return true; });
  // At other times railheadd lives on, so that growth becomes visible.
  constexpr int kOften = 3;
  constexpr int kSeldom = 12;
  if (const int number = next_round_++; number % (number < kSeldom ? kOften : kSeldom) == 0) {
    const std::size_t killed = random_() % kWavesPerRound;
    acts.at(killed) = NodeAct::kDaemonKilled;
    acts.at((killed + 1 + random_() % (kWavesPerRound - 1)) % kWavesPerRound) = NodeAct::kDaemonDoubled;
  }
  for (const NodeAct act : acts) round.waves.push_back(NextWave(act));
  round.settlement = settlements_.Draw(random_, [](Settlement) { return true; });
  std::fill(states_.begin(), states_.end(), State::kNone);
  return round;
}

Wave Planner::NextWave(NodeAct act) {
  Wave wave;
  wave.node = act;
  wave.node_seed = random_();
  // A PF that goes down or up during a call locks up a guest with igbvf. The driver's reset task and a close
  // block each other.
  if (hardware_ && wave.node == NodeAct::kPfDown) return wave;
  std::vector<std::size_t> slots(states_.size());
  std::iota(slots.begin(), slots.end(), 0);
  for (std::size_t left = slots.size(); left > 1; --left) std::swap(slots[left - 1], slots[random_() % left]);
  if (Cuts(wave.node)) {
    const std::size_t slot =
        *std::find_if(slots.begin(), slots.end(), [&](auto s) { return s < first_late_; });
    states_[slot] = State::kNone;
    pods_[slot] = ++next_pod_;
    wave.choices.push_back({PodAct::kAdd, slot, random_(), pods_[slot]});
    return wave;
  }
  slots.resize(slots.size() / 2 + random_() % (slots.size() / 2 + 1));
  for (const std::size_t slot : slots) {
    if (states_[slot] == State::kNone) pods_[slot] = ++next_pod_;
    wave.choices.push_back({DrawAct(slot), slot, random_(), pods_[slot]});
  }
  return wave;
}

bool Planner::Suits(PodAct act, std::size_t slot) const {
  const bool names_vf = act == PodAct::kAddUnbound || act == PodAct::kUnbound || act == PodAct::kConflict;
  return !names_vf || slot < first_late_;
}

PodAct Planner::DrawAct(std::size_t slot) {
  State& state = states_[slot];
  Deck<PodAct>& deck = state == State::kNone ? coming_ : state == State::kUp ? there_ : dirty_;
  const PodAct act = deck.Draw(random_, [&](PodAct drawn) { return Suits(drawn, slot); });
  switch (act) {
    case PodAct::kAdd:
    case PodAct::kAddTwice:
      state = State::kUp;
      break;
    case PodAct::kAddKilled:
    case PodAct::kAddAndDel:
    case PodAct::kAddGone:
    case PodAct::kAddUnbound:
    case PodAct::kDelKilled:
      state = State::kDirty;
      break;
    case PodAct::kDel:
    case PodAct::kDelTwice:
    case PodAct::kGone:
      state = State::kNone;
      break;
    default:
      break;
  }
  return act;
}

}  // namespace railhead::soak
