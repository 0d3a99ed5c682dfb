#include "deviceplugin/tools/topology_view/node_report.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "cni/fabric/fabric.h"
#include "cni/state/journal.h"
#include "netns/base/node.h"

namespace railhead {
namespace {

// Devices of attachments of this boot.
Result<std::set<std::string>> DevicesInUse(const Root& root, std::vector<std::string>& notes) {
  auto scan = RH_TRY_WRAP(Journal(root).Scan(), "looking which VFs are in use");
  std::set<std::string> devices;
  for (const JournalEntry& entry : scan.entries) {
    for (const AttachedLink& link : entry.links) devices.insert(link.device);
  }
  for (const UnreadableEntry& entry : scan.unreadable) {
    devices.insert(entry.devices.begin(), entry.devices.end());
    notes.push_back("an attachment cannot be read, its devices are shown as in use: " +
                    Describe(entry.error));
  }
  return devices;
}

}  // namespace

int NicUse::InUse() const {
  return static_cast<int>(
      std::count_if(vfs.begin(), vfs.end(), [](const ReportedVf& vf) { return vf.in_use; }));
}

Result<NodeReport> ReadNodeReport(const Root& root) {
  const auto config = RH_TRY(ReadTopologyConfig(root));
  const auto fabric = RH_TRY(ReadFabric(root));
  const auto inventory = RH_TRY(Discover(root, {}));
  NodeReport report;
  report.node = RH_TRY(NodeName(root));
  report.topology = RH_TRY(Topology::Read(root, *inventory, config));
  for (const std::string& note : report.topology->notes())
    report.notes.push_back(kTopologyPath + (": " + note));

  // Not through NVML: what is shown of a GPU is not worth waking it up.
  const AcceleratorIds ids(root, report.topology->accelerators(), {});
  for (const Accelerator& one : report.topology->accelerators())
    report.uuids.push_back(ids.UuidOf(one.address));

  const auto in_use = RH_TRY(DevicesInUse(root, report.notes));
  report.nics.resize(report.topology->nics().size());
  for (const NicFunction& function : inventory->functions) {
    const auto at = report.topology->NicIndex(function.address);
    if (!at) continue;
    NicUse& nic = report.nics[*at];
    if (function.is_vf) {
      nic.vfs.push_back({function.vf_index, function.id, in_use.contains(function.id)});
      continue;
    }
    nic.in_use = in_use.contains(function.id);
    const Rail* rail =
        fabric ? fabric->RailOfPf(function.pf_name, function.id, inventory->rail_pfs) : nullptr;
    if (rail == nullptr) continue;
    nic.rail = rail->name;
    nic.vlan = rail->vlan;
  }
  return report;
}

}  // namespace railhead
