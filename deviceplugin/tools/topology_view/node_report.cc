#include "deviceplugin/tools/topology_view/node_report.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "cni/fabric/fabric.h"
#include "cni/state/journal.h"
#include "netns/base/node.h"
#include "netns/base/text.h"

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

}  // namespace

int NicUse::InUse() const {
  return static_cast<int>(std::ranges::count_if(vfs, &ReportedVf::in_use));
}

Result<NodeReport> ReadNodeReport(const Root& root) {
  const auto config = RH_TRY(topology::ReadTopologyConfig(root));
  const auto fabric = RH_TRY(ReadFabric(root));
  const auto inventory = RH_TRY(inventory::Discover(root, {}));
  NodeReport report;
  report.node = RH_TRY(NodeName(root));
  report.topology = RH_TRY(topology::Topology::Read(root, *inventory, config));
  for (const std::string& note : report.topology->notes())
    report.notes.push_back(topology::kTopologyPath + (": " + note));

  // Not through NVML: what is shown of a GPU is not worth waking it up.
  const topology::AcceleratorIds ids(root, report.topology->accelerators(), {});
  for (const Accelerator& one : report.topology->accelerators())
    report.uuids.push_back(ids.UuidOf(one.address));

  const auto in_use = RH_TRY(DevicesInUse(root, report.notes));
  report.nics.resize(report.topology->nics().size());
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

// NodeReport as text and as JSON.

namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

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

// Columns padded to their widest cell, two blanks between them.
std::string Aligned(const std::vector<Row>& rows, const std::string& indent) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line = indent;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      line.append(widths[i] - row[i].size() + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string Name(const char* kind, std::size_t number) {
  return kind + std::to_string(number);
}

std::string Or(const std::string& text, const char* otherwise) {
  return text.empty() ? otherwise : text;
}

std::string NumaText(const std::optional<int>& numa_node) {
  return numa_node ? std::to_string(*numa_node) : "-";
}

std::string IdText(const Accelerator& accelerator) {
  char text[16];
  (void)std::snprintf(text, sizeof text, "%04x:%04x", accelerator.vendor, accelerator.device);
  return text;
}

std::string Cell(const topology::Topology& topology, std::size_t nic, std::size_t accelerator) {
  std::string text(NameOf(topology.NicToAccelerator(nic, accelerator)));
  return topology.IsOverridden(nic, accelerator) ? text + "*" : text;
}

std::string Matrix(const topology::Topology& topology) {
  const std::size_t gpus = topology.accelerators().size();
  const std::size_t nics = topology.nics().size();
  Row head = {""};
  for (std::size_t i = 0; i < gpus; ++i) head.push_back(Name("GPU", i));
  for (std::size_t i = 0; i < nics; ++i) head.push_back(Name("NIC", i));
  head.emplace_back("NUMA");
  std::vector<Row> rows = {head};
  rows.reserve(1 + gpus + nics);
  for (std::size_t i = 0; i < gpus; ++i) {
    Row row = {Name("GPU", i)};
    for (std::size_t k = 0; k < gpus; ++k) {
      row.emplace_back(k == i ? "X" : NameOf(topology.AcceleratorToAccelerator(i, k)));
    }
    for (std::size_t k = 0; k < nics; ++k) row.push_back(Cell(topology, k, i));
    row.push_back(NumaText(topology.accelerators()[i].numa_node));
    rows.push_back(std::move(row));
  }
  for (std::size_t i = 0; i < nics; ++i) {
    Row row = {Name("NIC", i)};
    for (std::size_t k = 0; k < gpus; ++k) row.push_back(Cell(topology, i, k));
    for (std::size_t k = 0; k < nics; ++k) {
      row.emplace_back(k == i ? "X" : NameOf(topology.NicToNic(i, k)));
    }
    row.push_back(NumaText(topology.nics()[i].numa_node));
    rows.push_back(std::move(row));
  }
  return Aligned(rows, "");
}

std::string AcceleratorTable(const NodeReport& report) {
  std::vector<Row> rows = {{"", "address", "id", "driver", "UUID"}};
  for (std::size_t i = 0; i < report.topology->accelerators().size(); ++i) {
    const Accelerator& one = report.topology->accelerators()[i];
    rows.push_back(
        {Name("GPU", i), one.address.ToString(), IdText(one), Or(one.driver, "-"), Or(report.uuids[i], "-")});
  }
  return rows.size() == 1 ? "No accelerators.\n" : "Accelerators:\n" + Aligned(rows, "  ");
}

std::string NicTable(const NodeReport& report) {
  std::vector<Row> rows = {{"", "address", "netdev", "RDMA", "rail", "VLAN", "VFs", "in use", "free"}};
  for (std::size_t i = 0; i < report.nics.size(); ++i) {
    const topology::TopologyNic& nic = report.topology->nics()[i];
    const NicUse& use = report.nics[i];
    const auto all = static_cast<int>(use.vfs.size());
    rows.push_back({Name("NIC", i), nic.address.ToString(), Or(nic.netdev, "-"), Or(nic.rdma_device, "-"),
                    Or(use.rail, "-"), use.vlan ? std::to_string(*use.vlan) : "-", std::to_string(all),
                    use.in_use ? "itself" : std::to_string(use.InUse()), std::to_string(all - use.InUse())});
  }
  return rows.size() == 1 ? "No network functions.\n" : "NICs:\n" + Aligned(rows, "  ");
}

Json NumaJson(const std::optional<int>& numa_node) {
  return numa_node ? Json(*numa_node) : Json(nullptr);
}

// Where the function at this sysfs path is: its host bridge, then each bridge above it.
Json BridgesJson(const std::string& path) {
  const auto host = path.rfind("/pci");
  auto parts = Split(host == std::string::npos ? path : path.substr(host + 1), '/');
  if (!parts.empty()) parts.pop_back();
  return parts;
}

Json AcceleratorsJson(const NodeReport& report) {
  Json list = Json::array();
  for (std::size_t i = 0; i < report.topology->accelerators().size(); ++i) {
    const Accelerator& one = report.topology->accelerators()[i];
    const std::string id = IdText(one);
    Json entry = {{"name", Name("GPU", i)},
                  {"address", one.address.ToString()},
                  {"vendor", id.substr(0, 4)},
                  {"device", id.substr(5)},
                  {"driver", one.driver},
                  {"numaNode", NumaJson(one.numa_node)},
                  {"bridges", BridgesJson(one.path)}};
    if (!report.uuids[i].empty()) entry["uuid"] = report.uuids[i];
    list.push_back(std::move(entry));
  }
  return list;
}

Json NicsJson(const NodeReport& report) {
  Json list = Json::array();
  for (std::size_t i = 0; i < report.nics.size(); ++i) {
    const topology::TopologyNic& nic = report.topology->nics()[i];
    const NicUse& use = report.nics[i];
    Json in_use = Json::array();
    for (const ReportedVf& vf : use.vfs) {
      if (vf.in_use) in_use.push_back(vf.id);
    }
    Json entry = {{"name", Name("NIC", i)},
                  {"address", nic.address.ToString()},
                  {"netdev", nic.netdev},
                  {"rdmaDevice", nic.rdma_device},
                  {"numaNode", NumaJson(nic.numa_node)},
                  {"bridges", BridgesJson(nic.path)}};
    if (!use.rail.empty()) entry["rail"] = use.rail;
    if (use.vlan) entry["vlan"] = *use.vlan;
    entry["inUse"] = use.in_use;
    entry["vfs"] = use.vfs.size();
    entry["vfsFree"] = use.vfs.size() - in_use.size();
    entry["vfsInUse"] = std::move(in_use);
    list.push_back(std::move(entry));
  }
  return list;
}

Json NicAcceleratorPaths(const topology::Topology& topology) {
  Json paths = Json::array();
  for (std::size_t nic = 0; nic < topology.nics().size(); ++nic) {
    for (std::size_t i = 0; i < topology.accelerators().size(); ++i) {
      paths.push_back({{"nic", topology.nics()[nic].address.ToString()},
                       {"accelerator", topology.accelerators()[i].address.ToString()},
                       {"path", NameOf(topology.NicToAccelerator(nic, i))}});
    }
  }
  return paths;
}

// Each pair of `devices` once.
template <typename Device, typename Path>
Json PairPaths(const std::vector<Device>& devices, Path path) {
  Json paths = Json::array();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    for (std::size_t k = i + 1; k < devices.size(); ++k) {
      const Json between = {devices[i].address.ToString(), devices[k].address.ToString()};
      paths.push_back({{"between", between}, {"path", NameOf(path(i, k))}});
    }
  }
  return paths;
}

}  // namespace

std::string ReportText(const NodeReport& report) {
  std::string text =
      Matrix(*report.topology) + "\n" + AcceleratorTable(report) + "\n" + NicTable(report) + "\n" + kLegend;
  for (const std::string& note : report.notes) text += "Note: " + note + "\n";
  return text;
}

std::string ReportJson(const NodeReport& report) {
  const topology::Topology& topology = *report.topology;
  const Json json = {
      {"node", report.node},
      {"accelerators", AcceleratorsJson(report)},
      {"nics", NicsJson(report)},
      {"paths", NicAcceleratorPaths(topology)},
      {"acceleratorPaths",
       PairPaths(topology.accelerators(),
                 [&](auto a, auto b) { return topology.AcceleratorToAccelerator(a, b); })},
      {"nicPaths", PairPaths(topology.nics(), [&](auto a, auto b) { return topology.NicToNic(a, b); })},
      {"notes", report.notes}};
  // The kernel takes any byte in a network device's name.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace railhead::topology_view
