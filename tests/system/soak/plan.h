// The soak's next acts, drawn from a seed.
//
// Time is cut into rounds, and a round into waves. A wave is one act for each of some slots, all at the same
// time, and beside them one act on the node. A round ends when every pod has ended; then everything has to be
// as before.
//
// The choices depend only on the seed, never on a call's answer. Each act gets its own seed for its
// decisions. So a seed repeats a run's choices on any machine. Acts come from decks of cards, so that each
// act comes regularly.
// Threads: one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace railhead::soak {

enum class PodAct : std::uint8_t {
  kAdd,         // a pod comes
  kAddKilled,   // its ADD is killed at a system call or after a time
  kAddTwice,    // two ADDs of the pod at the same time
  kAddAndDel,   // its DEL while ADD runs
  kAddGone,     // its namespace goes while ADD runs
  kAddUnbound,  // its VF loses its driver while ADD runs
  kDel,
  kDelKilled,
  kDelTwice,
  kGone,  // its namespace goes before its DEL
  kCheck,
  kConflict,   // another pod asks for its VF
  kReplaced,   // its next sandbox comes before the old one's DEL
  kRename,     // the pod renames its NIC, at times to another NIC's host name
  kReaddress,  // ... changes its addresses, MTU, flags
  kStack,      // ... puts VLANs and macvlans on it
  kAltName,    // ... gives it alternative names
  kUnbound,    // its VF loses its driver while the pod has it
};
enum class NodeAct : std::uint8_t {
  kNothing,
  kDaemonKilled,
  kDaemonStopped,
  kDaemonDoubled,
  kRunFull,
  kClockJump,
  kCutJournal,  // files cut, with no other act beside it
  kCutStore,
  kCutState,
  kPfDown,  // on hardware with no other act beside it
};
enum class Settlement : std::uint8_t { kDel, kGc, kReconciler };

std::string NameOf(PodAct act);
std::string NameOf(NodeAct act);
std::string NameOf(Settlement settlement);
// How often each act has to come per minute, by name. Some acts need hardware.
std::map<std::string, int> LeastPerMinute(bool hardware);

// The act cuts a file. Its wave has one choice: the slot and pod that try the cut file.
bool Cuts(NodeAct act);

struct Choice {
  PodAct act = PodAct::kAdd;
  std::size_t slot = 0;
  std::uint64_t seed = 0;
  int pod = 0;  // number of the pod that comes with this act, or that is there
};
struct Wave {
  std::vector<Choice> choices;
  NodeAct node = NodeAct::kNothing;
  std::uint64_t node_seed = 0;
};
struct Round {
  std::vector<Wave> waves;
  Settlement settlement = Settlement::kDel;
};

// Cards in random order; all come once before any comes again.
template <typename Card>
class Deck {
 public:
  explicit Deck(std::vector<Card> cards) : cards_(std::move(cards)) {}

  // The next card that `suits`. The deck must have one.
  Card Draw(std::mt19937_64& random, const std::function<bool(Card)>& suits) {
    for (;;) {
      for (auto card = left_.begin(); card != left_.end(); ++card) {
        if (!suits(*card)) continue;
        const Card drawn = *card;
        left_.erase(card);
        return drawn;
      }
      Shuffle(random);
    }
  }

 private:
  void Shuffle(std::mt19937_64& random) {
    std::vector<Card> fresh = cards_;
    for (std::size_t left = fresh.size(); left > 1; --left)
      std::swap(fresh[left - 1], fresh[random() % left]);
    left_.insert(left_.end(), fresh.begin(), fresh.end());
  }

  std::vector<Card> cards_;
  std::vector<Card> left_;
};

class Planner {
 public:
  // Slots from `first_late` on have late binding, so their VFs are unknown before ADD.
  Planner(std::uint64_t seed, std::size_t slots, std::size_t first_late, bool hardware);

  Round Next();

 private:
  enum class State : std::uint8_t { kNone, kUp, kDirty };

  Wave NextWave(NodeAct act);
  PodAct DrawAct(std::size_t slot);
  [[nodiscard]] bool Suits(PodAct act, std::size_t slot) const;

  std::mt19937_64 random_;
  std::size_t first_late_;
  bool hardware_;
  std::vector<State> states_;
  std::vector<int> pods_;
  int next_pod_ = 0;
  int next_round_ = 0;
  Deck<PodAct> coming_;
  Deck<PodAct> there_;
  Deck<PodAct> dirty_;
  Deck<NodeAct> node_;
  Deck<Settlement> settlements_;
};

}  // namespace railhead::soak
