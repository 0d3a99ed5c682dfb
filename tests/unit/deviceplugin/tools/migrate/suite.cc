#include "tests/unit/deviceplugin/tools/migrate/suite.h"

#include <algorithm>

#include "deviceplugin/tools/migrate/migration_report.h"

namespace railhead::testing {

using Json = nlohmann::json;

Json NetworkObject(const std::string& name, const std::string& resource, const std::string& config) {
  Json object = {{"apiVersion", "k8s.cni.cncf.io/v1"},
                 {"kind", "NetworkAttachmentDefinition"},
                 {"metadata", {{"name", name}, {"namespace", "train"}}},
                 {"spec", {{"config", config}}}};
  if (!resource.empty()) object["metadata"]["annotations"]["k8s.v1.cni.cncf.io/resourceName"] = resource;
  return object;
}

std::string DeviceConfigOf(const std::vector<std::pair<std::string, std::string>>& pf_of_resource) {
  Json config = {{"resourceList", Json::array()}};
  for (const auto& [resource, pf] : pf_of_resource) {
    config["resourceList"].push_back(
        {{"resourceName", resource},
         {"resourcePrefix", "nvidia.com"},
         {"selectors", {{"vendors", {"15b3"}}, {"pfNames", Json::array({pf})}, {"isRdma", true}}}});
  }
  return config.dump();
}

migrate::Documents DocumentsOf(const std::vector<std::string>& texts) {
  migrate::Documents documents;
  for (const std::string& text : texts) {
    const auto added = migrate::AddDocuments(text, "input", &documents);
    EXPECT_TRUE(added) << Describe(added.error());
  }
  return documents;
}

migrate::Outcome Migrated(const std::vector<std::string>& texts, const migrate::Options& options) {
  auto with_prefix = options;
  if (with_prefix.resource_prefix.empty()) with_prefix.resource_prefix = "intel.com";
  auto outcome = migrate::Migrate(DocumentsOf(texts), with_prefix);
  EXPECT_TRUE(outcome) << Describe(outcome.error());
  return outcome ? *std::move(outcome) : migrate::Outcome{};
}

Json FileOf(const migrate::Outcome& outcome, const std::string& name) {
  for (const auto& file : outcome.files) {
    if (file.name == name) return Json::parse(file.content, nullptr, false);
  }
  return {};
}

Json ConfigOfFile(const migrate::Outcome& outcome, const std::string& name) {
  const Json object = FileOf(outcome, name);
  if (!object.is_object()) return {};
  return Json::parse(object["spec"]["config"].get<std::string>(), nullptr, false);
}

std::string KeyOutcomeOf(const migrate::Outcome& outcome, const std::string& source, const std::string& key) {
  std::vector<std::string> results;
  for (const auto& document : outcome.report.documents) {
    if (!document.source.ends_with(source)) continue;
    for (const auto& one : document.keys) {
      if (one.key == key) results.push_back(std::string(WordOf(one.outcome)) + " " + one.what);
    }
  }
  EXPECT_EQ(results.size(), 1U) << source << ": " << key;
  return results.empty() ? "" : results.front();
}

std::vector<std::string> KeysOf(const Json& document) {
  std::vector<std::string> keys;
  const Json flat = document.flatten();
  for (const auto& item : flat.items()) {
    // A list without objects is one key.
    std::string key = item.key();
    Json::json_pointer pointer(key);
    while (!pointer.empty() && document.at(pointer.parent_pointer()).is_array() &&
           document.at(pointer.parent_pointer()).dump().find("\":") == std::string::npos) {
      pointer = pointer.parent_pointer();
      key = pointer.to_string();
    }
    if (keys.empty() || keys.back() != key) keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

std::vector<std::string> KeysReported(const migrate::DocumentReport& document) {
  std::vector<std::string> keys;
  for (const auto& key : document.keys) keys.push_back(key.key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

}  // namespace railhead::testing
