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

using FabricJson = nlohmann::ordered_json;

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
    FabricJson pool;
    pool["resource"] = spec.resource;
    pool["rails"] = rails;
    // Without RDMA NCCL needs no configuration, and no GID will appear.
    pool["ncclConfig"] = rdma ? "required" : "off";
    pools_.push_back(std::move(pool));
  }

  Result<ResourceMigration> Finish(const std::string& what) {
    if (pools_.empty()) return std::move(done_);
    FabricJson fabric;
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
      FabricJson rail;
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
  FabricJson rails_ = FabricJson::array();
  FabricJson pools_ = FabricJson::array();
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
