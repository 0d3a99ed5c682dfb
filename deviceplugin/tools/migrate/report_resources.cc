#include "deviceplugin/tools/migrate/report_resources.h"

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "deviceplugin/tools/migrate/key_outcomes.h"
#include "netns/base/text.h"

namespace railhead::migrate {
namespace {

using Json = nlohmann::json;

// Finds the key in any case: the plugin ignores case.
std::string KeyIn(const Json& object, const std::string& name) {
  for (const auto& item : object.items()) {
    if (ToLower(item.key()) == ToLower(name)) return item.key();
  }
  return name;
}

class Reporter {
 public:
  Reporter(const Json& config, const ResourceMigration& migration)
      : config_(config), migration_(migration), keys_(config) {
    if (!migration.fabric.empty()) fabric_ = Json::parse(migration.fabric, nullptr, false);
    list_ = KeyIn(config, "resourceList");
  }

  std::vector<KeyResult> Report() {
    for (std::size_t i = 0; i < migration_.resources.size(); ++i) ReportResource(i);
    std::map<std::string, std::pair<bool, std::string>> notes;
    for (const ResourceNote& note : migration_.notes) {
      for (const std::string& place : PlacesOf(note)) {
        auto& [lost, text] = notes[place];
        lost = lost || note.lost;
        text += (text.empty() ? "" : "; ") + note.text;
      }
    }
    for (const auto& [place, note] : notes)
      keys_.Set(place, note.first ? KeyOutcome::kNeedsDecision : KeyOutcome::kDropped,
                note.first ? note.second
                           : "because a pool takes all VFs of its rails, which are found by their PFs");
    return keys_.All();
  }

 private:
  [[nodiscard]] std::string At(std::size_t resource) const {
    return Below(Below("", list_), std::to_string(resource));
  }
  [[nodiscard]] const Json& Resource(std::size_t index) const { return config_[list_][index]; }

  [[nodiscard]] std::vector<std::string> PlacesOf(const ResourceNote& note) const {
    const Json& resource = Resource(note.resource);
    std::string at = At(note.resource);
    const Json* object = &resource;
    if (note.selector) {
      const std::string selectors = KeyIn(resource, "selectors");
      at = Below(at, selectors);
      object = &resource[selectors];
      if (object->is_array()) {
        at = Below(at, std::to_string(*note.selector));
        object = &(*object)[*note.selector];
      }
    }
    if (note.keys.empty()) return {at};
    std::vector<std::string> places;
    for (const std::string& key : note.keys) places.push_back(Below(at, KeyIn(*object, key)));
    return places;
  }

  // The pool that the resource became, and its place.
  [[nodiscard]] std::pair<const Json*, std::string> PoolOf(const std::string& resource) const {
    if (!fabric_.is_object()) return {nullptr, ""};
    const Json& pools = fabric_["pools"];
    for (std::size_t i = 0; i < pools.size(); ++i) {
      if (pools[i]["resource"] == resource) return {&pools[i], "/pools/" + std::to_string(i)};
    }
    return {nullptr, ""};
  }

  void ReportResource(std::size_t index) {
    const std::string& name = migration_.resources[index];
    const auto [pool, place] = PoolOf(name);
    if (pool == nullptr) return keys_.Set(At(index), KeyOutcome::kNeedsDecision, "its resource is left out");
    keys_.Set(At(index), KeyOutcome::kDropped, "because it asks for nothing");
    const Json& resource = Resource(index);
    const auto set = [&](const char* key, KeyOutcome outcome, const std::string& what) {
      keys_.Set(Below(At(index), KeyIn(resource, key)), outcome, what);
    };
    const std::string kept = "in " + place + "/resource of fabric.json: " + name;
    for (const char* key : {"resourceName", "resourcePrefix"}) set(key, KeyOutcome::kKept, kept);
    set("deviceType", KeyOutcome::kDropped, "because pools have VFs of network devices");
    const std::string selectors_key = KeyIn(resource, "selectors");
    const Json& selectors = resource[selectors_key];
    const std::string at = Below(At(index), selectors_key);
    if (!selectors.is_array()) return ReportSelector(selectors, at, *pool, place);
    for (std::size_t i = 0; i < selectors.size(); ++i)
      ReportSelector(selectors[i], Below(at, std::to_string(i)), *pool, place);
  }

  void ReportSelector(const Json& selector, const std::string& at, const Json& pool,
                      const std::string& place) {
    const auto rails = Join(pool["rails"].get<std::vector<std::string>>(), ", ");
    const std::string to_rails = "to rails of fabric.json, which " + place + " has: " + rails;
    for (const char* key : {"pfNames", "rootDevices"})
      keys_.Set(Below(at, KeyIn(selector, key)), KeyOutcome::kChanged, to_rails);
    const std::string rdma = KeyIn(selector, "isRdma");
    if (selector.value(rdma, Json()) == true)
      keys_.Set(Below(at, rdma), KeyOutcome::kChanged,
                "to \"ncclConfig\": \"required\" in " + place + " of fabric.json");
  }

  const Json& config_;
  const ResourceMigration& migration_;
  KeyOutcomes keys_;
  Json fabric_;
  std::string list_;
};

}  // namespace

DocumentReport ReportResources(const std::string& source, const Json& config,
                               const ResourceMigration& migration) {
  DocumentReport report;
  report.source = source;
  report.keys = Reporter(config, migration).Report();
  if (!migration.fabric.empty()) report.file = "fabric.json";
  return report;
}

}  // namespace railhead::migrate
