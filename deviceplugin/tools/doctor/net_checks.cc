// MTU, and what the host does with ARP.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "deviceplugin/tools/doctor/checks.h"

namespace railhead::doctor {
namespace {

// 4096 bytes of payload and RoCE v2's headers, rounded up: what clouds and CNIs set for it.
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

// Rules of health that take a rail out of use by what probes say.
bool ProbesDecide(const std::string& health) {
  const auto rules = nlohmann::json::parse(health, nullptr, false);
  const auto is_on = [&](const char* rule) {
    const auto at = rules.is_object() ? rules.find(rule) : rules.end();
    return at != rules.end() && *at != nlohmann::json(false);
  };
  return is_on("unreachable") || is_on("impaired");
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

// Pods' own settings are made by ADD; this is about the host's use of the PFs.
Verdict CheckArp(const NodeFacts& facts) {
  Verdict verdict;
  const auto on_host = std::count_if(facts.pfs.begin(), facts.pfs.end(),
                                     [](const PfFacts& pf) { return static_cast<bool>(pf.arp); });
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

Verdict CheckProbes(const NodeFacts& facts) {
  Verdict verdict;
  if (!facts.fabric) return verdict.Skip(facts.fabric.why());
  if (facts.fabric->connectivity.empty() || facts.fabric->connectivity == "false")
    return verdict.Ok("the rails are not probed");
  if (!facts.probes_signed) return verdict.Skip(facts.probes_signed.why());
  if (*facts.probes_signed) return verdict.Ok("only signed probes count");
  const std::string fix =
      "the same keys on every node, in /etc/railhead/probe-keys or the Secret railhead-probe-keys: "
      "docs/connectivity.md";
  if (!ProbesDecide(facts.fabric->health))
    return verdict.Note("probes are not signed: pods can forge them", fix);
  return verdict.Warn(
      "probes are not signed: a pod that forges them has healthy rails taken out of use, since health has "
      "the "
      "rule unreachable or impaired",
      fix);
}

}  // namespace railhead::doctor
