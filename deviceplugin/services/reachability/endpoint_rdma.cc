#include "deviceplugin/services/reachability/endpoint_rdma.h"

#include <linux/neighbour.h>

#include <algorithm>
#include <utility>

#include "netns/base/addresses.h"

namespace railhead::reachability {
namespace {

// Names of RDMA devices are node-wide. A pod's VF has, for example, "rxe_pf0v3".
std::string SoftRoceName(const std::string& pf) {
  return "rxe_" + pf + "_probe";
}

// A device of this name may be this endpoint's from an earlier round. Or it is a killed railheadd's, and
// about to disappear. Its GID shows which.
Result<std::string> MakeSoftRoce(Kernel& kernel, const ProbeEndpoint& endpoint, const std::string& pf) {
  const std::string name = SoftRoceName(pf);
  const auto rdma = RH_TRY(kernel.OpenRdma(endpoint.ns()));
  auto made = rdma->AddRxe(name, endpoint.device());
  if (made || made.error().code == ErrorCode::kExists) return name;
  if (endpoint.plan().vlan.value_or(0) > 0) made.error().hint = "the kernel has no soft RoCE on VLAN devices";
  return Fail(std::move(made.error()));
}

}  // namespace

Result<std::unique_ptr<RdmaEcho>> OpenEndpointRdma(Kernel& kernel, const ProbeEndpoint& endpoint,
                                                   const EndpointRdmaPlan& plan, std::function<void()> lost) {
  const IpPrefix& address = *endpoint.plan().address;
  std::string name = plan.device;
  if (!plan.soft_roce_on.empty()) name = RH_TRY(MakeSoftRoce(kernel, endpoint, plan.soft_roce_on));
  if (name.empty()) return Fail(ErrorCode::kNotFound, "its PF has no RDMA device");
  VerbsDevice device = RH_TRY(VerbsDevice::Open(name));
  if (const VerbsPort port = RH_TRY(device.Port()); !port.active)
    return Fail(ErrorCode::kUnavailable, "port 1 of " + name + " is in state " + port.state);
  const auto gids = RH_TRY(device.Gids());
  const auto own = std::ranges::find_if(gids, [&](const GidEntry& gid) {
    return gid.type == GidType::kRoceV2 && AddressOfGid(gid.gid) == address.address;
  });
  if (own == gids.end())
    return Fail(ErrorCode::kUnavailable, name + " has no RoCE v2 GID of " + address.address.ToString());
  const DatagramSettings settings{*own, plan.traffic_class, plan.service_level};
  return RdmaEcho::Start(RH_TRY(Datagrams::Open(std::move(device), settings)), std::move(lost));
}

}  // namespace railhead::reachability
