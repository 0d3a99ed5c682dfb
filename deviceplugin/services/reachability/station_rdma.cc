#include "deviceplugin/services/reachability/station_rdma.h"

#include <algorithm>
#include <utility>

namespace railhead {
namespace {

// Names of RDMA devices are node-wide. Of a pod's VF: "rxe_pf0v3".
std::string SoftRoceName(const std::string& pf) {
  return "rxe_" + pf + "_station";
}

// One that is there already is ours of an earlier round, or of a railheadd that was killed and on its way
// out: whose GID it has tells.
Result<std::string> MakeSoftRoce(Kernel& kernel, const Station& station, const std::string& pf) {
  const std::string name = SoftRoceName(pf);
  const auto rdma = RH_TRY(kernel.OpenRdma(station.ns()));
  auto made = rdma->AddRxe(name, station.device());
  if (made || made.error().code == ErrorCode::kExists) return name;
  if (station.plan().vlan.value_or(0) > 0) made.error().hint = "the kernel has no soft RoCE on VLAN devices";
  return Fail(std::move(made.error()));
}

}  // namespace

Result<std::unique_ptr<RdmaEcho>> OpenStationRdma(Kernel& kernel, const Station& station,
                                                  const StationRdmaPlan& plan, std::function<void()> lost) {
  const IpPrefix& address = *station.plan().address;
  std::string name = plan.device;
  if (!plan.soft_roce_on.empty()) name = RH_TRY(MakeSoftRoce(kernel, station, plan.soft_roce_on));
  if (name.empty()) return Fail(ErrorCode::kNotFound, "its PF has no RDMA device");
  VerbsDevice device = RH_TRY(VerbsDevice::Open(name));
  if (const VerbsPort port = RH_TRY(device.Port()); !port.active)
    return Fail(ErrorCode::kUnavailable, "port 1 of " + name + " is in state " + port.state);
  const auto gids = RH_TRY(device.Gids());
  const auto own = std::find_if(gids.begin(), gids.end(), [&](const GidEntry& gid) {
    return gid.type == GidType::kRoceV2 && AddressOfGid(gid.gid) == address.address;
  });
  if (own == gids.end())
    return Fail(ErrorCode::kUnavailable, name + " has no RoCE v2 GID of " + address.address.ToString());
  const DatagramSettings settings{*own, plan.traffic_class, plan.service_level};
  return RdmaEcho::Start(RH_TRY(Datagrams::Open(std::move(device), settings)), std::move(lost));
}

}  // namespace railhead
