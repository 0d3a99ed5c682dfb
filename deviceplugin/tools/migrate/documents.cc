#include "deviceplugin/tools/migrate/documents.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "deviceplugin/support/kubernetes/yaml.h"
#include "ipam/store/import_state.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/json/json_reader.h"

namespace railhead::migrate {
namespace {

using Json = nlohmann::json;

constexpr const char* kNetworkKind = "NetworkAttachmentDefinition";

bool IsDeviceConfig(const Json& json) {
  if (!json.is_object()) return false;
  const auto items = json.items();
  return std::ranges::any_of(items, [](const auto& item) { return ToLower(item.key()) == "resourcelist"; });
}

std::string TextAt(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// Names of Kubernetes objects may have these characters. They become names of files.
bool IsObjectName(const std::string& name) {
  return !name.empty() && name.size() <= 253 && name.front() != '.' && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

bool LooksLikeJson(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && (text[first] == '{' || text[first] == '[');
}

class Sorter {
 public:
  Sorter(std::string what, Documents* documents) : what_(std::move(what)), documents_(documents) {}

  Result<void> Add(const Json& json, const std::string& text) {
    if (IsDeviceConfig(json)) {
      documents_->device_configs.push_back({what_, "", text});
      return {};
    }
    const std::string kind = json.is_object() ? TextAt(json, "kind") : "";
    if (kind == kNetworkKind) return AddNetwork(json);
    if (kind == "ConfigMap") return AddConfigMap(json);
    const auto items = json.is_object() ? json.find("items") : json.end();
    if (kind.ends_with("List") && items != json.end() && items->is_array()) {
      for (const Json& item : *items) RH_TRY(Add(item, item.dump(-1, ' ', false, Replace())));
      return {};
    }
    documents_->untouched.push_back(Name(json, kind.empty() ? "a document without a kind" : kind) +
                                    ": is not part of the SR-IOV suite");
    return {};
  }

 private:
  static Json::error_handler_t Replace() { return Json::error_handler_t::replace; }

  [[nodiscard]] std::string Name(const Json& json, const std::string& kind) const {
    const auto metadata = json.is_object() ? json.find("metadata") : json.end();
    if (metadata == json.end() || !metadata->is_object()) return what_ + ": " + kind;
    const std::string space = TextAt(*metadata, "namespace");
    return what_ + ": " + kind + " " + (space.empty() ? "" : space + "/") + TextAt(*metadata, "name");
  }

  Result<void> AddConfigMap(const Json& json) {
    const std::string source = Name(json, "ConfigMap");
    const auto data = json.find("data");
    std::size_t found = 0;
    if (data != json.end() && data->is_object()) {
      for (const auto& [key, value] : data->items()) {
        if (!value.is_string()) continue;
        const auto& text = value.get_ref<const std::string&>();
        const bool named = text.find("resourceList") != std::string::npos;
        // The reader of the configuration reports broken JSON.
        if (!named && !IsDeviceConfig(Json::parse(text, nullptr, false))) continue;
        documents_->device_configs.push_back({std::string(source).append(": ").append(key), key, text});
        ++found;
      }
    }
    if (found == 0) documents_->untouched.push_back(source + ": has no configuration of a device plugin");
    return {};
  }

  Result<void> AddNetwork(const Json& json) {
    NetworkDefinition network;
    network.source = Name(json, kNetworkKind);
    network.object = json;
    const auto metadata = json.find("metadata");
    if (metadata != json.end() && metadata->is_object()) {
      network.space = TextAt(*metadata, "namespace");
      network.name = TextAt(*metadata, "name");
    }
    if (!IsObjectName(network.name) || (!network.space.empty() && !IsObjectName(network.space))) {
      return Fail(ErrorCode::kInvalid,
                  network.source + ": /metadata: has no name that Kubernetes would take");
    }
    const auto spec = json.find("spec");
    if (spec != json.end() && spec->is_object() && spec->contains("config")) {
      const Json& config = (*spec)["config"];
      if (!config.is_string())
        return Fail(ErrorCode::kInvalid, network.source + ": /spec/config: is not a string");
      const auto parsed = RH_TRY(
          JsonDocument::Parse(config.get_ref<const std::string&>(), network.source + ": /spec/config"));
      RH_TRY(parsed.Root().status());
      network.object["spec"]["config"] = parsed.json();
    }
    documents_->networks.push_back(std::move(network));
    return {};
  }

  std::string what_;
  Documents* documents_;
};

}  // namespace

Result<void> AddDocuments(const std::string& text, const std::string& what, Documents* documents) {
  Sorter sorter(what, documents);
  if (LooksLikeJson(text)) {
    const auto document = RH_TRY(JsonDocument::Parse(text, what, kMaxDocument));
    return sorter.Add(document.json(), text);
  }
  for (const std::string& one : RH_TRY(YamlDocumentsToJson(text, what))) {
    const auto document = RH_TRY(JsonDocument::Parse(one, what, kMaxDocument));
    if (!document.json().is_null()) RH_TRY(sorter.Add(document.json(), one));
  }
  return {};
}

namespace {

bool IsDirectory(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool IsDocument(const std::string& name) {
  return name.ends_with(".json") || name.ends_with(".yaml") || name.ends_with(".yml");
}

std::string Trimmed(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

Result<void> AddFile(const std::string& path, Documents* documents) {
  const auto text = RH_TRY(ReadFile(path, kMaxDocument));
  if (!text) return Fail(ErrorCode::kNotFound, "reading " + path + ": no such file");
  return AddDocuments(*text, path, documents);
}

bool HasAddresses(const std::vector<std::string>& names) {
  return std::ranges::any_of(names,
                             [](const std::string& name) { return IpAddress::Parse(name).has_value(); });
}

Result<void> AddHeld(const std::string& directory, Documents* documents) {
  HeldAddresses held;
  held.source = directory;
  held.network = directory.substr(directory.rfind('/') + 1);
  // The networks define the subnet of an address, and a network may be in a later document.
  const std::vector<IpPrefix> any = {*IpPrefix::Parse("0.0.0.0/0"), *IpPrefix::Parse("::/0")};
  for (const auto& imported : RH_TRY(ipam::ReadHostLocal(directory, held.network, any)))
    held.addresses.push_back(imported.address);
  documents->held.push_back(std::move(held));
  return {};
}

Result<void> AddDirectory(const std::string& directory, Documents* documents) {
  const auto names = RH_TRY(ListDirectory(directory)).value_or(std::vector<std::string>{});
  if (HasAddresses(names)) return AddHeld(directory, documents);
  for (const std::string& name : names) {
    const std::string path = std::string(directory).append("/").append(name);
    if (IsDirectory(path)) {
      const auto inner = RH_TRY(ListDirectory(path)).value_or(std::vector<std::string>{});
      if (HasAddresses(inner)) {
        RH_TRY(AddHeld(path, documents));
      } else {
        documents->untouched.push_back(path + ": is a directory without host-local's addresses");
      }
    } else if (IsDocument(name)) {
      RH_TRY(AddFile(path, documents));
    } else {
      documents->untouched.push_back(path + ": is neither .json nor .yaml");
    }
  }
  return {};
}

}  // namespace

Result<Documents> ReadDocuments(const std::vector<std::string>& paths) {
  Documents documents;
  for (const std::string& one : paths) {
    const std::string path = Trimmed(one);
    RH_TRY(IsDirectory(path) ? AddDirectory(path, &documents) : AddFile(path, &documents));
  }
  if (documents.device_configs.empty() && documents.networks.empty() && documents.held.empty()) {
    return Fail(ErrorCode::kInvalid, "found no document of the SR-IOV suite in " + Join(paths, ", "),
                "give sriov-network-device-plugin's config.json or ConfigMap, NetworkAttachmentDefinitions "
                "(`kubectl get net-attach-def -A -o json`), and host-local's directory");
  }
  return documents;
}

namespace {

using Json = nlohmann::json;

bool HasKeys(const Json& value) {
  if (value.is_object()) return !value.empty();
  return value.is_array() && std::ranges::any_of(value, HasKeys);
}

bool IsAtOrBelow(std::string_view key, std::string_view pointer) {
  return key.starts_with(pointer) && (key.size() == pointer.size() || key[pointer.size()] == '/');
}

// For a cell of a Markdown table.
std::string Cell(const std::string& text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') {
      cell += "\\|";
    } else {
      cell += c == '\n' || c == '\r' ? ' ' : c;
    }
  }
  return cell;
}

void AddDecisions(const MigrationReport& report, std::string* text) {
  std::string decisions;
  for (const DocumentReport& document : report.documents) {
    for (const KeyResult& key : document.keys) {
      if (key.outcome == KeyOutcome::kNeedsDecision)
        decisions += "- " + document.source + ": `" + key.key + "`: " + key.what + "\n";
    }
  }
  *text += decisions.empty() ? "All keys are carried over.\n" : "## To decide\n\n" + decisions;
}

void AddDocument(const DocumentReport& document, std::string* text) {
  *text += "\n## " + document.source + "\n\n";
  if (!document.file.empty()) *text += "Became `" + document.file + "`.\n";
  for (const std::string& remark : document.remarks) *text += remark + ".\n";
  if (!document.file.empty() || !document.remarks.empty()) *text += "\n";
  *text += "| key | | what |\n|---|---|---|\n";
  for (const KeyResult& key : document.keys) {
    *text +=
        "| `" + Cell(key.key) + "` | " + std::string(WordOf(key.outcome)) + " | " + Cell(key.what) + " |\n";
  }
}

}  // namespace

std::string Below(std::string_view pointer, std::string_view key) {
  std::string below(pointer);
  below += '/';
  for (const char c : key) {
    if (c == '~') {
      below += "~0";
    } else if (c == '/') {
      below += "~1";
    } else {
      below += c;
    }
  }
  return below;
}

KeyOutcomes::KeyOutcomes(const Json& document) {
  Add(document, "");
}

void KeyOutcomes::Add(const Json& value, const std::string& pointer) {
  if (!HasKeys(value)) {
    Line line;
    line.result = {pointer, KeyOutcome::kNeedsDecision, "is unknown"};
    if (value.is_null()) line = {{pointer, KeyOutcome::kDropped, "null means absent"}, true};
    lines_.push_back(std::move(line));
    return;
  }
  if (value.is_object()) {
    for (const auto& item : value.items()) Add(item.value(), Below(pointer, item.key()));
    return;
  }
  for (std::size_t i = 0; i < value.size(); ++i) Add(value[i], Below(pointer, std::to_string(i)));
}

void KeyOutcomes::Set(const std::string& pointer, KeyOutcome outcome, const std::string& what) {
  for (Line& line : lines_) {
    if (IsAtOrBelow(line.result.key, pointer)) line = {{line.result.key, outcome, what}, true};
  }
}

void KeyOutcomes::SetRemaining(const std::string& pointer, KeyOutcome outcome, const std::string& what) {
  for (Line& line : lines_) {
    if (!line.is_set && IsAtOrBelow(line.result.key, pointer))
      line = {{line.result.key, outcome, what}, true};
  }
}

std::vector<KeyResult> KeyOutcomes::All() const {
  std::vector<KeyResult> results;
  results.reserve(lines_.size());
  for (const Line& line : lines_) results.push_back(line.result);
  return results;
}

bool MigrationReport::NeedsDecision() const {
  return std::ranges::any_of(documents, [](const DocumentReport& document) {
    return Contains(document.keys, KeyOutcome::kNeedsDecision, &KeyResult::outcome);
  });
}

std::string ReportAsMarkdown(const MigrationReport& report) {
  std::string text = "# Migration to Railhead\n\n";
  AddDecisions(report, &text);
  for (const DocumentReport& document : report.documents) AddDocument(document, &text);
  if (!report.untouched.empty()) text += "\n## Not touched\n\n";
  for (const std::string& line : report.untouched) text += "- " + line + "\n";
  if (!report.steps.empty()) text += "\n## Steps\n\n";
  for (std::size_t i = 0; i < report.steps.size(); ++i)
    text += std::to_string(i + 1) + ". " + report.steps[i] + "\n";
  return text;
}

}  // namespace railhead::migrate
