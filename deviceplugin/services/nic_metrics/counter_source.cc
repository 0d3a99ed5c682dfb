#include "deviceplugin/services/nic_metrics/counter_source.h"

#include <fcntl.h>

#include <cerrno>

#include "netns/sys/ethtool_stats.h"

namespace railhead::nic_metrics {
namespace {

class KernelCounters final : public CounterSource {
 public:
  explicit KernelCounters(NetNs ns) : ns_(std::move(ns)) {}

  Result<std::optional<PfTraffic>> Link(const std::string& netdev) override {
    if (!link_) link_ = RH_TRY(LinkCounters::Open(ns_));
    return link_->Read(netdev);
  }

  Result<std::optional<NamedCounters>> Rdma(std::uint32_t device_index) override {
    if (!rdma_) rdma_ = RH_TRY(RdmaCounters::Open(ns_));
    return rdma_->Read(device_index);
  }

  Result<std::map<std::string, std::uint64_t>> Driver(const std::string& netdev,
                                                      const std::vector<std::string>& names) override {
    if (!driver_) RH_TRY(OpenDriver());
    return driver_->Read(netdev, names);
  }

 private:
  Result<void> OpenDriver() {
    return OpenSocketsIn(ns_, [this]() -> Result<void> {
      driver_ = RH_TRY(EthtoolStats::Open());
      return {};
    });
  }

  NetNs ns_;
  std::optional<LinkCounters> link_;
  std::optional<RdmaCounters> rdma_;
  std::optional<EthtoolStats> driver_;
};

}  // namespace

Result<std::unique_ptr<CounterSource>> OpenKernelCounters(const NetNs& ns) {
  UniqueFd fd(::fcntl(ns.fd(), F_DUPFD_CLOEXEC, 0));
  if (!fd.valid()) return FailSys(errno, "keeping " + ns.path());
  return std::unique_ptr<CounterSource>(
      std::make_unique<KernelCounters>(RH_TRY(NetNs::FromFd(std::move(fd), ns.path()))));
}

}  // namespace railhead::nic_metrics
