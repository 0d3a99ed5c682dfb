// RdmaApi in one namespace of a FakeKernel.
#include <cerrno>

#include "tests/support/fake_kernel/fake_kernel.h"

namespace railhead::testing {
namespace {

class FakeRdmaApi final : public RdmaApi {
 public:
  FakeRdmaApi(FakeKernel& kernel, std::string ns) : kernel_(kernel), ns_(std::move(ns)) {}

  Result<RdmaNetnsMode> NetnsMode() override {
    if (const auto injected = Begin("NetnsMode", ""))
      return FailSys(injected.error, "reading the netns mode");
    return state().mode;
  }

  Result<std::vector<RdmaDevice>> ListDevices() override {
    if (const auto injected = Begin("ListDevices", ""))
      return FailSys(injected.error, "listing RDMA devices");
    std::vector<RdmaDevice> devices;
    for (const auto& rdma : state().rdmas) {
      if (!state().RdmaVisible(rdma, ns_)) continue;
      RdmaDevice device{rdma.index, rdma.name, 0, "", state().PortActive(rdma)};
      const FakeNetdev* netdev = state().Netdev(rdma.netdev);
      if (netdev != nullptr && netdev->ns == ns_) {
        device.netdev_index = netdev->link.index;
        device.netdev = netdev->link.name;
      }
      devices.push_back(std::move(device));
    }
    return devices;
  }

  Result<void> MoveDevice(const std::string& name, const NetNs& target) override {
    const std::string what = "moving RDMA device " + name + " to " + target.path();
    if (const auto injected = Begin("MoveDevice", name + " to " + target.path())) {
      return FailSys(injected.error, what);
    }
    FakeRdma* rdma = state().Rdma(name);
    const auto to = kernel_.NameOf(target);
    if (rdma == nullptr || !state().RdmaVisible(*rdma, ns_)) return kernel_.Finish(ENODEV, what);
    return kernel_.Finish(to ? state().MoveRdma(*rdma, *to) : EINVAL, what);
  }

  Result<void> AddRxe(const std::string& name, const std::string& netdev) override {
    const std::string what = "adding soft RoCE device " + name + " on " + netdev;
    if (const auto injected = Begin("AddRxe", name + " on " + netdev)) return FailSys(injected.error, what);
    const int error = state().AddRxe(ns_, name, netdev);
    auto done = kernel_.Finish(error, what);
    // The netlink layer maps these two errors to the same codes.
    if (error == ENFILE) done.error().code = ErrorCode::kExists;
    if (error == EINVAL) done.error().code = ErrorCode::kUnsupported;
    return done;
  }

  Result<bool> DeleteRxe(const std::string& name) override {
    const std::string what = "deleting soft RoCE device " + name;
    if (const auto injected = Begin("DeleteRxe", name)) return FailSys(injected.error, what);
    const FakeRdma* rdma = state().Rdma(name);
    if (rdma == nullptr || !state().RdmaVisible(*rdma, ns_)) return false;
    if (!rdma->rxe) {
      RH_TRY(kernel_.Finish(EINVAL, what));
      return false;
    }
    std::erase_if(state().rdmas, [&](const FakeRdma& other) { return other.name == name; });
    RH_TRY(kernel_.Finish(0, what));
    return true;
  }

  Result<std::vector<RdmaUser>> ListUsers(const std::string& name) override {
    if (const auto injected = Begin("ListUsers", name)) return FailSys(injected.error, "listing users");
    const FakeRdma* rdma = state().Rdma(name);
    if (rdma == nullptr || !state().RdmaVisible(*rdma, ns_)) return std::vector<RdmaUser>{};
    return rdma->users;
  }

 private:
  FakeState& state() { return kernel_.state(); }
  FakeKernel::Injected Begin(const std::string& call, const std::string& what) {
    return kernel_.Begin(call, (ns_ == kHost ? "host: " : "pod: ") + what);
  }

  FakeKernel& kernel_;
  std::string ns_;
};

}  // namespace

std::unique_ptr<RdmaApi> MakeFakeRdma(FakeKernel& kernel, const std::string& ns) {
  return std::make_unique<FakeRdmaApi>(kernel, ns);
}

}  // namespace railhead::testing
