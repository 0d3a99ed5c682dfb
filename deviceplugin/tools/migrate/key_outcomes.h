// The outcome of each key of a configuration of another suite.
//
// A key is a JSON pointer to a value without keys of its own: a scalar, a list of scalars, an empty object.
// The translation of a document sets the outcome of each key. A key without an outcome needs a decision, so
// that the report names each key once and loses none.
// Threads: values, pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "netns/json/record.h"

namespace railhead::migrate {

enum class KeyOutcome : std::uint8_t {
  kKept,           // means the same under the same name
  kChanged,        // means the same under another name or in another place
  kDropped,        // no longer needed
  kNeedsDecision,  // not carried over, or not in full: the operator has to decide
};

struct KeyResult {
  std::string key;  // JSON pointer
  KeyOutcome outcome = KeyOutcome::kNeedsDecision;
  std::string what;  // continues the name of the outcome: "as /rails/0/vlan of fabric.json"

  bool operator==(const KeyResult&) const = default;

  static void List(auto& f) {
    f("key", &KeyResult::key);
    f("outcome", &KeyResult::outcome);
    f("what", &KeyResult::what);
  }
};

// The pointer of `key` in the object at `pointer`.
std::string Below(std::string_view pointer, std::string_view key);

class KeyOutcomes {
 public:
  explicit KeyOutcomes(const nlohmann::json& document);

  // Sets the outcome of the key at `pointer`, or of all keys below it. Ignores a pointer that the document
  // does not have. The last call counts.
  void Set(const std::string& pointer, KeyOutcome outcome, const std::string& what);
  // The same, only for keys whose outcome is not set.
  void SetRemaining(const std::string& pointer, KeyOutcome outcome, const std::string& what);

  // All keys, in the document's order.
  [[nodiscard]] std::vector<KeyResult> All() const;

 private:
  struct Line {
    KeyResult result;
    bool is_set = false;
  };
  void Add(const nlohmann::json& value, const std::string& pointer);
  std::vector<Line> lines_;
};

}  // namespace railhead::migrate

template <>
struct railhead::Names<railhead::migrate::KeyOutcome> {
  using KeyOutcome = migrate::KeyOutcome;
  static constexpr std::array kAll = {
      std::pair{"kept", KeyOutcome::kKept}, std::pair{"changed", KeyOutcome::kChanged},
      std::pair{"dropped", KeyOutcome::kDropped}, std::pair{"needsDecision", KeyOutcome::kNeedsDecision}};
};
