#include "deviceplugin/tools/railctl/config_diff.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cni/fabric/fabric_base.h"
#include "cni/fabric/fabric_shape.h"
#include "cni/fabric/node_index.h"
#include "cni/protocol/cni_args.h"
#include "deviceplugin/node/resources/fabric_resources.h"
#include "deviceplugin/services/fabric_follow/compose.h"
#include "deviceplugin/tools/railctl/config_sections.h"
#include "netns/base/node.h"
#include "netns/base/text.h"
#include "netns/json/record_io.h"

namespace railhead::railctl {
namespace {

using fabric_follow::ChangesIds;
using fabric_follow::HolderName;
using Json = nlohmann::ordered_json;

std::string ValueText(const Json& object, const std::string& key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end() || found->is_null()) return {};
  return found->is_string() ? found->get<std::string>() : record::Dump(*found);
}

std::vector<FieldChange> FieldsOf(const Json& before, const Json& after) {
  std::vector<FieldChange> fields;
  std::vector<std::string> keys;
  for (const Json* object : {&before, &after}) {
    if (!object->is_object()) continue;
    for (const auto& [key, value] : object->items()) {
      if (!Contains(keys, key)) keys.push_back(key);
    }
  }
  for (const std::string& key : keys) {
    FieldChange field{key, ValueText(before, key), ValueText(after, key)};
    if (field.before != field.after) fields.push_back(std::move(field));
  }
  return fields;
}

const Rail* RailIn(const NodeConfig* config, const std::string& name) {
  return config == nullptr || !config->pfs.contains(name) ? nullptr : config->fabric.FindRail(name);
}

const Pool* PoolIn(const NodeConfig* config, const std::string& resource) {
  if (config == nullptr) return nullptr;
  const auto found = std::ranges::find(config->fabric.pools, resource, &Pool::resource);
  return found == config->fabric.pools.end() ? nullptr : &*found;
}

template <typename T>
Json JsonOf(const T* value) {
  return value == nullptr ? Json::object() : ToJson(*value);
}

ChangeWord WordFor(bool before, bool after) {
  if (before && after) return ChangeWord::kChanged;
  return after ? ChangeWord::kAdded : ChangeWord::kRemoved;
}

// The names of both, each once, those of `before` first.
template <typename Names>
std::vector<std::string> NamesOfBoth(const NodeConfig* before, const NodeConfig& after, Names names) {
  std::vector<std::string> both = before == nullptr ? std::vector<std::string>() : names(*before);
  for (const std::string& name : names(after)) {
    if (!Contains(both, name)) both.push_back(name);
  }
  return both;
}

std::vector<std::string> RailNames(const NodeConfig& config) {
  std::vector<std::string> names;
  for (const Rail& rail : config.fabric.rails) {
    if (config.pfs.contains(rail.name)) names.push_back(rail.name);
  }
  return names;
}

std::set<std::string> DevicesIn(const NodeConfig* config, const std::string& resource) {
  if (config == nullptr) return {};
  const auto found = config->resources.find(resource);
  return found == config->resources.end() ? std::set<std::string>() : found->second;
}

std::map<std::string, std::string> ResourceByDevice(const NodeConfig* config) {
  std::map<std::string, std::string> resources;
  if (config == nullptr) return resources;
  for (const auto& [resource, devices] : config->resources) {
    for (const std::string& device : devices) resources[device] = resource;
  }
  return resources;
}

class Differ {
 public:
  Differ(const NodeConfig* before, const NodeConfig& after, const Holders& holders)
      : before_(before), after_(after), holders_(holders) {}

  std::vector<ConfigChange> Run() {
    CompareFabric();
    const auto rails = NamesOfBoth(before_, after_, RailNames);
    for (const std::string& rail : rails) CompareRail(rail);
    const auto pools = NamesOfBoth(before_, after_, [](const NodeConfig& config) {
      std::vector<std::string> names;
      for (const Pool& pool : config.fabric.pools) names.push_back(pool.resource);
      return names;
    });
    for (const std::string& pool : pools) CompareResource(pool);
    CompareDevices();
    return std::move(changes_);
  }

 private:
  // All keys besides rails and pools, which have changes of their own.
  void CompareFabric() {
    const Json before = JsonOf(before_ == nullptr ? nullptr : &before_->fabric);
    const Json after = ToJson(after_.fabric);
    for (const FieldChange& key : FieldsOf(before, after)) {
      if (key.field == "version" || key.field == "rails" || key.field == "pools") continue;
      ConfigChange change{
          ChangedKind::kFabric, key.field, WordFor(!key.before.empty(), !key.after.empty()), {}, {}, {}};
      const Json none = Json::object();
      const Json& old_value = before.contains(key.field) ? before[key.field] : none;
      const Json& new_value = after.contains(key.field) ? after[key.field] : none;
      change.fields = FieldsOf(old_value, new_value);
      // A text or number by itself.
      if (change.fields.empty()) change.fields = {key};
      // The mode is of the whole node, and cannot change while pods have RDMA devices.
      if (key.field == "rdmaMode" && before_ != nullptr) {
        for (const std::string& rail : RailNames(*before_)) Touch(rail, &change);
      }
      if (key.field == "nodes" && before_ != nullptr) {
        for (const std::string& rail : RailNames(*before_)) AddStrayed(rail, &change);
      }
      changes_.push_back(std::move(change));
    }
  }

  void CompareRail(const std::string& name) {
    const Rail* before = RailIn(before_, name);
    const Rail* after = RailIn(&after_, name);
    ConfigChange change{ChangedKind::kRail, name, WordFor(before != nullptr, after != nullptr), {}, {}, {}};
    change.fields = FieldsOf(JsonOf(before), JsonOf(after));
    if (before != nullptr && after != nullptr && before_->pfs.at(name) != after_.pfs.at(name))
      change.fields.push_back({"device", before_->pfs.at(name), after_.pfs.at(name)});
    if (change.fields.empty()) return;
    const auto pfs_of = [&](const Rail& rail) {
      return std::vector<std::string>{(&rail == before ? *before_ : after_).pfs.at(name)};
    };
    const bool touches = before != nullptr &&
                         (after == nullptr || fabric_follow::ChangesDevices(
                                                  *before, *after, after_.with_table.contains(name), pfs_of));
    if (touches) Touch(name, &change);
    AddStrayed(name, &change);
    changes_.push_back(std::move(change));
  }

  // Pods whose address would be another node's, and was not before.
  void AddStrayed(const std::string& name, ConfigChange* change) {
    const Rail* before = RailIn(before_, name);
    const Rail* after = RailIn(&after_, name);
    if (before == nullptr || after == nullptr) return;
    auto pods = holders_.Strayed(*after, after_);
    for (const std::string& pod : holders_.Strayed(*before, *before_)) pods.erase(pod);
    if (!pods.empty()) change->drain.insert(name);
    change->pods.merge(pods);
  }

  void CompareResource(const std::string& resource) {
    const Pool* before = PoolIn(before_, resource);
    const Pool* after = PoolIn(&after_, resource);
    ConfigChange change{
        ChangedKind::kResource, resource, WordFor(before != nullptr, after != nullptr), {}, {}, {}};
    change.fields = FieldsOf(JsonOf(before), JsonOf(after));
    const auto old_devices = DevicesIn(before_, resource);
    const auto new_devices = DevicesIn(&after_, resource);
    if (old_devices != new_devices) {
      change.fields.push_back(
          {"devices", std::to_string(old_devices.size()), std::to_string(new_devices.size())});
    }
    if (change.fields.empty()) return;
    const bool touches =
        std::ranges::any_of(change.fields, [](const FieldChange& field) { return ChangesIds(field.field); });
    if (before != nullptr && after != nullptr && touches) {
      for (const std::string& rail : before->rails) Touch(rail, &change);
    }
    changes_.push_back(std::move(change));
  }

  void CompareDevices() {
    const auto before = ResourceByDevice(before_);
    const auto after = ResourceByDevice(&after_);
    std::set<std::string> devices;
    for (const auto* one : {&before, &after}) {
      for (const auto& [device, resource] : *one) devices.insert(device);
    }
    for (const std::string& device : devices) {
      const auto was = before.find(device);
      const auto is = after.find(device);
      const FieldChange field{"resource", was == before.end() ? "" : was->second,
                              is == after.end() ? "" : is->second};
      if (field.before == field.after) continue;
      ConfigChange change{ChangedKind::kDevice,
                          device,
                          WordFor(!field.before.empty(), !field.after.empty()),
                          {field},
                          {},
                          {}};
      if (!field.before.empty()) change.pods = holders_.OfDevice(device);
      if (!change.pods.empty()) change.drain = {device};
      changes_.push_back(std::move(change));
    }
  }

  void Touch(const std::string& name, ConfigChange* change) {
    const Rail* rail = RailIn(before_, name);
    if (rail == nullptr) return;
    const auto pods = holders_.OfRail(*rail);
    change->pods.insert(pods.begin(), pods.end());
    if (!pods.empty()) change->drain.insert(name);
  }

  const NodeConfig* before_;
  const NodeConfig& after_;
  const Holders& holders_;
  std::vector<ConfigChange> changes_;
};

}  // namespace

std::string TextOf(const std::vector<FieldChange>& fields) {
  std::vector<std::string> texts;
  for (const FieldChange& field : fields) {
    const auto shown = [](const std::string& value) { return value.empty() ? "-" : value; };
    texts.push_back(field.field + " " + shown(field.before) + " -> " + shown(field.after));
  }
  return Join(texts, ", ");
}

std::set<std::string> ConfigDiff::Drain() const {
  std::set<std::string> targets;
  for (const ConfigChange& change : changes) targets.insert(change.drain.begin(), change.drain.end());
  return targets;
}

Result<std::optional<NodeConfig>> ReadNodeConfig(const Root& root, const std::string& path) {
  const auto text = RH_TRY(ReadFile(root.Path(path)));
  if (!text) return std::nullopt;
  ConfigSource source;
  source.fabric = path;
  source.is_proposal = path != kFabricPath;
  const NodeSnapshot node = RH_TRY(SnapshotOfThisNode(root, source));
  NodeConfig config;
  config.node = NodeName(root).value_or("");
  const FabricBase base = RH_TRY(FabricBase::Parse(*text, path));
  config.fabric = RH_TRY(base.FabricOf(config.node));
  const std::string own = RH_TRY(base.TextOf(config.node));
  const Json json = Json::parse(own, nullptr, false);
  for (const Json& rail : json.value("rails", Json::array())) {
    if (!ValueText(rail, "table").empty()) config.with_table.insert(rail.value("name", ""));
  }
  config.index = IndexOfThisNode(root, config.fabric, config.node).value_or(std::nullopt);
  config.pfs = resources::PfsOfRails(config.fabric, *node.inventory);
  for (const auto& pool : node.pools) {
    auto& devices = config.resources[pool->spec.resource];
    for (const resources::PoolMember& member : pool->members) devices.insert(member.function.id);
  }
  return std::optional<NodeConfig>(std::move(config));
}

std::set<std::string> Holders::OfDevice(const std::string& device) const {
  std::set<std::string> pods = unreadable;
  for (const JournalEntry& entry : attachments) {
    if (Contains(entry.devices, device, &AttachedDevice::device))
      pods.insert(HolderName(PodName(entry.cni_args), entry.key.container_id));
  }
  return pods;
}

std::set<std::string> Holders::OfRail(const Rail& rail) const {
  std::set<std::string> pods = unreadable;
  for (const JournalEntry& entry : attachments) {
    if (Contains(entry.devices, rail.name, &AttachedDevice::rail))
      pods.insert(HolderName(PodName(entry.cni_args), entry.key.container_id));
  }
  for (const KnownAddress& known : addresses) {
    if (rail.subnet && rail.subnet->Contains(known.record.address))
      pods.insert(HolderName(known.pod, known.record.owner.container));
  }
  return pods;
}

std::set<std::string> Holders::Strayed(const Rail& rail, const NodeConfig& config) const {
  if (!rail.subnet) return {};
  const auto ranges = rail.RangesOf(config.node, config.index);
  if (ranges.empty()) return {};
  std::set<std::string> pods;
  for (const KnownAddress& known : addresses) {
    const IpAddress& address = known.record.address;
    const auto has = [&](const IpRange& range) { return range.Contains(address); };
    if (rail.subnet->Contains(address) && !std::ranges::any_of(ranges, has))
      pods.insert(HolderName(known.pod, known.record.owner.container));
  }
  return pods;
}

Result<Holders> ReadHolders(const Root& root) {
  Holders holders;
  JournalScan scan = RH_TRY(Journal(root).Scan());
  holders.unreadable = fabric_follow::RailsInUse(scan).unreadable;
  holders.attachments = std::move(scan.entries);
  if (auto report = RH_TRY(ReportAddresses(root))) holders.addresses = std::move(report->addresses);
  std::erase_if(holders.addresses, [](const KnownAddress& known) {
    return known.record.state != ipam::AddressState::kHeld || !known.leak.empty();
  });
  return holders;
}

std::vector<ConfigChange> DiffConfigs(const NodeConfig* before, const NodeConfig& after,
                                      const Holders& holders) {
  return Differ(before, after, holders).Run();
}

}  // namespace railhead::railctl
