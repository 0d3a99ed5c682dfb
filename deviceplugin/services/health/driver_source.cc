#include "deviceplugin/services/health/driver_source.h"

#include <optional>

#include "netns/nl/devlink_health.h"
#include "netns/sys/ethtool_stats.h"

namespace railhead::health {
namespace {

class KernelDriverSource final : public DriverSource {
 public:
  Result<std::vector<std::string>> FailedReporters(const std::string& address,
                                                   const std::vector<std::string>& reporters) override {
    std::vector<std::string> failed;
    RH_TRY(OpenDevlink());
    if (!devlink_) return failed;
    RH_TRY(devlink_->Refresh());
    for (const std::string& reporter : reporters) {
      if (RH_TRY(devlink_->HasFailed(address, reporter))) failed.push_back(reporter);
    }
    return failed;
  }

  Result<std::map<std::string, std::uint64_t>> Statistics(const std::string& netdev,
                                                          const std::vector<std::string>& names) override {
    if (!ethtool_) ethtool_ = RH_TRY(EthtoolStats::Open());
    return ethtool_->Read(netdev, names);
  }

 private:
  Result<void> OpenDevlink() {
    if (devlink_ || no_devlink_) return {};
    auto opened = DevlinkHealth::Open();
    if (opened) {
      devlink_ = *std::move(opened);
      return {};
    }
    if (opened.error().code != ErrorCode::kUnsupported) return Fail(std::move(opened.error()));
    no_devlink_ = true;
    return {};
  }

  std::optional<DevlinkHealth> devlink_;
  bool no_devlink_ = false;
  std::optional<EthtoolStats> ethtool_;
};

}  // namespace

std::unique_ptr<DriverSource> MakeKernelDriverSource() {
  return std::make_unique<KernelDriverSource>();
}

}  // namespace railhead::health
