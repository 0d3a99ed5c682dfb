#include "deviceplugin/tools/fabric_suggest/findings.h"

#include <algorithm>

#include "deviceplugin/services/reachability/folded_names.h"
#include "netns/base/text.h"

namespace railhead::fabric_suggest {

void Findings::Contradict(const std::string& rail, const std::string& key, const std::string& node,
                          const std::string& text) {
  const auto same = std::ranges::find_if(contradictions, [&](const Contradiction& one) {
    return one.rail == rail && one.key == key && one.text == text;
  });
  Contradiction& to =
      same != contradictions.end() ? *same : contradictions.emplace_back(Contradiction{rail, key, {}, text});
  if (!node.empty() && !Contains(to.nodes, node)) to.nodes.push_back(node);
}

std::vector<std::string> LinesOf(const std::vector<Guess>& guesses) {
  std::vector<std::pair<const Guess*, std::vector<std::string>>> shared;
  for (const Guess& guess : guesses) {
    const auto same = std::ranges::find_if(shared, [&](const auto& one) {
      const Guess& other = *one.first;
      return other.key == guess.key && other.value == guess.value && other.reason == guess.reason &&
             other.certainty == guess.certainty;
    });
    if (same == shared.end()) {
      shared.push_back({&guess, {guess.rail}});
    } else {
      same->second.push_back(guess.rail);
    }
  }
  std::vector<std::string> lines;
  for (auto& [guess, rails] : shared) {
    std::erase(rails, "");
    const std::string where = rails.empty() ? "" : reachability::FoldedNames(rails) + ": ";
    const std::string what = guess->value.empty() ? "no " + guess->key : guess->key + " " + guess->value;
    lines.push_back(where + what + " (" + std::string(WordOf(guess->certainty)) + "): " + guess->reason);
  }
  return lines;
}

std::vector<std::string> LinesOf(const std::vector<Contradiction>& contradictions) {
  std::vector<std::string> lines;
  for (const Contradiction& one : contradictions) {
    std::string line = one.rail.empty() ? "" : one.rail + ": ";
    if (!one.nodes.empty()) line += reachability::FoldedNames(one.nodes) + ": ";
    lines.push_back(line + one.text);
  }
  return lines;
}

}  // namespace railhead::fabric_suggest
