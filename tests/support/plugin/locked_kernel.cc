#include "tests/support/plugin/locked_kernel.h"

#include <utility>

namespace railhead::testing {
namespace {

class LockedRoute final : public RouteApi {
 public:
  LockedRoute(LockedKernel& kernel, std::unique_ptr<RouteApi> route)
      : kernel_(kernel), route_(std::move(route)) {}

  Result<std::optional<Link>> FindLink(const std::string& name) override {
    return kernel_.Locked([&] { return route_->FindLink(name); });
  }
  Result<std::optional<Link>> FindLink(int index) override {
    return kernel_.Locked([&] { return route_->FindLink(index); });
  }
  Result<std::optional<Link>> FindLinkOfDevice(const std::string& parent) override {
    return kernel_.Locked([&] { return route_->FindLinkOfDevice(parent); });
  }
  Result<std::vector<Link>> ListLinks() override {
    return kernel_.Locked([&] { return route_->ListLinks(); });
  }
  Result<void> ChangeLink(int index, const LinkChange& change) override {
    return kernel_.Locked([&] { return route_->ChangeLink(index, change); });
  }
  Result<void> MoveLink(int index, const NetNs& target, const std::string& name,
                        std::optional<int> mtu) override {
    return kernel_.Locked([&] { return route_->MoveLink(index, target, name, mtu); });
  }
  Result<std::vector<Link>> ListUppers(int lower, const NetNs& lower_ns) override {
    return kernel_.Locked([&] { return route_->ListUppers(lower, lower_ns); });
  }
  Result<bool> HasUppers(int lower, const NetNs& elsewhere, const std::string& taken) override {
    return kernel_.Locked([&] { return route_->HasUppers(lower, elsewhere, taken); });
  }
  Result<bool> DeleteLink(int index) override {
    return kernel_.Locked([&] { return route_->DeleteLink(index); });
  }
  Result<void> AddAltName(int index, const std::string& name) override {
    return kernel_.Locked([&] { return route_->AddAltName(index, name); });
  }
  Result<bool> DeleteAltName(int index, const std::string& name) override {
    return kernel_.Locked([&] { return route_->DeleteAltName(index, name); });
  }
  Result<std::optional<VfSettings>> GetVf(int pf_index, int vf) override {
    return kernel_.Locked([&] { return route_->GetVf(pf_index, vf); });
  }
  Result<void> SetVf(int pf_index, int vf, const VfSettings& change) override {
    return kernel_.Locked([&] { return route_->SetVf(pf_index, vf, change); });
  }
  Result<void> AddAddress(int index, const IpPrefix& address) override {
    return kernel_.Locked([&] { return route_->AddAddress(index, address); });
  }
  Result<bool> DeleteAddress(int index, const IpPrefix& address) override {
    return kernel_.Locked([&] { return route_->DeleteAddress(index, address); });
  }
  Result<std::vector<LinkAddress>> ListAddresses(int index) override {
    return kernel_.Locked([&] { return route_->ListAddresses(index); });
  }
  Result<void> AddRoute(const Route& route) override {
    return kernel_.Locked([&] { return route_->AddRoute(route); });
  }
  Result<bool> DeleteRoute(const Route& route) override {
    return kernel_.Locked([&] { return route_->DeleteRoute(route); });
  }
  Result<std::vector<Route>> ListRoutes(int family, std::uint32_t table) override {
    return kernel_.Locked([&] { return route_->ListRoutes(family, table); });
  }
  Result<void> AddRule(const Rule& rule) override {
    return kernel_.Locked([&] { return route_->AddRule(rule); });
  }
  Result<bool> DeleteRule(const Rule& rule) override {
    return kernel_.Locked([&] { return route_->DeleteRule(rule); });
  }
  Result<std::vector<Rule>> ListRules(int family) override {
    return kernel_.Locked([&] { return route_->ListRules(family); });
  }
  Result<std::vector<Neighbour>> ListNeighbours(int index) override {
    return kernel_.Locked([&] { return route_->ListNeighbours(index); });
  }
  Result<void> SetNeighbour(const Neighbour& neighbour) override {
    return kernel_.Locked([&] { return route_->SetNeighbour(neighbour); });
  }
  Result<bool> DeleteNeighbour(const Neighbour& neighbour) override {
    return kernel_.Locked([&] { return route_->DeleteNeighbour(neighbour); });
  }
  Result<void> ResolveNeighbour(int index, const IpAddress& address) override {
    return kernel_.Locked([&] { return route_->ResolveNeighbour(index, address); });
  }
  // May hold the lock for the whole call, since the fake's functions do not wait.
  Result<std::optional<MacAddress>> WaitNeighbour(int index, const IpAddress& address,
                                                  Deadline deadline) override {
    return kernel_.Locked([&] { return route_->WaitNeighbour(index, address, deadline); });
  }
  Result<bool> WaitCarrier(int index, Deadline deadline) override {
    return kernel_.Locked([&] { return route_->WaitCarrier(index, deadline); });
  }

 private:
  LockedKernel& kernel_;
  std::unique_ptr<RouteApi> route_;
};

class LockedRdma final : public RdmaApi {
 public:
  LockedRdma(LockedKernel& kernel, std::unique_ptr<RdmaApi> rdma) : kernel_(kernel), rdma_(std::move(rdma)) {}

  Result<RdmaNetnsMode> NetnsMode() override {
    return kernel_.Locked([&] { return rdma_->NetnsMode(); });
  }
  Result<std::vector<RdmaDevice>> ListDevices() override {
    return kernel_.Locked([&] { return rdma_->ListDevices(); });
  }
  Result<void> MoveDevice(const std::string& name, const NetNs& target) override {
    return kernel_.Locked([&] { return rdma_->MoveDevice(name, target); });
  }
  Result<void> AddRxe(const std::string& name, const std::string& netdev) override {
    return kernel_.Locked([&] { return rdma_->AddRxe(name, netdev); });
  }
  Result<bool> DeleteRxe(const std::string& name) override {
    return kernel_.Locked([&] { return rdma_->DeleteRxe(name); });
  }
  Result<std::vector<RdmaUser>> ListUsers(const std::string& name) override {
    return kernel_.Locked([&] { return rdma_->ListUsers(name); });
  }

 private:
  LockedKernel& kernel_;
  std::unique_ptr<RdmaApi> rdma_;
};

class LockedDevices final : public DeviceApi {
 public:
  LockedDevices(LockedKernel& kernel, std::unique_ptr<DeviceApi> devices)
      : kernel_(kernel), devices_(std::move(devices)) {}

  Result<DeviceState> Read(const Link& link) override {
    return kernel_.Locked([&] { return devices_->Read(link); });
  }
  Result<void> Write(const Link& link, DeviceSource source, const DeviceState& values) override {
    return kernel_.Locked([&] { return devices_->Write(link, source, values); });
  }

 private:
  LockedKernel& kernel_;
  std::unique_ptr<DeviceApi> devices_;
};

}  // namespace

Result<NetNs> LockedKernel::OpenNetns(const std::string& path) {
  return Locked([&] { return kernel_.OpenNetns(path); });
}
Result<NetNs> LockedKernel::HostNetns() {
  return Locked([&] { return kernel_.HostNetns(); });
}
Result<std::unique_ptr<RouteApi>> LockedKernel::OpenRoute(const NetNs& ns) {
  auto route = RH_TRY(Locked([&] { return kernel_.OpenRoute(ns); }));
  return std::unique_ptr<RouteApi>(std::make_unique<LockedRoute>(*this, std::move(route)));
}
Result<std::unique_ptr<RdmaApi>> LockedKernel::OpenRdma(const NetNs& ns) {
  auto rdma = RH_TRY(Locked([&] { return kernel_.OpenRdma(ns); }));
  return std::unique_ptr<RdmaApi>(std::make_unique<LockedRdma>(*this, std::move(rdma)));
}
Result<std::unique_ptr<DeviceApi>> LockedKernel::OpenDevices(const NetNs& ns) {
  auto devices = RH_TRY(Locked([&] { return kernel_.OpenDevices(ns); }));
  return std::unique_ptr<DeviceApi>(std::make_unique<LockedDevices>(*this, std::move(devices)));
}
Result<std::optional<std::vector<GidEntry>>> LockedKernel::ReadGids(const NetNs& ns,
                                                                    const std::string& device) {
  return Locked([&] { return kernel_.ReadGids(ns, device); });
}
Result<void> LockedKernel::Announce(const NetNs& ns, const Link& link,
                                    const std::vector<IpAddress>& addresses) {
  return Locked([&] { return kernel_.Announce(ns, link, addresses); });
}
Result<std::vector<AddressConflict>> LockedKernel::ProbeAddresses(const NetNs& ns,
                                                                  const std::vector<ProbeTarget>& targets,
                                                                  std::chrono::milliseconds budget) {
  return Locked([&] { return kernel_.ProbeAddresses(ns, targets, budget); });
}
Result<std::vector<std::optional<std::string>>> LockedKernel::ReadSysctls(
    const NetNs& ns, const std::vector<std::string>& paths) {
  return Locked([&] { return kernel_.ReadSysctls(ns, paths); });
}
Result<void> LockedKernel::WriteSysctls(const NetNs& ns, const std::vector<Sysctl>& values) {
  return Locked([&] { return kernel_.WriteSysctls(ns, values); });
}
Result<bool> LockedKernel::HasProcesses(const NetNs& ns) {
  return Locked([&] { return kernel_.HasProcesses(ns); });
}
Result<void> LockedKernel::RebindDriver(const std::string& bdf) {
  return Locked([&] { return kernel_.RebindDriver(bdf); });
}
Result<void> LockedKernel::BindDriver(const std::string& bdf, const std::string& driver) {
  return Locked([&] { return kernel_.BindDriver(bdf, driver); });
}
Result<void> LockedKernel::ResetFunction(const std::string& bdf) {
  return Locked([&] { return kernel_.ResetFunction(bdf); });
}

}  // namespace railhead::testing
