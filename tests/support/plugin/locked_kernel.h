// A Kernel that several threads may use at once: one call of another Kernel at a time.
//
// For tests in which a DEL comes while an ADD waits. A test that uses the fake kernel itself does so with
// Locked().
// Ownership: borrows the kernel. Threads: thread-safe, its handles as RouteApi.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "netns/kernel.h"

namespace railhead::testing {

class LockedKernel final : public Kernel {
 public:
  explicit LockedKernel(Kernel& kernel) : kernel_(kernel) {}

  template <typename F>
  auto Locked(F&& action) {
    const std::lock_guard lock(mutex_);
    return action();
  }

  Result<NetNs> OpenNetns(const std::string& path) override;
  Result<NetNs> HostNetns() override;
  Result<std::unique_ptr<RouteApi>> OpenRoute(const NetNs& ns) override;
  Result<std::unique_ptr<RdmaApi>> OpenRdma(const NetNs& ns) override;
  Result<std::unique_ptr<DeviceApi>> OpenDevices(const NetNs& ns) override;
  Result<std::optional<std::vector<GidEntry>>> ReadGids(const NetNs& ns, const std::string& device) override;
  Result<void> Announce(const NetNs& ns, const Link& link, const std::vector<IpAddress>& addresses) override;
  Result<std::vector<AddressConflict>> ProbeAddresses(const NetNs& ns,
                                                      const std::vector<ProbeTarget>& targets,
                                                      std::chrono::milliseconds budget) override;
  Result<std::vector<std::optional<std::string>>> ReadSysctls(const NetNs& ns,
                                                              const std::vector<std::string>& paths) override;
  Result<void> WriteSysctls(const NetNs& ns, const std::vector<Sysctl>& values) override;
  Result<bool> HasProcesses(const NetNs& ns) override;
  Result<void> RebindDriver(const std::string& bdf) override;
  Result<void> BindDriver(const std::string& bdf, const std::string& driver) override;
  Result<void> ResetFunction(const std::string& bdf) override;

 private:
  Kernel& kernel_;
  std::mutex mutex_;
};

}  // namespace railhead::testing
