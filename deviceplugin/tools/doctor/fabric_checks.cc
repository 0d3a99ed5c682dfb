// Whether the fabric is described, and this node has its rails.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "cni/fabric/add_refusals.h"
#include "deviceplugin/services/node_index/node_addresses.h"
#include "deviceplugin/tools/doctor/checks.h"
#include "deviceplugin/tools/doctor/read_facts.h"
#include "deviceplugin/tools/doctor/verdict.h"
#include "netns/base/text.h"

namespace railhead::doctor {
namespace {

// Such a rule is right where one team has the cluster.
void NoteRulesForAll(const NetworkPolicy& policy, Verdict& verdict) {
  for (std::size_t i = 0; i < policy.rules.size(); ++i) {
    const NetworkRule& rule = policy.rules[i];
    if (!rule.networks.empty() || !rule.namespaces.empty()) continue;
    if (rule.keys.empty() && !rule.any_device && rule.ipam_types.empty()) continue;
    verdict.Note("policy.networks[" + std::to_string(i) + "] is for every network of every namespace",
                 "name its networks or namespaces, if pods of several tenants run here");
  }
}

void NoteRailNames(const Fabric& fabric, Verdict& verdict) {
  for (const Rail& rail : fabric.rails) {
    if (const auto why = WhyNoInterfaceName(fabric, rail))
      verdict.Note(rail.name + ": " + why->message, why->hint);
  }
}

}  // namespace

Verdict CheckFabric(const NodeFacts& facts) {
  Verdict verdict;
  if (facts.fabric_error) {
    const std::string& hint = facts.fabric_error->hint;
    return verdict.Fail(facts.fabric_error->message,
                        hint.empty() ? "railctl config check FILE shows every error in it" : hint);
  }
  if (facts.fabric) {
    verdict.Ok(std::to_string(facts.fabric->rails.size()) + " rails");
    NoteRulesForAll(facts.fabric->policy, verdict);
    NoteRailNames(*facts.fabric, verdict);
    return verdict;
  }
  if (facts.sriovdp_config) {
    verdict.Add(Status::kWarning,
                "no fabric.json: railheadd uses sriov-network-device-plugin's configuration, and "
                "every network may set VLAN, MAC, addresses and the rest",
                "railctl migrate converts it to a fabric.json, whose policy limits networks");
    return verdict;
  }
  return verdict.Fail("no such file: " + std::string(kFabricPath),
                      "railctl fabric suggest proposes one: docs/reference/fabric.md");
}

Verdict CheckRails(const NodeFacts& facts) {
  Verdict verdict;
  if (!facts.fabric) return verdict.Skip("fabric.json is missing or invalid");
  if (!facts.pfs_unknown.empty()) return verdict.Skip(facts.pfs_unknown);
  for (const Rail& rail : facts.fabric->rails) {
    const auto found = std::ranges::find(facts.pfs, rail.name, &PfFacts::rail);
    if (found != facts.pfs.end()) {
      verdict.Ok(rail.name + ": " + found->Name());
    } else {
      verdict.Add(Status::kWarning, "no PF of this node is rail " + rail.name,
                  "compare \"pf\" of the rail with the names, addresses and positions of `railctl topology`");
    }
  }
  // A node without any of them does not need Railhead.
  const bool any = std::ranges::any_of(facts.pfs, [](const PfFacts& pf) { return !pf.rail.empty(); });
  if (!any && !facts.fabric->rails.empty()) {
    verdict.Fail(
        "this node has none of the fabric's rails",
        "compare \"pf\" of the rails with the names, addresses and positions of `railctl topology`; is the "
        "NIC's driver loaded?");
  }
  return verdict;
}

namespace {

// Whether pods' networks may have addresses that the fabric does not give.
bool MayBringAddresses(const NetworkPolicy& policy) {
  return std::ranges::any_of(policy.rules, [](const NetworkRule& rule) {
    return !rule.ipam_types.empty() || rule.keys.contains("*") || rule.keys.contains("addresses") ||
           rule.keys.contains("ips");
  });
}

bool NeedsIndex(const NodeFacts& facts, const Rail& rail) {
  return rail.UsesIndex() && !rail.node_ranges.contains(facts.node);
}

// The rails of this node of which its pods get no address. Without a listed index, those that need one are
// left out: railheadd claims only an index that has addresses.
void FindRailsWithoutAddresses(const NodeFacts& facts, std::optional<int> listed, Verdict& verdict) {
  const Fabric& fabric = *facts.fabric;
  for (const Rail& rail : fabric.rails) {
    if (facts.pfs_unknown.empty() && !Contains(facts.pfs, rail.name, &PfFacts::rail)) continue;
    if (!listed && NeedsIndex(facts, rail)) continue;
    const auto why = node_index::WhyNoAddress(fabric, rail, facts.node, listed);
    if (!why) continue;
    const std::string text = rail.name + ": pods get no address: " + why->message;
    if (DividesNothing(rail) && MayBringAddresses(fabric.policy)) {
      verdict.Note(text, why->hint + ", unless networks bring addresses of their own");
    } else {
      verdict.Fail(text, why->hint);
    }
  }
}

}  // namespace

Verdict CheckIndex(const NodeFacts& facts) {
  Verdict verdict;
  if (!facts.fabric) return verdict.Skip("fabric.json is missing or invalid");
  const Fabric& fabric = *facts.fabric;
  const auto listed = fabric.IndexOf(facts.node);
  FindRailsWithoutAddresses(facts, listed, verdict);
  if (std::ranges::none_of(fabric.rails, [&](const Rail& rail) { return NeedsIndex(facts, rail); }))
    return verdict.Ok("no rail gives this node addresses by its index");
  if (listed) verdict.Ok("index " + std::to_string(*listed) + " of `nodes`");
  if (!listed && !fabric.ClaimsIndices()) {
    return verdict.Fail(
        "`nodes` of fabric.json gives this node no index",
        "list " + facts.node +
            " there with an unused index; or addresses.index.from kubernetes, and no `nodes`");
  }
  if (!facts.index_problems) return verdict.Skip(facts.index_problems.why());
  for (const NodeIndexProblem& problem : *facts.index_problems) {
    // A listed index is used also without a claim.
    const bool stops_pods = problem.kind == NodeIndexProblem::Kind::kNoIndex && !listed;
    verdict.Add(stops_pods ? Status::kFailure : Status::kWarning, problem.error.message, problem.error.hint);
  }
  if (verdict.observations().empty()) verdict.Ok("the Kubernetes API has confirmed its claim");
  return verdict;
}

Verdict CheckCabling(const NodeFacts& facts) {
  Verdict verdict;
  if (!facts.lldp_report) return verdict.Skip(facts.lldp_report.why());
  for (const lldp::RailNeighbor& rail : facts.lldp_report->rails) {
    const std::string name = rail.neighbor ? rail.neighbor->neighbor.SwitchName() : "";
    switch (rail.cabling) {
      case lldp::Cabling::kWrong:
        verdict.Warn(rail.rail + " is connected to " + name + ", port " + rail.neighbor->neighbor.Port() +
                         ": " + rail.because,
                     "change the cables, or add the switch to the rail's `expectedSwitches` in fabric.json");
        break;
      case lldp::Cabling::kRight:
      case lldp::Cabling::kUnchecked:
        verdict.Ok(rail.rail + ": " + name);
        break;
      case lldp::Cabling::kUnknown:
        // Without `expectedSwitches` this needs no note: many switches and some NICs withhold LLDP frames.
        if (rail.expected.empty()) {
          verdict.Skip(rail.rail + ": its switch sends no LLDP frames");
        } else {
          verdict.Note(rail.rail + ": its switch sends no LLDP frames" +
                           (rail.because.empty() ? "" : ", " + rail.because),
                       "LLDP has to be on at the switch's port, and not be kept by the NIC's firmware: "
                       "docs/operate/switch-ports.md");
        }
        break;
    }
  }
  return verdict;
}

// MTU, and the host's ARP settings.

namespace {

// 4096 bytes of payload and RoCE v2's headers, rounded up. Clouds and CNIs set this value.
constexpr int kMtuFor4096 = 4200;

constexpr int kStrict = 1;
constexpr int kOwnAddressOnly = 1;  // arp_ignore
constexpr int kBestSource = 2;      // arp_announce

std::string Key(const std::string& netdev, std::string_view setting) {
  return "net.ipv4.conf." + netdev + "." + std::string(setting);
}

std::string HowToAnswerAlone(const std::string& netdev) {
  return "where the host itself has addresses on rails: sysctl -w " + Key(netdev, "arp_ignore=1") + " " +
         Key(netdev, "arp_announce=2");
}

}  // namespace

Verdict CheckMtu(const NodeFacts& facts) {
  Verdict verdict;
  for (const PfFacts& pf : facts.pfs) {
    if (!pf.mtu) {
      verdict.Skip(pf.Name() + ": " + pf.mtu.why());
      continue;
    }
    const int mtu = *pf.mtu;
    const Rail* rail = facts.RailOf(pf);
    const std::string is = pf.Name() + ": MTU " + std::to_string(mtu);
    if (rail != nullptr && rail->mtu && mtu < *rail->mtu) {
      verdict.Fail(is + ", less than the " + std::to_string(*rail->mtu) + " of " + rail->name,
                   "ip link set " + pf.netdev + " mtu " + std::to_string(*rail->mtu) +
                       ", or \"mtu\" in fabric.json's \"provision\"; the switches need it too");
    } else if (mtu < kMtuFor4096) {
      verdict.Note(is + ", RoCE cannot use 4096 bytes",
                   "an MTU of at least 4200 (9000 is usual) on PFs, switches and rails");
    } else if (rail != nullptr && rail->mtu && *rail->mtu < kMtuFor4096) {
      verdict.Note(is + ", but " + rail->name + " gives pods " + std::to_string(*rail->mtu),
                   "\"mtu\" of the rail in fabric.json: at least 4200");
    } else {
      verdict.Ok(is);
    }
  }
  if (verdict.observations().empty()) verdict.Skip(facts.WhyNoPf());
  return verdict;
}

std::vector<Error> RoutesOverCluster(const Fabric& fabric, const std::vector<CniUse>& cluster) {
  std::vector<Error> found;
  const auto judge = [&](const CniUse& use, const IpPrefix& route, const std::string& at) {
    for (const IpPrefix& network : use.networks) {
      const auto keeps = [&](const IpPrefix& own) { return own.Contains(network) && route.Contains(own); };
      if (!route.Contains(network) || std::ranges::any_of(use.routes, keeps)) continue;
      found.push_back({ErrorCode::kInvalid,
                       at + ": " + route.ToString() + " takes the pods' traffic to " + network.ToString() +
                           ", a network of " + use.file + " (" + use.type + ")",
                       "name only the rails' own subnets in routes, or use other subnets for the rails", 0});
      return;
    }
  };
  for (std::size_t i = 0; i < fabric.rails.size(); ++i) {
    const Rail& rail = fabric.rails[i];
    std::vector<std::pair<std::string, IpPrefix>> prefixes;
    if (rail.subnet) prefixes.emplace_back("/subnet", *rail.subnet);
    // Against a default route the cluster network's own one has the smaller metric.
    for (std::size_t j = 0; j < rail.routes.size(); ++j) {
      if (rail.routes[j].length > 0) prefixes.emplace_back("/routes/" + std::to_string(j), rail.routes[j]);
    }
    for (const auto& [key, prefix] : prefixes) {
      for (const CniUse& use : cluster) judge(use, prefix, "/rails/" + std::to_string(i) + key);
    }
  }
  return found;
}

Verdict CheckRoutes(const NodeFacts& facts) {
  Verdict verdict;
  if (!facts.fabric) return verdict.Skip(facts.fabric.why());
  if (!facts.cni) return verdict.Skip(facts.cni.why());
  for (const Error& error : RoutesOverCluster(*facts.fabric, *facts.cni))
    verdict.Warn(error.message, error.hint);
  if (verdict.observations().empty()) verdict.Ok("no rail's route leads to a network of /etc/cni/net.d");
  return verdict;
}

// ADD makes the pods' own settings. This check is about the host's use of the PFs.
Verdict CheckArp(const NodeFacts& facts) {
  Verdict verdict;
  const auto on_host =
      std::ranges::count_if(facts.pfs, [](const PfFacts& pf) { return static_cast<bool>(pf.arp); });
  for (const PfFacts& pf : facts.pfs) {
    if (!pf.arp) {
      verdict.Skip(pf.Name() + ": " + pf.arp.why());
      continue;
    }
    if (on_host < 2) {
      verdict.Ok(pf.Name() + ": the only rail");
    } else if (pf.arp->rp_filter == kStrict) {
      verdict.Warn(pf.Name() + ": rp_filter is strict", "sysctl -w " + Key(pf.netdev, "rp_filter=2"));
    } else if (pf.arp->arp_ignore < kOwnAddressOnly || pf.arp->arp_announce < kBestSource) {
      verdict.Note(pf.Name() + ": ARP is answered for other rails' addresses, too",
                   HowToAnswerAlone(pf.netdev));
    } else {
      verdict.Ok(pf.Name() + ": own addresses only");
    }
  }
  if (verdict.observations().empty()) verdict.Skip(facts.WhyNoPf());
  return verdict;
}

Verdict CheckManaged(const NodeFacts& facts) {
  Verdict verdict;
  if (!facts.managed) return verdict.Skip(facts.managed.why());
  for (const ManagedDevice& device : *facts.managed) {
    const std::string name = device.netdev + " (" + device.address.ToString() + ")";
    if (device.managers.empty()) {
      verdict.Ok("no network manager configures what pods may get");
    } else {
      verdict.Warn(name + ": managed by " + Join(device.managers, " and "),
                   "make it leave the VFs alone: docs/operate/host-preparation.md, network managers");
    }
  }
  if (verdict.observations().empty()) verdict.Ok("no device that pods may get is on the host");
  return verdict;
}

Verdict CheckProbes(const NodeFacts& facts) {
  Verdict verdict;
  if (!facts.fabric) return verdict.Skip(facts.fabric.why());
  if (facts.fabric->reachability.empty() || facts.fabric->reachability == "false")
    return verdict.Ok("the rails are not probed");
  if (!facts.probes_signed) return verdict.Skip(facts.probes_signed.why());
  if (*facts.probes_signed) return verdict.Ok("only signed probes count");
  return verdict.Note(
      "probes are not signed: pods can forge them, and so what is said of rails",
      "the same keys on every node, in /etc/railhead/probe-keys or the Secret railhead-probe-keys: "
      "docs/operate/reachability.md");
}

}  // namespace railhead::doctor
