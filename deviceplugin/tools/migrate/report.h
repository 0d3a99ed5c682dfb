// What became of each key of a configuration of another suite.
//
// A key is a JSON pointer to a value that has no keys of its own: a scalar, a list of scalars, an
// empty object. Whoever translates a document says of each key what became of it; what nobody
// spoke of needs a decision, so that no key is lost in silence and each is reported once.
// Threads: values, pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace railhead::migrate {

enum class Fate : std::uint8_t {
  kKept,     // means the same under the same name
  kChanged,  // means the same, said otherwise or elsewhere
  kDropped,  // not needed any more
  kDecide,   // not carried over, or not in full: somebody has to decide
};
// "kept", "changed", "dropped", "decide"
std::string_view NameOf(Fate fate);

struct KeyFate {
  std::string key;  // JSON pointer
  Fate fate = Fate::kDecide;
  std::string what;  // goes on after the name of the fate: "as /rails/0/vlan of fabric.json"

  bool operator==(const KeyFate&) const = default;
};

// The pointer of `key` in the object at `pointer`.
std::string Below(std::string_view pointer, std::string_view key);

class KeyLedger {
 public:
  explicit KeyLedger(const nlohmann::json& document);

  // Of the key at `pointer`, or of all keys below it; what the document does not have is passed
  // over. The last word counts.
  void Set(const std::string& pointer, Fate fate, const std::string& what);
  // Of those keys only of which nothing was said.
  void SetRest(const std::string& pointer, Fate fate, const std::string& what);

  // All keys, in the document's order.
  [[nodiscard]] std::vector<KeyFate> Fates() const;

 private:
  struct Line {
    KeyFate fate;
    bool said = false;
  };
  void Add(const nlohmann::json& value, const std::string& pointer);
  std::vector<Line> lines_;
};

struct DocumentReport {
  std::string source;  // "nads.json: NetworkAttachmentDefinition default/rail0"
  std::string file;    // what was made of it, by its name in the output; "": nothing
  std::vector<std::string> remarks;
  std::vector<KeyFate> keys;
};

struct MigrationReport {
  std::vector<DocumentReport> documents;
  std::vector<std::string> untouched;  // what is no part of the suite, a line each
  std::vector<std::string> steps;      // what to do with the files, in this order

  [[nodiscard]] bool NeedsDecision() const;
};

std::string ReportAsMarkdown(const MigrationReport& report);
nlohmann::ordered_json ReportAsJson(const MigrationReport& report);

}  // namespace railhead::migrate
