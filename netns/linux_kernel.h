// LinuxKernel: the real implementation of netns/kernel.h.
//
// `root` is where /sys is read and written (GID tables, driver binding);
// namespaces and sockets are always the kernel's own.
// Threads: thread-safe, it keeps nothing; the APIs that it opens are not.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead {

class LinuxKernel final : public Kernel {
 public:
  // A daemon's list of system calls has no bpf(2), which can load code. TCX programs are invisible to it.
  enum class Bpf : std::uint8_t { kAsked, kLeftAlone };

  explicit LinuxKernel(Root root, Bpf bpf = Bpf::kAsked) : root_(std::move(root)), bpf_(bpf) {}

  Result<NetNs> OpenNetns(const std::string& path) override;
  // The namespace of the calling thread: code of ours never runs in another one.
  Result<NetNs> HostNetns() override;
  Result<std::unique_ptr<RouteApi>> OpenRoute(const NetNs& ns) override;
  Result<std::unique_ptr<RdmaApi>> OpenRdma(const NetNs& ns) override;
  Result<std::unique_ptr<DeviceApi>> OpenDevices(const NetNs& ns) override;
  Result<std::optional<std::vector<GidEntry>>> ReadGids(const NetNs& ns, const std::string& device) override;
  Result<std::optional<GidEntry>> WaitGid(const NetNs& ns, const std::string& device,
                                          const GidRequest& request, Deadline deadline) override;
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
  Root root_;
  Bpf bpf_;
};

}  // namespace railhead
