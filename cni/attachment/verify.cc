#include "cni/attachment/verify.h"

#include <sys/socket.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "cni/attachment/differences.h"
#include "cni/attachment/routing.h"
#include "cni/attachment/verify_nccl_config.h"
#include "netns/base/text.h"
#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"

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

}  // namespace railhead::attachment
