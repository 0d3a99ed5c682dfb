// The documents that a migration starts from, told apart by what they say of themselves.
//
// sriov-network-device-plugin's config.json, alone or in a ConfigMap (the SR-IOV operator's has an entry
// for each node); NetworkAttachmentDefinitions; lists of these, as kubectl prints them. JSON or YAML.
// Threads: pure functions. Errors: kMalformed, kInvalid with document, key and, of broken JSON, the byte.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/base/text.h"
#include "netns/json/record.h"

namespace railhead::migrate {

// What became of each key of a configuration of another suite.
//
// A key is a JSON pointer to a value that has no keys of its own: a scalar, a list of scalars, an
// empty object. Whoever translates a document says of each key what became of it; what nobody
// spoke of needs a decision, so that no key is lost in silence and each is reported once.
// Threads: values, pure functions.

enum class Fate : std::uint8_t {
  kKept,     // means the same under the same name
  kChanged,  // means the same, said otherwise or elsewhere
  kDropped,  // not needed any more
  kDecide,   // not carried over, or not in full: somebody has to decide
};

struct KeyFate {
  std::string key;  // JSON pointer
  Fate fate = Fate::kDecide;
  std::string what;  // goes on after the name of the fate: "as /rails/0/vlan of fabric.json"

  bool operator==(const KeyFate&) const = default;

  static void List(auto& f) {
    f("key", &KeyFate::key);
    f("fate", &KeyFate::fate);
    f("what", &KeyFate::what);
  }
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

  static void List(auto& f) {
    f("source", &DocumentReport::source);
    f("file", &DocumentReport::file, kSparseField);
    f("remarks", &DocumentReport::remarks, kSparseField);
    f("keys", &DocumentReport::keys);
  }
};

struct MigrationReport {
  std::vector<DocumentReport> documents;
  std::vector<std::string> untouched;  // what is no part of the suite, a line each
  std::vector<std::string> steps;      // what to do with the files, in this order

  [[nodiscard]] bool NeedsDecision() const;

  static void List(auto& f) {
    f.Shown("needsDecision", &MigrationReport::NeedsDecision);
    f("documents", &MigrationReport::documents);
    f("untouched", &MigrationReport::untouched);
    f("steps", &MigrationReport::steps);
  }
};

std::string ReportAsMarkdown(const MigrationReport& report);

inline constexpr std::size_t kMaxDocument = std::size_t{16} << 20;

struct DeviceConfig {
  std::string source;  // "cm.yaml: ConfigMap kube-system/sriovdp: config.json"
  std::string entry;   // of a ConfigMap; "": the document itself
  std::string text;
};

struct NetworkDefinition {
  std::string source;
  std::string space;  // its namespace; "": not given
  std::string name;
  nlohmann::json object;  // with the JSON of /spec/config in place of its text
};

// What host-local has given on a node.
struct HeldAddresses {
  std::string source;  // its directory
  std::string network;
  std::vector<IpAddress> addresses;
};

struct Documents {
  std::vector<DeviceConfig> device_configs;
  std::vector<NetworkDefinition> networks;
  std::vector<HeldAddresses> held;
  std::vector<std::string> untouched;  // what is none of these, a line each
};

// Adds what is in `text`, which `what` names in errors and in the report.
Result<void> AddDocuments(const std::string& text, const std::string& what, Documents* documents);

// The documents of a migration out of files and directories.
//
// Of a directory: its JSON and YAML files, and host-local's state, in itself or in the directories in it
// (/var/lib/cni/networks has one for each network). Other files are told of as not touched.
// Threads: reads the file system only. Errors: those of AddDocuments(); kNotFound; kInvalid when there is
// nothing of the SR-IOV suite.

Result<Documents> ReadDocuments(const std::vector<std::string>& paths);

// One object of a document with its place, while it is translated.
// Ownership: borrows document and ledger. Threads: none.

class Section {
 public:
  Section(const nlohmann::json& object, std::string at, KeyLedger* keys)
      : object_(&object), at_(std::move(at)), keys_(keys) {}

  [[nodiscard]] const nlohmann::json& object() const { return *object_; }
  [[nodiscard]] const std::string& at() const { return at_; }
  [[nodiscard]] std::string Place(const std::string& key) const { return Below(at_, key); }
  // nullptr: absent or null.
  [[nodiscard]] const nlohmann::json* Find(const std::string& key) const {
    if (!object_->is_object()) return nullptr;
    const auto found = object_->find(key);
    return found == object_->end() || found->is_null() ? nullptr : &*found;
  }
  [[nodiscard]] std::string Text(const std::string& key) const {
    const nlohmann::json* value = Find(key);
    return value != nullptr && value->is_string() ? value->get<std::string>() : "";
  }
  [[nodiscard]] Section Inner(const std::string& key) const {
    static const nlohmann::json kNothing;
    const nlohmann::json* value = Find(key);
    return {value == nullptr ? kNothing : *value, Place(key), keys_};
  }
  void Say(const std::string& key, Fate fate, const std::string& what) const {
    keys_->Set(Place(key), fate, what);
  }
  // A key that the plugin does not have: it ignores it, railhead would refuse it.
  void SayUnknown(const std::string& key, const std::vector<std::string>& known) const {
    const auto nearest = Nearest(key, known);
    Say(key, Fate::kDecide,
        Text("type") + " does not know it and ignores it" +
            (nearest ? ": did you mean " + *nearest + "?" : "") + "; it is left out");
  }
  // Of all keys of which nothing was said.
  void SayRest(Fate fate, const std::string& what) const { keys_->SetRest(at_, fate, what); }

 private:
  const nlohmann::json* object_;
  std::string at_;
  KeyLedger* keys_;
};

}  // namespace railhead::migrate

template <>
struct railhead::Names<railhead::migrate::Fate> {
  using Fate = migrate::Fate;
  static constexpr std::array kAll = {std::pair{"kept", Fate::kKept}, std::pair{"changed", Fate::kChanged},
                                      std::pair{"dropped", Fate::kDropped},
                                      std::pair{"decide", Fate::kDecide}};
};
