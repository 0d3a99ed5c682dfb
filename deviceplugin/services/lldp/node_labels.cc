#include "deviceplugin/services/lldp/node_labels.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/node/resources/fabric_resources.h"
#include "deviceplugin/node/topology/topology.h"
#include "deviceplugin/node/topology/topology_config.h"
#include "netns/base/files.h"
#include "netns/base/fnv.h"
#include "netns/base/root.h"
#include "netns/base/text.h"

namespace railhead::lldp {
namespace {

constexpr const char* kDomain = "railhead.io/";

bool IsAlnum(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 && static_cast<unsigned char>(c) < 0x80;
}

bool IsAllowed(char c) {
  return IsAlnum(c) || c == '-' || c == '_' || c == '.';
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && !IsAlnum(text.front())) text.remove_prefix(1);
  while (!text.empty() && !IsAlnum(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<const inventory::NicFunction*> PfsOf(const Fabric& fabric,
                                                 const inventory::Inventory& inventory) {
  std::vector<const inventory::NicFunction*> pfs;
  for (const auto& [rail, pf] : resources::PfsOfRails(fabric, inventory)) pfs.push_back(inventory.Find(pf));
  return pfs;
}

// Soft RoCE runs on any Ethernet NIC.
std::string NetworkOf(const Fabric& fabric, const inventory::Inventory& inventory) {
  std::set<std::string> kinds;
  for (const auto& [name, id] : resources::PfsOfRails(fabric, inventory)) {
    const inventory::NicFunction* pf = inventory.Find(id);
    if (pf->link_type == "infiniband") {
      kinds.insert("ib");
    } else {
      kinds.insert(pf->is_rdma || fabric.FindRail(name)->soft_roce ? "roce" : "ethernet");
    }
  }
  if (kinds.empty()) return "none";
  return kinds.size() == 1 ? *kinds.begin() : "mixed";
}

// The class of path from the accelerator that is farthest from its nearest rail; nullopt without either.
std::optional<PciPath> FarthestPath(const std::vector<const inventory::NicFunction*>& pfs,
                                    const topology::Topology& topology) {
  std::optional<PciPath> farthest;
  for (const Accelerator& accelerator : topology.accelerators()) {
    std::optional<PciPath> nearest;
    for (const inventory::NicFunction* pf : pfs) {
      const auto path = topology.Between(pf->address, accelerator.address);
      if (path && (!nearest || Nearer(*path, *nearest))) nearest = path;
    }
    if (nearest && (!farthest || Nearer(*farthest, *nearest))) farthest = nearest;
  }
  return farthest;
}

std::string CablingOf(const LldpReport& report) {
  const auto has = [&](Cabling cabling) { return Contains(report.rails, cabling, &RailNeighbor::cabling); };
  for (const Cabling worst : {Cabling::kWrong, Cabling::kUnknown, Cabling::kUnchecked}) {
    if (has(worst)) return std::string(WordOf(worst));
  }
  return std::string(WordOf(report.rails.empty() ? Cabling::kUnknown : Cabling::kRight));
}

// Whether a VF could have sent the frame that names the switch. The NIC puts the VLAN of the rail around what
// its VFs send.
bool MayBeForgedByVf(const Rail& rail, const inventory::NicFunction& pf) {
  return !rail.vlan && pf.vf_count > 0;
}

}  // namespace

std::string KubernetesLabel(std::string_view text, std::size_t max) {
  const bool fits = text.size() <= max && Trimmed(text) == text && std::ranges::all_of(text, IsAllowed);
  if (fits) return std::string(text);
  std::array<char, 12> hash{};
  (void)std::snprintf(hash.data(), hash.size(), "%08x", Fnv1a32(text));
  std::string made;
  for (const char c : text.substr(0, max - 9)) made.push_back(IsAllowed(c) ? c : '-');
  const std::string_view kept = Trimmed(made);
  return kept.empty() ? hash.data() : std::string(kept) + "-" + hash.data();
}

NodeLabels NodeLabelsOf(const Fabric& fabric, const inventory::Inventory& inventory,
                        const topology::Topology& topology, const LldpReport& report) {
  const auto pfs = PfsOf(fabric, inventory);
  NodeLabels labels;
  labels["railhead.io/network"] = NetworkOf(fabric, inventory);
  labels["railhead.io/rails"] = std::to_string(pfs.size());
  labels["railhead.io/rails-complete"] = pfs.size() == fabric.rails.size() ? "true" : "false";
  labels["railhead.io/cabling"] = CablingOf(report);
  labels["railhead.io/gpus"] = std::to_string(topology.accelerators().size());
  if (const auto path = FarthestPath(pfs, topology)) labels["railhead.io/gpu-nic-path"] = NameOf(*path);
  constexpr std::string_view kLongest = ".switch";
  for (const auto& [rail, address] : resources::PfsOfRails(fabric, inventory)) {
    const std::string name = kDomain + KubernetesLabel(rail, kMaxLabel - kLongest.size());
    const inventory::NicFunction& pf = *inventory.Find(address);
    labels[name + ".vfs"] = std::to_string(pf.vf_count);
    const RailNeighbor* found = report.Find(rail);
    if (found != nullptr && found->neighbor && !MayBeForgedByVf(*fabric.FindRail(rail), pf))
      labels[name + ".switch"] = KubernetesLabel(found->neighbor->neighbor.SwitchName());
  }
  return labels;
}

Result<NodeLabels> ReadNodeLabels(const Root& root, const std::string& fabric_path) {
  const auto fabric = RH_TRY(ReadFabric(root, fabric_path));
  if (!fabric) {
    return Fail(ErrorCode::kNotFound, "no such file: " + root.Path(fabric_path),
                "describe the fabric: docs/reference/fabric.md");
  }
  const auto inventory = RH_TRY(inventory::Discover(root, {}));
  const auto config = RH_TRY(topology::ReadTopologyConfig(root));
  const auto topology = RH_TRY(topology::Topology::Read(root, *inventory, config));
  const auto report = RH_TRY(kLldpFile.Read(root));
  return NodeLabelsOf(*fabric, *inventory, *topology, report.value_or(LldpReport{}));
}

}  // namespace railhead::lldp
