// Guesses and contradictions: the remarks of `railctl fabric suggest` about the fabric that it prints.
//
// Threads: values; one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "netns/json/record.h"

namespace railhead::fabric_suggest {

enum class Certainty : std::uint8_t {
  kLow,     // a default, or one of several possibilities
  kMedium,  // it follows from what the nodes show, but another intention would show the same
  kHigh,    // the nodes show it
};

// A value of the suggested fabric that nobody has stated.
struct Guess {
  std::string field;  // JSON pointer in the fabric: "/rails/0/mtu"
  std::string rail;   // "": of no single rail
  std::string key;    // its name in lines for people: "mtu"
  std::string value;  // as text; "": the key is absent
  std::string reason;
  Certainty certainty = Certainty::kMedium;

  bool operator==(const Guess&) const = default;

  static void List(auto& f) {
    f("field", &Guess::field);
    f("rail", &Guess::rail, kSparseField);
    f("value", &Guess::value);
    f("reason", &Guess::reason);
    f("certainty", &Guess::certainty);
  }
};

// Nodes that differ from the others, or from themselves, so that one fabric does not fit all.
struct Contradiction {
  std::string rail;  // "": of no single rail
  std::string key;   // what differs: "switch", "pf", "mtu", "vlan", "subnet", "gateway", "vfs"
  std::vector<std::string> nodes;
  std::string text;  // how these nodes differ

  bool operator==(const Contradiction&) const = default;

  static void List(auto& f) {
    f("rail", &Contradiction::rail, kSparseField);
    f("key", &Contradiction::key);
    f("nodes", &Contradiction::nodes);
    f("text", &Contradiction::text);
  }
};

struct Findings {
  std::vector<Guess> guesses;
  std::vector<Contradiction> contradictions;

  // Nodes with the same text are one contradiction. "": of no single node.
  void Contradict(const std::string& rail, const std::string& key, const std::string& node,
                  const std::string& text);
};

// Lines for people. Rails with the same guess share a line, and nodes of a contradiction are folded.
std::vector<std::string> LinesOf(const std::vector<Guess>& guesses);
std::vector<std::string> LinesOf(const std::vector<Contradiction>& contradictions);

}  // namespace railhead::fabric_suggest

template <>
struct railhead::Names<railhead::fabric_suggest::Certainty> {
  static constexpr std::array kAll = {std::pair{"low", fabric_suggest::Certainty::kLow},
                                      std::pair{"medium", fabric_suggest::Certainty::kMedium},
                                      std::pair{"high", fabric_suggest::Certainty::kHigh}};
};
