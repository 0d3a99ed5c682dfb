#include "deviceplugin/pools/preferred.h"

#include <algorithm>
#include <climits>
#include <map>
#include <set>
#include <tuple>

namespace railhead {
namespace {

struct Candidate {
  std::string id;
  int rail = INT_MAX;  // unknown devices are a rail behind all others
  int vf_index = INT_MAX;
  std::optional<int> numa_node;
  bool known = false;

  [[nodiscard]] auto Order() const { return std::tie(vf_index, id); }
};

Candidate Look(const ResourcePool& pool, const std::string& id) {
  Candidate candidate;
  candidate.id = id;
  if (const PoolMember* member = pool.Find(id)) {
    candidate.rail = member->rail;
    candidate.vf_index = member->function.vf_index;
    candidate.numa_node = member->function.numa_node;
    candidate.known = true;
  }
  return candidate;
}

// What has been chosen so far, per rail and per NUMA node.
class Choice {
 public:
  void Add(const Candidate& candidate) {
    ids_.push_back(candidate.id);
    ++on_rail_[candidate.rail];
    if (candidate.numa_node) ++on_node_[*candidate.numa_node];
  }
  // Less is better.
  [[nodiscard]] auto Cost(const Candidate& candidate) const {
    return std::make_tuple(!candidate.known, Count(on_rail_, candidate.rail), -OnNode(candidate.numa_node),
                           candidate.rail);
  }
  [[nodiscard]] std::size_t size() const { return ids_.size(); }
  std::vector<std::string> Take() { return std::move(ids_); }

 private:
  static int Count(const std::map<int, int>& counts, int key) {
    const auto found = counts.find(key);
    return found == counts.end() ? 0 : found->second;
  }
  [[nodiscard]] int OnNode(const std::optional<int>& node) const { return node ? Count(on_node_, *node) : 0; }

  std::vector<std::string> ids_;
  std::map<int, int> on_rail_;
  std::map<int, int> on_node_;
};

}  // namespace

std::vector<std::string> Prefer(const ResourcePool& pool, const std::vector<std::string>& available,
                                const std::vector<std::string>& must_include, int size) {
  const std::size_t wanted = size < 0 ? 0 : static_cast<std::size_t>(size);
  Choice choice;
  std::set<std::string> seen;
  for (const std::string& id : must_include) {
    if (choice.size() < wanted && seen.insert(id).second) choice.Add(Look(pool, id));
  }
  // The free devices of each rail, the one to take next at the back.
  std::map<int, std::vector<Candidate>> rails;
  for (const std::string& id : available) {
    if (!seen.insert(id).second) continue;
    Candidate candidate = Look(pool, id);
    rails[candidate.rail].push_back(std::move(candidate));
  }
  for (auto& [rail, candidates] : rails) {
    std::sort(candidates.begin(), candidates.end(),
              [](const Candidate& a, const Candidate& b) { return a.Order() > b.Order(); });
  }
  while (choice.size() < wanted && !rails.empty()) {
    const auto best = std::min_element(rails.begin(), rails.end(), [&](const auto& a, const auto& b) {
      return choice.Cost(a.second.back()) < choice.Cost(b.second.back());
    });
    choice.Add(best->second.back());
    best->second.pop_back();
    if (best->second.empty()) rails.erase(best);
  }
  return choice.Take();
}

}  // namespace railhead
