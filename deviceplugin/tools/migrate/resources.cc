#include "deviceplugin/tools/migrate/resources.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/node/resources/selector.h"
#include "deviceplugin/node/resources/sriovdp_config.h"
#include "netns/base/text.h"
#include "netns/sys/user_space.h"

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

namespace railhead::migrate {
namespace {

using OrderedJson = nlohmann::ordered_json;

class SriovdpMigrator {
 public:
  void Add(const resources::ResourceSpec& spec, std::size_t index) {
    resource_ = index;
    selector_.reset();
    done_.resources.push_back(spec.resource);
    if (const std::string why = WhyNotAtAll(spec); !why.empty()) {
      return Note({}, true, "left out: " + why + "; keep config.json for it");
    }
    std::vector<std::string> rails;
    bool rdma = false;
    for (std::size_t i = 0; i < spec.selectors.size(); ++i) {
      selector_ = i;
      AddRailsOf(spec.selectors[i], &rails);
      rdma = rdma || spec.selectors[i].is_rdma.value_or(false);
    }
    selector_.reset();
    if (rails.empty()) return;
    NoteWhatIsShared(rails, spec.resource);
    if (!spec.additional_info.empty())
      Note({"additionalInfo"}, true, "additionalInfo is left out: fabric.json has no such thing");
    if (spec.exclude_topology)
      Note({"excludeTopology"}, true, "excludeTopology is left out: devices tell their NUMA node");
    OrderedJson pool;
    pool["resource"] = spec.resource;
    pool["rails"] = rails;
    // Without RDMA NCCL needs no configuration, and no GID will appear.
    pool["ncclConfig"] = rdma ? "required" : "off";
    pools_.push_back(std::move(pool));
  }

  Result<ResourceMigration> Finish(const std::string& what) {
    if (pools_.empty()) return std::move(done_);
    OrderedJson fabric;
    fabric["version"] = 1;
    fabric["rails"] = rails_;
    fabric["pools"] = pools_;
    done_.fabric = fabric.dump(2) + "\n";
    // Both files have their own rules for names.
    if (const auto read = ParseFabric(done_.fabric, "the resulting fabric.json"); !read) {
      return Fail(ErrorCode::kUnsupported, "migrating " + what + ": " + read.error().message,
                  read.error().hint);
    }
    return std::move(done_);
  }

 private:
  void Note(std::vector<std::string> keys, bool lost, std::string text) {
    done_.notes.push_back({resource_, selector_, std::move(keys), lost, std::move(text)});
  }

  static std::string WhyNotAtAll(const resources::ResourceSpec& spec) {
    if (spec.kind == inventory::FunctionKind::kAccelerator) return "accelerators are on no rail";
    if (spec.kind == inventory::FunctionKind::kAuxiliary) return "fabric.json's pools have no subfunctions";
    for (const resources::Selector& selector : spec.selectors) {
      if (selector.vdpa != inventory::VdpaType::kNone) return "fabric.json's pools have no vDPA devices";
      if (selector.need_vhost_net) return "fabric.json's pools give out no vhost-net";
      if (!selector.ddp_profiles.empty()) return "fabric.json has no DDP packages";
      if (!selector.pkeys.empty()) return "fabric.json has no InfiniBand partitions";
      if (Contains(selector.link_types, "infiniband")) {
        return "rails are Ethernet";
      }
      if (std::ranges::any_of(selector.drivers, [](const std::string& driver) {
            return UserSpaceOf(driver) != UserSpace::kNone;
          })) {
        return "fabric.json's pools have no devices with user-space drivers";
      }
    }
    const bool names_pf = std::ranges::any_of(spec.selectors, [](const resources::Selector& selector) {
      return !selector.pf_names.empty() || !selector.root_devices.empty();
    });
    return names_pf ? "" : "no selector names its PFs by pfNames or rootDevices, so its rails are not known";
  }

  void AddRailsOf(const resources::Selector& selector, std::vector<std::string>* rails) {
    const bool by_name = !selector.pf_names.empty();
    const std::vector<resources::PfRange>& pfs = by_name ? selector.pf_names : selector.root_devices;
    if (pfs.empty()) {
      Note({}, true, "a selector without pfNames and rootDevices is left out");
      return;
    }
    if (by_name && !selector.root_devices.empty()) {
      Note({"rootDevices"}, false,
           "rootDevices beside pfNames are left out: the rail is found by the PF's name");
    }
    for (const resources::PfRange& range : pfs) {
      if (!range.vfs.empty()) {
        Note({by_name ? "pfNames" : "rootDevices"}, true,
             "the range of VFs of " + range.pf + " is left out: a pool takes all VFs of its rails");
      }
      const std::string& rail = RailOf(range.pf);
      if (!Contains(*rails, rail)) rails->push_back(rail);
    }
    NoteFilters(selector);
  }

  void NoteFilters(const resources::Selector& selector) {
    // All functions of one PF are alike in these.
    std::vector<std::string> same;
    if (!selector.vendors.empty()) same.emplace_back("vendors");
    if (!selector.devices.empty()) same.emplace_back("devices");
    if (!selector.drivers.empty()) same.emplace_back("drivers");
    if (!selector.link_types.empty()) same.emplace_back("linkTypes");
    std::vector<std::string> some;
    if (!selector.pci_addresses.empty()) some.emplace_back("pciAddresses");
    if (!selector.acpi_indexes.empty()) some.emplace_back("acpiIndexes");
    for (const auto* keys : {&same, &some}) {
      if (!keys->empty())
        Note(*keys, keys == &some, Join(*keys, ", ") + " left out: a pool takes all VFs of its rails");
    }
  }

  const std::string& RailOf(const std::string& pf) {
    auto [found, made] = rail_of_.try_emplace(ToLower(pf), "rail" + std::to_string(rail_of_.size()));
    if (made) {
      OrderedJson rail;
      rail["name"] = found->second;
      rail["pf"] = pf;
      rails_.push_back(std::move(rail));
    }
    return found->second;
  }

  void NoteWhatIsShared(const std::vector<std::string>& rails, const std::string& resource) {
    for (const std::string& rail : rails) {
      const auto [first, made] = pool_of_.try_emplace(rail, resource);
      if (!made) {
        Note({"resourceName"}, true,
             rail + " is in the pool " + first->second +
                 ", too, which takes all of its VFs: make one pool of both, or stay with config.json");
      }
    }
  }

  std::size_t resource_ = 0;
  std::optional<std::size_t> selector_;
  ResourceMigration done_;
  OrderedJson rails_ = OrderedJson::array();
  OrderedJson pools_ = OrderedJson::array();
  std::map<std::string, std::string> rail_of_;  // PF in lower case -> rail
  std::map<std::string, std::string> pool_of_;  // rail -> the first resource over it
};

}  // namespace

Result<ResourceMigration> MigrateResources(std::string_view text, const std::string& what,
                                           const std::string& default_prefix) {
  const auto specs = RH_TRY(resources::ParseSriovdpConfig(text, what, default_prefix));
  SriovdpMigrator migrator;
  for (std::size_t index = 0; index < specs.size(); ++index) migrator.Add(specs[index], index);
  return migrator.Finish(what);
}

}  // namespace railhead::migrate
