// The documents that a migration starts from, recognized by their content.
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

// The outcome of each key of a configuration of another suite.
//
// A key is a JSON pointer to a value without keys of its own: a scalar, a list of scalars, an empty object.
// The translation of a document sets the outcome of each key. A key without an outcome needs a decision, so
// that the report names each key once and loses none.
// Threads: values, pure functions.

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

struct DocumentReport {
  std::string source;  // "nads.json: NetworkAttachmentDefinition default/rail0"
  std::string file;    // the resulting file, by its name in the output; "": none
  std::vector<std::string> remarks;
  std::vector<KeyResult> keys;

  static void List(auto& f) {
    f("source", &DocumentReport::source);
    f("file", &DocumentReport::file, kSparseField);
    f("remarks", &DocumentReport::remarks, kSparseField);
    f("keys", &DocumentReport::keys);
  }
};

struct MigrationReport {
  std::vector<DocumentReport> documents;
  std::vector<std::string> untouched;  // documents that are not of the suite, a line each
  std::vector<std::string> steps;      // how to apply the files, in this order

  [[nodiscard]] bool NeedsDecision() const;

  static void List(auto& f) {
    f.Output("needsDecision", &MigrationReport::NeedsDecision);
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
  std::string space;  // its namespace; "": none
  std::string name;
  nlohmann::json object;  // with the JSON of /spec/config in place of its text
};

// The addresses that host-local has allocated on a node.
struct HeldAddresses {
  std::string source;  // its directory
  std::string network;
  std::vector<IpAddress> addresses;
};

struct Documents {
  std::vector<DeviceConfig> device_configs;
  std::vector<NetworkDefinition> networks;
  std::vector<HeldAddresses> held;
  std::vector<std::string> untouched;  // other documents, a line each
};

// Adds the documents in `text`. `what` is its name in errors and in the report.
Result<void> AddDocuments(const std::string& text, const std::string& what, Documents* documents);

// Reads the documents of a migration from files and directories.
//
// From a directory it reads JSON and YAML files, and host-local's state. That state may be in the directory
// or its subdirectories (/var/lib/cni/networks has one for each network). The report lists other files as not
// touched.
// Threads: reads the file system only. Errors: those of AddDocuments(); kNotFound; kInvalid without any
// document of the SR-IOV suite.

Result<Documents> ReadDocuments(const std::vector<std::string>& paths);

// DocumentSection: one object of a document and its place, during the translation.
// Ownership: borrows document and outcomes. Threads: none.

class DocumentSection {
 public:
  DocumentSection(const nlohmann::json& object, std::string at, KeyOutcomes* keys)
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
  [[nodiscard]] DocumentSection Inner(const std::string& key) const {
    static const nlohmann::json kNothing;
    const nlohmann::json* value = Find(key);
    return {value == nullptr ? kNothing : *value, Place(key), keys_};
  }
  void SetOutcome(const std::string& key, KeyOutcome outcome, const std::string& what) const {
    keys_->Set(Place(key), outcome, what);
  }
  // A key that the plugin does not have. The plugin ignores it, but railhead would refuse it.
  void MarkUnknown(const std::string& key, const std::vector<std::string>& known) const {
    const auto nearest = Nearest(key, known);
    SetOutcome(key, KeyOutcome::kNeedsDecision,
               Text("type") + " does not know it and ignores it" +
                   (nearest ? ": did you mean " + *nearest + "?" : "") + "; it is left out");
  }
  // For all keys whose outcome is not set.
  void SetRemaining(KeyOutcome outcome, const std::string& what) const {
    keys_->SetRemaining(at_, outcome, what);
  }

 private:
  const nlohmann::json* object_;
  std::string at_;
  KeyOutcomes* keys_;
};

}  // namespace railhead::migrate

template <>
struct railhead::Names<railhead::migrate::KeyOutcome> {
  using KeyOutcome = migrate::KeyOutcome;
  static constexpr std::array kAll = {
      std::pair{"kept", KeyOutcome::kKept}, std::pair{"changed", KeyOutcome::kChanged},
      std::pair{"dropped", KeyOutcome::kDropped}, std::pair{"needsDecision", KeyOutcome::kNeedsDecision}};
};
