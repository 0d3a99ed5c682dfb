#include "cni/attachment/verify.h"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include "cni/attachment/rdma.h"
#include "cni/attachment/routing.h"
#include "cni/nccl/nccl_config.h"
#include "cni/nccl/stack_files.h"
#include "cni/state/cdi_spec.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/sys/pci.h"
#include "netns/sys/selinux.h"

namespace railhead::attachment {
namespace {

using railhead::InWords;
std::string InWords(const std::string& text) {
  return "'" + text + "'";
}
std::string InWords(int number) {
  return std::to_string(number);
}

void CheckLink(Differences& differences, const Link& now, const AttachedDevice& device) {
  const std::string& name = device.pod_name;
  const AttachedDevice::Requested& expected = device.requested;
  if (!device.before.parentless) {
    CheckValue(differences, name + ": device", now.parent_device.empty() ? "none" : now.parent_device,
               device.device);
  }
  if (!now.up) differences.push_back(name + " is down");
  if (now.up && !now.carrier) differences.push_back(name + " has no carrier");
  CheckValue(differences, name + ": mac", now.mac.ToString(),
             expected.vf.mac.value_or(device.before.mac).ToString());
  ForEachLinkSetting([&](const std::string& key, auto setting, auto is) {
    if (const auto& value = expected.link.*setting)
      CheckValue(differences, name + ": " + key, InWords(now.*is), InWords(*value));
  });
  for (const auto& alt_name : expected.alt_names) {
    if (!Contains(now.alt_names, alt_name))
      differences.push_back(std::string(name).append(" has lost its alternative name ").append(alt_name));
  }
}

// The kernel reports a list of numbers with tabs, whatever separated them in the write.
std::string Words(const std::string& value) {
  std::string words;
  for (const char c : value) words += c == '\t' || c == '\n' ? ' ' : c;
  std::vector<std::string> parts = Split(words, ' ');
  parts.erase(std::remove(parts.begin(), parts.end(), std::string()), parts.end());
  return Join(parts, " ");
}

// Railhead's sysctls, overridden by those of the configuration.
Result<void> CheckSysctls(Differences& differences, Kernel& kernel, const NetNs& pod,
                          const AttachedDevice& device) {
  const std::string conf = "net/ipv4/conf/" + device.pod_name + "/";
  auto expected = device.requested.sysctls;
  for (const auto& [sysctl, value] :
       {std::pair{"arp_ignore", "1"}, {"arp_announce", "2"}, {"rp_filter", "2"}}) {
    const std::string path = conf + sysctl;
    if (!Contains(expected, path, &Sysctl::path)) expected.push_back({path, value});
  }
  std::vector<std::string> paths;
  paths.reserve(expected.size());
  for (const auto& [path, value] : expected) paths.push_back(path);
  const auto values = RH_TRY(kernel.ReadSysctls(pod, paths));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CheckValue(differences, "sysctl " + paths[i], Words(values[i].value_or("(absent)")),
               Words(expected[i].value));
  }
  return {};
}

Result<void> CheckAddresses(Differences& differences, RouteApi& pod, const Link& now,
                            const AttachedDevice& device) {
  const auto addresses = RH_TRY(pod.ListAddresses(now.index));
  for (const auto& expected : device.addressing.addresses) {
    if (!Contains(addresses, expected, &LinkAddress::prefix)) {
      differences.push_back("address " + expected.ToString() + " is missing on " + device.pod_name);
    }
  }
  return {};
}

Result<void> CheckRules(Differences& differences, RouteApi& pod, const AttachedDevice& device) {
  const auto all = RulesFor(device);
  if (all.empty()) return {};
  for (const int family : {AF_INET, AF_INET6}) {
    const auto rules = RH_TRY(pod.ListRules(family));
    for (const auto& expected : all) {
      if (expected.family != family) continue;
      if (!Contains(rules, expected)) {
        differences.push_back("rule '" + expected.ToString() + "' is missing");
      }
    }
  }
  return {};
}

// The kernel gives an IPv6 route without a metric 1024 (IP6_RT_PRIO_USER, include/net/ip6_fib.h).
std::uint32_t MetricOf(const Route& route) {
  static constexpr std::uint32_t kUserPriority = 1024;
  return route.metric == 0 && route.destination.address.IsV6() ? kUserPriority : route.metric;
}

// The pod's routes. Asks for each table of a family once, however many routes and devices a CHECK has.
class PodRoutes {
 public:
  explicit PodRoutes(RouteApi& pod) : pod_(pod) {}

  Result<bool> Has(const Route& expected, int link) {
    const auto key = KeyOf(expected, link);
    const auto table = std::pair(expected.destination.address.Family(), expected.table);
    if (!tables_.contains(table)) {
      std::set<Key> there;
      for (const Route& route : RH_TRY(pod_.ListRoutes(table.first, table.second)))
        there.insert(KeyOf(route, route.link));
      tables_.emplace(table, std::move(there));
    }
    return tables_.at(table).contains(key);
  }

 private:
  using Key = std::tuple<IpPrefix, std::optional<IpAddress>, int, std::optional<IpAddress>, std::uint32_t,
                         std::uint32_t, std::uint32_t>;
  static Key KeyOf(const Route& route, int link) {
    return {route.destination, route.gateway, link, route.source, MetricOf(route), route.mtu, route.advmss};
  }

  RouteApi& pod_;
  std::map<std::pair<int, std::uint32_t>, std::set<Key>> tables_;  // by family and table
};

Result<void> CheckRoutes(Differences& differences, PodRoutes& routes, const Link& now,
                         const AttachedDevice& device) {
  for (const auto& expected : device.addressing.routes) {
    if (!RH_TRY(routes.Has(expected, now.index)))
      differences.push_back("route '" + expected.ToString() + "' is missing");
  }
  return {};
}

Result<void> CheckVf(Differences& differences, const Root& root, RouteApi& host,
                     const AttachedDevice& device) {
  // ADD set nothing. Some PFs do not list their VFs (switchdev mode).
  if (device.vf < 0 || device.requested.vf.Empty()) return {};
  const auto address = PciAddress::Parse(device.pf);
  const auto name = address ? RH_TRY(UplinkNetdev(root, *address)) : std::nullopt;
  const auto pf = name ? RH_TRY(host.FindLink(*name)) : std::nullopt;
  if (!pf) {
    differences.push_back("the PF " + device.pf + " of " + device.device + " is not on the host");
    return {};
  }
  const std::string vf = "VF " + std::to_string(device.vf) + " of " + pf->name;
  const auto now = RH_TRY(host.GetVf(pf->index, device.vf));
  if (!now) {
    differences.push_back(vf + " is gone");
    return {};
  }
  ForEachVfSetting([&](const std::string& key, auto setting) {
    const auto& expected = device.requested.vf.*setting;
    const auto& is = *now.*setting;
    // A setting that the driver does not report cannot be compared.
    if (expected && is) CheckValue(differences, vf + ": " + key, InWords(*is), InWords(*expected));
  });
  return {};
}

Result<void> CheckDevice(Differences& differences, const Root& root, Kernel& kernel, PodNetwork& network,
                         PodRoutes& routes, const AttachedDevice& device) {
  RH_TRY(CheckVf(differences, root, *network.host, device));
  if (device.before.user_space) return {};
  const auto now = RH_TRY(network.pod->FindLink(device.pod_name));
  if (!now) {
    differences.push_back("interface " + device.pod_name + " is missing in the pod");
    return {};
  }
  CheckLink(differences, *now, device);
  RH_TRY(CheckSysctls(differences, kernel, network.pod_ns, device));
  RH_TRY(CheckAddresses(differences, *network.pod, *now, device));
  RH_TRY(CheckRules(differences, *network.pod, device));
  RH_TRY(CheckRoutes(differences, routes, *now, device));
  return CheckRdma(differences, root, kernel, network.pod_ns, device);
}

}  // namespace

Result<Differences> FindDifferences(const Root& root, Kernel& kernel, PodNetwork& network,
                                    const JournalEntry& entry) {
  Differences differences;
  if (network.pod_ns.inode() != entry.netns_inode) {
    differences.push_back("CNI_NETNS is another namespace than at ADD (" + entry.netns + ")");
  }
  PodRoutes routes(*network.pod);
  for (const AttachedDevice& device : entry.devices)
    RH_TRY(CheckDevice(differences, root, kernel, network, routes, device));
  RH_TRY(CheckNcclConfig(differences, root, kernel, network.pod_ns, entry));
  return differences;
}

Result<Differences> FindNcclConfigDrift(const Root& root, Kernel& kernel, PodNetwork& network,
                                        const JournalEntry& entry) {
  Differences differences;
  for (const AttachedDevice& device : entry.devices) {
    if (device.before.user_space || !device.InNcclConf()) continue;
    const auto now = RH_TRY(network.pod->FindLink(device.pod_name));
    if (!now) {
      differences.push_back("interface " + device.pod_name + " is missing in the pod");
      continue;
    }
    RH_TRY(CheckAddresses(differences, *network.pod, *now, device));
    RH_TRY(CheckRdma(differences, root, kernel, network.pod_ns, device));
  }
  RH_TRY(CheckNcclConfig(differences, root, kernel, network.pod_ns, entry));
  return differences;
}

namespace {

// Adds the files that containers mount to `mounted`.
Result<void> CheckCdi(Differences& differences, const Root& root, const AttachedDevice& device,
                      std::set<std::string>& mounted) {
  const std::string path = paths::CdiSpec(root, device.KubeletId());
  const auto spec = RH_TRY(ReadCdiSpec(root, device.KubeletId()));
  if (!spec) {
    differences.push_back("the CDI spec " + path + " is missing");
    return {};
  }
  for (const auto& mount : spec->mounts) mounted.insert(mount.host_path);
  if (device.rdma.uverbs.empty()) return {};
  const std::string node = "/dev/infiniband/" + device.rdma.uverbs;
  const auto& nodes = spec->device_nodes;
  if (!Contains(nodes, node)) differences.push_back("the CDI spec " + path + " does not name " + node);
  return {};
}

std::string InWords(const std::vector<GidEntry>& table, int index) {
  const auto entry = std::ranges::find(table, index, &GidEntry::index);
  return std::to_string(index) +
         (entry == table.end() ? "" : " (" + AddressOfGid(entry->gid).ToString() + ")");
}

// A new GID before the pod's own has no effect until the next connection.
void CheckSearch(Differences& differences, const char* who, const AttachedDevice::Rdma& rdma,
                 const std::vector<GidEntry>& table, std::optional<int> picked) {
  if (picked == rdma.gid_index) return;
  CheckValue(differences, rdma.device + ": the GID index that " + who + " finds",
             picked ? InWords(table, *picked) : "not the same with every release",
             InWords(table, *rdma.gid_index));
}

// The texts of the sandbox's files; "": the file does not exist.
struct NcclFiles {
  std::string nccl_path;
  std::string nccl;
  std::optional<nccl::GidSelection> gids;
  std::string ucx_path;
  std::string ucx;
};

Result<NcclFiles> ReadNcclFiles(const Root& root, const JournalEntry& entry,
                                const std::set<std::string>& mounted) {
  NcclFiles files;
  files.nccl_path = nccl::NcclConfigPath(root, entry.key.container_id);
  files.nccl = RH_TRY(ReadFile(files.nccl_path)).value_or("");
  files.gids = nccl::GidsIn(files.nccl);
  files.ucx_path = nccl::NcclConfigPath(root, entry.key.container_id, nccl::kUcxConfName);
  if (mounted.contains(files.ucx_path)) files.ucx = RH_TRY(ReadFile(files.ucx_path)).value_or("");
  return files;
}

void CheckNcclConf(Differences& differences, const NcclFiles& files, const AttachedDevice::Rdma& rdma,
                   const std::vector<GidEntry>& table) {
  const auto devices = Split(nccl::ValueIn(files.nccl, "NCCL_IB_HCA").value_or(""), ',');
  if (!Contains(devices, rdma.device))
    differences.push_back("the NCCL configuration file " + files.nccl_path + " does not name " + rdma.device);
  if (files.gids && std::holds_alternative<nccl::GidSearch>(*files.gids)) {
    CheckSearch(differences, "NCCL", rdma, table, NcclPicks(table, std::get<nccl::GidSearch>(*files.gids)));
  } else {
    CheckValue(differences, files.nccl_path + ": NCCL_IB_GID_INDEX",
               nccl::ValueIn(files.nccl, "NCCL_IB_GID_INDEX").value_or("(absent)"),
               std::to_string(*rdma.gid_index));
  }
}

void CheckUcxConf(Differences& differences, const NcclFiles& files, const AttachedDevice::Rdma& rdma,
                  const std::vector<GidEntry>& table) {
  const auto devices = Split(nccl::ValueIn(files.ucx, "UCX_NET_DEVICES").value_or(""), ',');
  if (!Contains(devices, rdma.device + ":1"))
    differences.push_back("the NCCL configuration file " + files.ucx_path + " does not name " + rdma.device);
  if (const auto index = nccl::ValueIn(files.ucx, "UCX_IB_GID_INDEX")) {
    CheckValue(differences, files.ucx_path + ": UCX_IB_GID_INDEX", *index, std::to_string(*rdma.gid_index));
  } else {
    CheckSearch(differences, "UCX", rdma, table, nccl::UcxPicks(table));
  }
}

Result<void> CheckNcclFiles(Differences& differences, Kernel& kernel, const NetNs& pod,
                            const NcclFiles& files, const AttachedDevice::Rdma& rdma) {
  const bool searched = files.gids && std::holds_alternative<nccl::GidSearch>(*files.gids);
  std::vector<GidEntry> table;
  if (searched) {
    auto now = RH_TRY(kernel.ReadGids(pod, rdma.device));
    if (!now) return {};  // CheckRdma() reports it
    table = *std::move(now);
  }
  CheckNcclConf(differences, files, rdma, table);
  if (!files.ucx.empty()) CheckUcxConf(differences, files, rdma, table);
  return {};
}

}  // namespace

Result<void> CheckRdma(Differences& differences, const Root& root, Kernel& kernel, const NetNs& pod,
                       const AttachedDevice& device) {
  const AttachedDevice::Rdma& expected = device.rdma;
  if (expected.device.empty()) return {};
  if (!expected.gid_index) {  // only the device is expected
    const auto rdma = RH_TRY(kernel.OpenRdma(pod));
    const auto devices = RH_TRY(rdma->ListDevices());
    const bool there = Contains(devices, expected.device, &RdmaDevice::name);
    if (!there) differences.push_back("RDMA device " + expected.device + ": is not visible in the pod");
    return {};
  }
  const IpAddress* address = GidAddressOf(device);
  if (address == nullptr)
    return Fail(ErrorCode::kMalformed, "the journal has a GID of " + device.device + " without an address");
  const auto ready = WaitRdma(root, kernel, device, pod, *address, std::chrono::steady_clock::now());
  if (!ready) {
    differences.push_back(Describe(ready.error()));
    return {};
  }
  CheckValue(differences, expected.device + ": GID index of " + address->ToString(),
             std::to_string(ready->gid.index), std::to_string(*expected.gid_index));
  CheckValue(differences, expected.device + ": uverbs node", ready->uverbs, expected.uverbs);
  return {};
}

Result<void> CheckNcclConfig(Differences& differences, const Root& root, Kernel& kernel, const NetNs& pod,
                             const JournalEntry& entry) {
  std::set<std::string> needed;
  for (const AttachedDevice& device : entry.devices) {
    RH_TRY(CheckCdi(differences, root, device, needed));
    if (device.InNcclConf()) needed.insert(nccl::NcclConfigPath(root, entry.key.container_id));
  }
  const NcclFiles files = RH_TRY(ReadNcclFiles(root, entry, needed));
  for (const AttachedDevice& device : entry.devices) {
    if (device.InNcclConf() && !files.nccl.empty())
      RH_TRY(CheckNcclFiles(differences, kernel, pod, files, device.rdma));
  }
  for (const auto& path : needed) {
    if (!Exists(path)) differences.push_back("the NCCL configuration file " + path + " is missing");
    if (const auto label = LabelAgainstContainers(root, path); !label.empty()) {
      differences.push_back(std::string("SELinux keeps containers from reading ")
                                .append(path)
                                .append(": it is labelled ")
                                .append(label));
    }
  }
  return {};
}

}  // namespace railhead::attachment
