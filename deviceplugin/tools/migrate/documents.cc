#include "deviceplugin/tools/migrate/documents.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "deviceplugin/support/kubernetes/yaml.h"
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

}  // namespace railhead::migrate
