#include "bench/pod_check.h"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "netns/linux_kernel.h"

namespace railhead::bench {
namespace {

constexpr auto kCarrierLimit = std::chrono::seconds(120);

tl::unexpected<Error> Missing(const Contender& contender, const std::string& what) {
  return Fail(ErrorCode::kConflict, contender.name() + ": " + what);
}

bool Reaches(const std::vector<Route>& routes, std::uint32_t table) {
  return std::any_of(routes.begin(), routes.end(), [&](const Route& route) {
    return route.table == table && route.destination == IpPrefix::Parse(kRoute) &&
           route.gateway == IpAddress::Parse(kGateway);
  });
}

Result<void> CheckRouting(const Contender& contender, RouteApi& pod, const IpAddress& address) {
  const auto routes = RH_TRY(pod.ListRoutes(AF_INET, 0));
  for (const auto& rule : RH_TRY(pod.ListRules(AF_INET))) {
    if (rule.from == IpPrefix::Host(address) && Reaches(routes, rule.table)) return {};
  }
  return Missing(contender, "no rule for " + address.ToString() + " whose table has " + kRoute);
}

}  // namespace

Result<void> CheckAttached(const Contender& contender) {
  LinuxKernel kernel{Root()};
  const NetNs pod_ns = RH_TRY(kernel.OpenNetns(contender.netns()));
  const auto pod = RH_TRY(kernel.OpenRoute(pod_ns));
  const auto link = RH_TRY(pod->FindLink(kIfname));
  if (!link) return Missing(contender, std::string("no ") + kIfname + " after ADD");
  if (!RH_TRY(pod->WaitCarrier(link->index, std::chrono::steady_clock::now() + kCarrierLimit))) {
    return Missing(contender, "no carrier after ADD");
  }
  if (link->mtu != kMtu) return Missing(contender, "MTU " + std::to_string(link->mtu) + " after ADD");
  std::vector<IpPrefix> addresses;
  for (const auto& address : RH_TRY(pod->ListAddresses(link->index))) {
    if (address.address.IsV4()) addresses.push_back(address);
  }
  const auto wanted = IpPrefix::Parse(contender.Address());
  if (!wanted || addresses != std::vector<IpPrefix>{*wanted}) {
    return Missing(contender, "the pod has not exactly the address '" + contender.Address() + "'");
  }
  return CheckRouting(contender, *pod, wanted->address);
}

Result<void> CheckDetached(const Contender& contender) {
  LinuxKernel kernel{Root()};
  const NetNs pod_ns = RH_TRY(kernel.OpenNetns(contender.netns()));
  const auto pod = RH_TRY(kernel.OpenRoute(pod_ns));
  const NetNs host_ns = RH_TRY(kernel.HostNetns());
  const auto host = RH_TRY(kernel.OpenRoute(host_ns));
  if (RH_TRY(pod->FindLink(kIfname))) return Missing(contender, std::string(kIfname) + " is left after DEL");
  if (!RH_TRY(host->FindLink(contender.device()->netdev))) {
    return Missing(contender, contender.device()->netdev + " is not back on the host after DEL");
  }
  for (const auto& rule : RH_TRY(pod->ListRules(AF_INET))) {
    if (rule.from || !rule.oif.empty())
      return Missing(contender, "rule " + rule.ToString() + " is left after DEL");
  }
  return {};
}

}  // namespace railhead::bench
