#include "deviceplugin/tools/migrate/report_held.h"

#include <algorithm>
#include <cstddef>

#include "deviceplugin/tools/migrate/key_outcomes.h"
#include "netns/base/addresses.h"
#include "netns/base/text.h"

namespace railhead::migrate {
namespace {

constexpr const char* kKey = "addresses";
constexpr const char* kDefaultDirectory = "/var/lib/cni/networks";

std::string Count(std::size_t addresses) {
  return std::to_string(addresses) + (addresses == 1 ? " address" : " addresses");
}

std::vector<IpPrefix> SubnetsOf(const std::string& network, const std::vector<Network>& networks) {
  std::vector<IpPrefix> subnets;
  for (const Network& one : networks) {
    if (one.network != network || one.ipam_type != "host-local") continue;
    for (const IpPrefix& subnet : one.subnets) {
      if (!Contains(subnets, subnet)) subnets.push_back(subnet);
    }
  }
  return subnets;
}

KeyResult Judge(const HeldAddresses& held, const std::vector<IpPrefix>& subnets) {
  const std::string count = Count(held.addresses.size());
  if (subnets.empty())
    return {kKey, KeyOutcome::kNeedsDecision,
            count + " in use, but no network given here is " + held.network + " of host-local"};
  const auto outside = std::ranges::find_if(held.addresses, [&](const IpAddress& address) {
    return std::ranges::none_of(subnets, [&](const IpPrefix& subnet) { return subnet.Contains(address); });
  });
  if (outside != held.addresses.end())
    return {kKey, KeyOutcome::kNeedsDecision,
            count + " in use; " + outside->ToString() + " is in no subnet of the network"};
  return {kKey, KeyOutcome::kKept, count + " in use: `railctl ipam import` below keeps them for their pods"};
}

}  // namespace

DocumentReport ReportHeld(const HeldAddresses& held, const std::vector<Network>& networks,
                          std::vector<std::string>* imports) {
  const auto subnets = SubnetsOf(held.network, networks);
  DocumentReport report;
  report.source = held.source;
  report.keys.push_back(Judge(held, subnets));
  if (report.keys.front().outcome == KeyOutcome::kNeedsDecision || held.addresses.empty()) return report;
  std::string command =
      "On the node of " + held.source + ": `railctl ipam import host-local --network " + held.network;
  for (const Network& network : networks) {
    if (network.network != held.network || network.data_dir.empty() || network.data_dir == kDefaultDirectory)
      continue;
    command += " --directory " + network.data_dir;
    break;
  }
  for (const IpPrefix& subnet : subnets) command += " --subnet " + subnet.ToString();
  imports->push_back(command + "`");
  return report;
}

}  // namespace railhead::migrate
