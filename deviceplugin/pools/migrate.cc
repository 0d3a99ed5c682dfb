#include "deviceplugin/pools/migrate.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "cni/fabric/fabric.h"
#include "deviceplugin/pools/drivers.h"
#include "deviceplugin/pools/sriovdp_config.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

using OrderedJson = nlohmann::ordered_json;

class Migrator {
 public:
  void Add(const ResourceSpec& spec, std::size_t index) {
    where_ = "/resourceList/" + std::to_string(index) + " (" + spec.resource + "): ";
    if (const std::string why = WhyNotAtAll(spec); !why.empty()) {
      Note("left out: " + why + "; keep config.json for it");
      return;
    }
    std::vector<std::string> rails;
    bool rdma = false;
    for (const Selector& selector : spec.selectors) {
      AddRailsOf(selector, &rails);
      rdma = rdma || selector.is_rdma.value_or(false);
    }
    if (rails.empty()) return;
    NoteWhatIsShared(rails, spec.resource);
    if (!spec.additional_info.empty()) Note("additionalInfo is left out: fabric.json has no such thing");
    if (spec.exclude_topology) Note("excludeTopology is left out: devices tell their NUMA node");
    OrderedJson pool;
    pool["resource"] = spec.resource;
    pool["rails"] = rails;
    // Without RDMA there is nothing for NCCL to know, and no GID to wait for.
    pool["handoff"] = rdma ? "required" : "off";
    pools_.push_back(std::move(pool));
  }

  Result<Migration> Finish(const std::string& what) {
    if (pools_.empty()) {
      return Fail(ErrorCode::kUnsupported,
                  "migrating " + what + ": no resource can be carried over: " + Join(notes_, "; "),
                  "stay with --config-file, or write fabric.json by hand (docs/reference/fabric.md)");
    }
    OrderedJson fabric;
    fabric["version"] = 1;
    fabric["rails"] = rails_;
    fabric["pools"] = pools_;
    where_ = "/rails: ";
    Note(
        "to be filled in by you, since config.json does not say it: each rail's vlan, mtu, subnet, gateway, "
        "routes and nodeRanges or nodeBlock; without a subnet addresses come from the ipam of the network "
        "configuration");
    Migration migration{fabric.dump(2) + "\n", std::move(notes_)};
    // Both files have rules of their own for names.
    if (const auto read = ParseFabric(migration.fabric, "the fabric.json made of it"); !read) {
      return Fail(ErrorCode::kUnsupported, "migrating " + what + ": " + read.error().message,
                  read.error().hint);
    }
    return migration;
  }

 private:
  void Note(const std::string& text) { notes_.push_back(where_ + text); }

  static std::string WhyNotAtAll(const ResourceSpec& spec) {
    if (spec.kind == FunctionKind::kAccelerator) return "accelerators are on no rail";
    if (spec.kind == FunctionKind::kAuxiliary) return "fabric.json's pools have no subfunctions";
    for (const Selector& selector : spec.selectors) {
      if (selector.vdpa != VdpaType::kNone) return "fabric.json's pools have no vDPA devices";
      if (selector.need_vhost_net) return "fabric.json's pools give out no vhost-net";
      if (!selector.ddp_profiles.empty()) return "DDP packages are no part of fabric.json";
      if (!selector.pkeys.empty()) return "InfiniBand partitions are no part of fabric.json";
      if (std::find(selector.link_types.begin(), selector.link_types.end(), "infiniband") !=
          selector.link_types.end()) {
        return "rails are Ethernet";
      }
      if (std::any_of(selector.drivers.begin(), selector.drivers.end(),
                      [](const std::string& driver) { return UserSpaceOf(driver) != UserSpace::kNone; })) {
        return "fabric.json's pools have no devices with user-space drivers";
      }
    }
    const bool names_pf =
        std::any_of(spec.selectors.begin(), spec.selectors.end(), [](const Selector& selector) {
          return !selector.pf_names.empty() || !selector.root_devices.empty();
        });
    return names_pf ? "" : "no selector names its PFs by pfNames or rootDevices, so its rails are not known";
  }

  void AddRailsOf(const Selector& selector, std::vector<std::string>* rails) {
    const bool by_name = !selector.pf_names.empty();
    const std::vector<PfRange>& pfs = by_name ? selector.pf_names : selector.root_devices;
    if (pfs.empty()) {
      Note("a selector without pfNames and rootDevices is left out");
      return;
    }
    if (by_name && !selector.root_devices.empty()) {
      Note("rootDevices beside pfNames are left out: the rail is found by the PF's name");
    }
    for (const PfRange& range : pfs) {
      if (!range.vfs.empty()) {
        Note("the range of VFs of " + range.pf + " is left out: a pool takes all VFs of its rails");
      }
      const std::string& rail = RailOf(range.pf);
      if (std::find(rails->begin(), rails->end(), rail) == rails->end()) rails->push_back(rail);
    }
    NoteFilters(selector);
  }

  void NoteFilters(const Selector& selector) {
    std::vector<std::string> keys;
    if (!selector.vendors.empty()) keys.emplace_back("vendors");
    if (!selector.devices.empty()) keys.emplace_back("devices");
    if (!selector.drivers.empty()) keys.emplace_back("drivers");
    if (!selector.pci_addresses.empty()) keys.emplace_back("pciAddresses");
    if (!selector.acpi_indexes.empty()) keys.emplace_back("acpiIndexes");
    if (!selector.link_types.empty()) keys.emplace_back("linkTypes");
    if (!keys.empty()) Note(Join(keys, ", ") + " left out: a pool takes all VFs of its rails");
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
        Note(rail + " is in the pool " + first->second +
             ", too, which takes all of its VFs: make one pool of both, " + "or stay with config.json");
      }
    }
  }

  std::string where_;
  std::vector<std::string> notes_;
  OrderedJson rails_ = OrderedJson::array();
  OrderedJson pools_ = OrderedJson::array();
  std::map<std::string, std::string> rail_of_;  // PF in lower case -> rail
  std::map<std::string, std::string> pool_of_;  // rail -> the first resource over it
};

}  // namespace

Result<Migration> MigrateSriovdpConfig(std::string_view text, const std::string& what,
                                       const std::string& default_prefix) {
  const auto specs = RH_TRY(ParseSriovdpConfig(text, what, default_prefix));
  Migrator migrator;
  for (std::size_t index = 0; index < specs.size(); ++index) migrator.Add(specs[index], index);
  return migrator.Finish(what);
}

}  // namespace railhead
