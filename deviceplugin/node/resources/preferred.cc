#include "deviceplugin/node/resources/preferred.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <optional>
#include <tuple>
#include <utility>

namespace railhead::resources {
namespace {

// Four thousand possibilities take a fraction of a millisecond. With more rails the last step is greedy.
constexpr std::size_t kMostTried = 12;
constexpr std::size_t kMostAccelerators = 32;  // further ones are ignored
constexpr int kFarthest = static_cast<int>(PciPath::kSys) + 1;

struct Candidate {
  std::string_view id;
  const PoolMember* member = nullptr;
  bool still_attached = false;

  [[nodiscard]] auto Order() const { return std::make_tuple(still_attached, member->function.vf_index, id); }
};

// A rail: the number of its chosen devices, and its free ones, the next at the back.
struct RailState {
  int rail = 0;
  int chosen = 0;
  std::vector<Candidate> free;
};

// The cost of the devices chosen so far, as far as it decides which one to add.
class Cost {
 public:
  explicit Cost(const PreferHints& hints) : hints_(hints) {
    if (!hints.paths.empty()) accelerators_ = std::min(hints.paths.begin()->second.size(), kMostAccelerators);
    nearest_.fill(kFarthest);
  }

  void Add(const Candidate& candidate) {
    still_attached_ += candidate.still_attached ? 1 : 0;
    rails_ += candidate.member->rail;
    indices_ += candidate.member->function.vf_index;
    if (const auto& node = candidate.member->function.numa_node; node)
      nodes_.set(static_cast<std::size_t>(*node) % nodes_.size());
    const auto paths = hints_.paths.find(candidate.member->function.pf);
    int own = accelerators_ == 0 ? 0 : kFarthest;
    for (std::size_t i = 0; paths != hints_.paths.end() && i < accelerators_; ++i) {
      const int path = static_cast<int>(paths->second.at(i));
      nearest_[i] = std::min(nearest_[i], path);
      own = std::min(own, path);
    }
    own_ += own;
  }

  // Less is better.
  [[nodiscard]] auto Value() const {
    int covered = 0;
    for (std::size_t i = 0; i < accelerators_; ++i) covered += nearest_.at(i);
    return std::make_tuple(still_attached_, covered, own_, nodes_.count(), rails_, indices_);
  }

 private:
  const PreferHints& hints_;
  int still_attached_ = 0;
  std::size_t accelerators_ = 0;
  std::array<int, kMostAccelerators> nearest_{};  // of each accelerator
  int own_ = 0;                                   // sum over NICs of the path to their nearest accelerator
  std::bitset<64> nodes_;
  std::int64_t rails_ = 0;
  std::int64_t indices_ = 0;
};

// Finds the `count` of `rails` that give one more device: the cheapest of all possibilities. Of several
// cheapest ones the first in the rails' order.
class Search {
 public:
  Search(const std::vector<RailState*>& rails, std::size_t count) : rails_(rails), count_(count) {}

  std::vector<RailState*> Run(const Cost& so_far) {
    Try(0, so_far);
    return best_;
  }

 private:
  void Try(std::size_t next, const Cost& cost) {
    if (picked_.size() == count_) {
      if (best_.empty() || cost.Value() < best_cost_->Value()) {
        best_ = picked_;
        best_cost_.emplace(cost);
      }
      return;
    }
    if (rails_.size() - next < count_ - picked_.size()) return;
    Cost with = cost;
    with.Add(rails_[next]->free.back());
    picked_.push_back(rails_[next]);
    Try(next + 1, with);
    picked_.pop_back();
    Try(next + 1, cost);
  }

  const std::vector<RailState*>& rails_;
  const std::size_t count_;
  std::vector<RailState*> picked_;
  std::vector<RailState*> best_;
  std::optional<Cost> best_cost_;
};

std::vector<RailState*> Greedy(std::vector<RailState*> rails, std::size_t count, Cost cost) {
  std::vector<RailState*> picked;
  while (picked.size() < count) {
    const auto with = [&](const RailState* rail) {
      Cost more = cost;
      more.Add(rail->free.back());
      return more.Value();
    };
    const auto best =
        std::ranges::min_element(rails, [&](RailState* a, RailState* b) { return with(a) < with(b); });
    cost.Add((*best)->free.back());
    picked.push_back(*best);
    rails.erase(best);
  }
  return picked;
}

class Choice {
 public:
  Choice(const ResourcePool& pool, const PreferHints& hints, std::size_t wanted)
      : pool_(pool), hints_(hints), wanted_(wanted), cost_(hints) {}

  void Require(const std::string& id) {
    if (ids_.size() >= wanted_ || !seen_.insert(id).second) return;
    ids_.push_back(id);
    const Candidate candidate = Look(id);
    if (candidate.member == nullptr) return;
    ++RailOf(candidate).chosen;
    cost_.Add(candidate);
  }

  void Consider(const std::string& id) {
    if (!seen_.insert(id).second) return;
    const Candidate candidate = Look(id);
    if (candidate.member == nullptr) {
      unknown_.push_back(id);
    } else {
      RailOf(candidate).free.push_back(candidate);
    }
  }

  std::vector<std::string> Fill() {
    for (auto& [rail, state] : rails_) {
      std::ranges::sort(state.free,
                        [](const Candidate& a, const Candidate& b) { return a.Order() > b.Order(); });
    }
    while (ids_.size() < wanted_) {
      auto lowest = Lowest();
      if (lowest.empty()) break;
      const std::size_t left = wanted_ - ids_.size();
      if (lowest.size() > left) {
        lowest = lowest.size() <= kMostTried ? Search(lowest, left).Run(cost_)
                                             : Greedy(std::move(lowest), left, cost_);
      }
      for (RailState* rail : lowest) Take(rail);
    }
    std::ranges::sort(unknown_);
    for (std::size_t i = 0; i < unknown_.size() && ids_.size() < wanted_; ++i) ids_.push_back(unknown_[i]);
    return std::move(ids_);
  }

 private:
  Candidate Look(const std::string& id) { return {id, pool_.Find(id), hints_.still_attached.contains(id)}; }
  RailState& RailOf(const Candidate& candidate) {
    RailState& state = rails_[candidate.member->rail];
    state.rail = candidate.member->rail;
    return state;
  }

  // The rails with the fewest chosen devices, of those that have a free one.
  std::vector<RailState*> Lowest() {
    std::vector<RailState*> lowest;
    for (auto& [rail, state] : rails_) {
      if (state.free.empty()) continue;
      if (!lowest.empty() && state.chosen > lowest.front()->chosen) continue;
      if (!lowest.empty() && state.chosen < lowest.front()->chosen) lowest.clear();
      lowest.push_back(&state);
    }
    return lowest;
  }

  void Take(RailState* rail) {
    cost_.Add(rail->free.back());
    ids_.emplace_back(rail->free.back().id);
    rail->free.pop_back();
    ++rail->chosen;
  }

  const ResourcePool& pool_;
  const PreferHints& hints_;
  const std::size_t wanted_;
  Cost cost_;
  std::set<std::string> seen_;
  std::vector<std::string> ids_;
  std::vector<std::string> unknown_;
  std::map<int, RailState> rails_;
};

}  // namespace

std::vector<std::string> Prefer(const ResourcePool& pool, const std::vector<std::string>& available,
                                const std::vector<std::string>& must_include, int size,
                                const PreferHints& hints) {
  Choice choice(pool, hints, size < 0 ? 0 : static_cast<std::size_t>(size));
  for (const std::string& id : must_include) choice.Require(id);
  for (const std::string& id : available) choice.Consider(id);
  return choice.Fill();
}

}  // namespace railhead::resources
