#include "deviceplugin/tools/topology_view/node_report.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "cni/fabric/fabric.h"
#include "cni/state/journal.h"
#include "deviceplugin/node/topology/topology_config.h"
#include "netns/base/node.h"
#include "netns/base/text.h"
#include "netns/json/record_table.h"

namespace railhead::topology_view {
namespace {

// Devices of attachments of this boot.
Result<std::set<std::string>> DevicesInUse(const Root& root, std::vector<std::string>& notes) {
  auto scan = RH_TRY_WRAP(Journal(root).Scan(), "looking which VFs are in use");
  std::set<std::string> devices;
  for (const JournalEntry& entry : scan.entries) {
    for (const AttachedDevice& link : entry.devices) devices.insert(link.device);
  }
  for (const UnreadableEntry& entry : scan.unreadable) {
    devices.insert(entry.devices.begin(), entry.devices.end());
    notes.push_back("an attachment cannot be read, its devices are shown as in use: " +
                    Describe(entry.error));
  }
  return devices;
}

std::vector<std::size_t> AllOf(std::size_t count) {
  std::vector<std::size_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

Result<NodeReport> ReadNodeReport(const Root& root) {
  const auto config = RH_TRY(topology::ReadTopologyConfig(root));
  const auto fabric = RH_TRY(ReadFabric(root));
  const auto inventory = RH_TRY(inventory::Discover(root, {}));
  NodeReport report;
  report.node = RH_TRY(NodeName(root));
  report.topology = RH_TRY(topology::Topology::Read(root, *inventory, config));
  for (const std::string& note : report.topology->notes())
    report.notes.push_back(topology::kTopologyPath + (": " + note));

  // NVML is not used: it would wake the GPUs, and the report needs little about them.
  const topology::AcceleratorIds ids(root, report.topology->accelerators(), {});
  for (const Accelerator& one : report.topology->accelerators())
    report.uuids.push_back(ids.UuidOf(one.address));

  const auto in_use = RH_TRY(DevicesInUse(root, report.notes));
  report.nics.resize(report.topology->nics().size());
  report.shown = AllOf(report.nics.size());
  for (const inventory::NicFunction& function : inventory->functions) {
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

// NodeReport as text and for programs.

namespace {

constexpr const char* kLegend =
    "Legend:\n"
    "  X     the device itself\n"
    "  PIX   at most one PCIe switch between them\n"
    "  PXB   several PCIe switches, no host bridge\n"
    "  PHB   a PCIe host bridge: through the processor\n"
    "  NODE  host bridges of one NUMA node\n"
    "  SYS   NUMA nodes: through the interconnect between sockets\n"
    "  *     from /etc/railhead/topology.json, not from the PCI tree\n"
    "NVLink and other links beside PCIe are not seen here.\n";

std::string Name(const char* kind, std::size_t number) {
  return kind + std::to_string(number);
}

std::string NumaText(const std::optional<int>& numa_node) {
  return numa_node ? std::to_string(*numa_node) : "-";
}

std::string Cell(const topology::Topology& topology, std::size_t nic, std::size_t accelerator) {
  std::string text(NameOf(topology.NicToAccelerator(nic, accelerator)));
  return topology.IsOverridden(nic, accelerator) ? text + "*" : text;
}

std::string Matrix(const topology::Topology& topology, const std::vector<std::size_t>& nics) {
  const std::size_t gpus = topology.accelerators().size();
  Row head = {""};
  for (std::size_t i = 0; i < gpus; ++i) head.push_back(Name("GPU", i));
  for (const std::size_t i : nics) head.push_back(Name("NIC", i));
  head.emplace_back("NUMA");
  std::vector<Row> rows = {head};
  rows.reserve(1 + gpus + nics.size());
  for (std::size_t i = 0; i < gpus; ++i) {
    Row row = {Name("GPU", i)};
    for (std::size_t k = 0; k < gpus; ++k) {
      row.emplace_back(k == i ? "X" : NameOf(topology.AcceleratorToAccelerator(i, k)));
    }
    for (const std::size_t k : nics) row.push_back(Cell(topology, k, i));
    row.push_back(NumaText(topology.accelerators()[i].numa_node));
    rows.push_back(std::move(row));
  }
  for (const std::size_t i : nics) {
    Row row = {Name("NIC", i)};
    for (std::size_t k = 0; k < gpus; ++k) row.push_back(Cell(topology, i, k));
    for (const std::size_t k : nics) {
      row.emplace_back(k == i ? "X" : NameOf(topology.NicToNic(i, k)));
    }
    row.push_back(NumaText(topology.nics()[i].numa_node));
    rows.push_back(std::move(row));
  }
  return Aligned(rows);
}

// The table, or `none` for an empty list.
template <typename T>
std::string Table(const std::vector<T>& list, const std::string& title, const char* none) {
  return list.empty() ? none : title + Aligned(TableOf(list), "  ");
}

std::vector<AcceleratorView> Accelerators(const NodeReport& report) {
  std::vector<AcceleratorView> list;
  for (std::size_t i = 0; i < report.uuids.size(); ++i)
    list.push_back({Name("GPU", i), report.topology->accelerators()[i], report.uuids[i]});
  return list;
}

std::vector<NicView> Nics(const NodeReport& report) {
  std::vector<NicView> list;
  for (const std::size_t i : report.shown)
    list.push_back({Name("NIC", i), report.topology->nics()[i], report.nics[i]});
  return list;
}

std::vector<PathView> NicAcceleratorPaths(const topology::Topology& topology,
                                          const std::vector<std::size_t>& nics) {
  std::vector<PathView> paths;
  for (const std::size_t nic : nics) {
    for (std::size_t i = 0; i < topology.accelerators().size(); ++i) {
      paths.push_back({topology.nics()[nic].address.ToString(), topology.accelerators()[i].address.ToString(),
                       std::string(NameOf(topology.NicToAccelerator(nic, i)))});
    }
  }
  return paths;
}

// `shown`: indices, ascending.
template <typename Device, typename Path>
std::vector<PairView> PairPaths(const std::vector<Device>& devices, const std::vector<std::size_t>& shown,
                                Path path) {
  std::vector<PairView> pairs;
  for (const std::size_t i : shown) {
    for (const std::size_t k : shown) {
      if (k <= i) continue;
      pairs.push_back(
          {{devices[i].address.ToString(), devices[k].address.ToString()}, std::string(NameOf(path(i, k)))});
    }
  }
  return pairs;
}

}  // namespace

std::vector<std::string> NicUse::VfsInUse() const {
  std::vector<std::string> ids;
  for (const ReportedVf& vf : vfs) {
    if (vf.in_use) ids.push_back(vf.id);
  }
  return ids;
}

std::string HexText(std::uint16_t number) {
  char text[8];
  (void)std::snprintf(text, sizeof text, "%04x", number);
  return text;
}

std::vector<std::string> BridgesOf(const std::string& path) {
  const auto host = path.rfind("/pci");
  auto parts = Split(host == std::string::npos ? path : path.substr(host + 1), '/');
  if (!parts.empty()) parts.pop_back();
  return parts;
}

std::string ReportText(const NodeReport& report) {
  std::string text = Matrix(*report.topology, report.shown) + "\n" +
                     Table(Accelerators(report), "Accelerators:\n", "No accelerators.\n") + "\n" +
                     Table(Nics(report), "NICs:\n", "No network functions.\n") + "\n" + kLegend;
  for (const std::string& note : report.notes) text += "Note: " + note + "\n";
  return text;
}

NodeView ViewOf(const NodeReport& report) {
  const topology::Topology& topology = *report.topology;
  return {report.node,
          Accelerators(report),
          Nics(report),
          NicAcceleratorPaths(topology, report.shown),
          PairPaths(topology.accelerators(), AllOf(topology.accelerators().size()),
                    [&](auto a, auto b) { return topology.AcceleratorToAccelerator(a, b); }),
          PairPaths(topology.nics(), report.shown, [&](auto a, auto b) { return topology.NicToNic(a, b); }),
          report.notes};
}

}  // namespace railhead::topology_view
