// What tests ask of a suggestion.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/tools/fabric_suggest/suggest.h"

namespace railhead::testing {

using Texts = std::vector<std::string>;

inline Fabric Parsed(const fabric_suggest::Suggestion& suggestion) {
  const auto fabric = ParseFabric(suggestion.fabric, "suggested");
  EXPECT_TRUE(fabric) << Describe(fabric.error()) << "\n" << suggestion.fabric;
  return fabric.value_or(Fabric{});
}

inline Texts Contradictions(const fabric_suggest::Suggestion& suggestion) {
  return LinesOf(suggestion.contradictions);
}

// Of the field, by its JSON pointer.
inline std::vector<fabric_suggest::Guess> GuessesOf(const fabric_suggest::Suggestion& suggestion,
                                                    const std::string& field) {
  std::vector<fabric_suggest::Guess> guesses;
  std::ranges::copy_if(suggestion.guesses, std::back_inserter(guesses),
                       [&](const auto& guess) { return guess.field == field; });
  return guesses;
}

inline fabric_suggest::SuggestOptions WithSupernet(const std::string& supernet, std::optional<int> prefix) {
  fabric_suggest::SuggestOptions options;
  options.supernet = IpPrefix::Parse(supernet);
  options.rail_prefix = prefix;
  return options;
}

}  // namespace railhead::testing
