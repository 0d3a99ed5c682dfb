#include "netns/linux_kernel.h"

#include <chrono>
#include <utility>

#include "netns/nl/netlink_rdma.h"
#include "netns/nl/netlink_route.h"
#include "netns/ns/run_in.h"
#include "netns/packet/announce.h"
#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"

namespace railhead {
namespace {

constexpr int kPort = 1;
constexpr std::chrono::seconds kReadLimit{20};

}  // namespace

Result<NetNs> LinuxKernel::OpenNetns(const std::string& path) {
  return NetNs::Open(path);
}

Result<NetNs> LinuxKernel::HostNetns() {
  return NetNs::Current();
}

Result<std::unique_ptr<RouteApi>> LinuxKernel::OpenRoute(const NetNs& ns) {
  return OpenNetlinkRoute(ns);
}

Result<std::unique_ptr<RdmaApi>> LinuxKernel::OpenRdma(const NetNs& ns) {
  return OpenNetlinkRdma(ns);
}

Result<std::optional<std::vector<GidEntry>>> LinuxKernel::ReadGids(const NetNs& ns,
                                                                   const std::string& device) {
  auto table = RH_TRY(ReadGidTable(root_, device, kPort));
  const NetNs host = RH_TRY(HostNetns());
  if (table || ns.SameAs(host)) return table;
  // Exclusive mode: only that namespace's own sysfs shows the device.
  const auto look = [&]() -> Result<std::string> {
    return EncodeGidTable(RH_TRY(ReadGidTable(Root(), device, kPort)));
  };
  const auto deadline = std::chrono::steady_clock::now() + kReadLimit;
  const auto bytes = RH_TRY_WRAP(RunInNamespace(ns, deadline, look), "reading the GID table of " + device);
  return DecodeGidTable(bytes);
}

Result<void> LinuxKernel::Announce(const NetNs& ns, const Link& link,
                                   const std::vector<IpAddress>& addresses) {
  return railhead::Announce(ns, link.index, link.mac, addresses);
}

Result<void> LinuxKernel::RebindDriver(const std::string& bdf) {
  const auto address = PciAddress::Parse(bdf);
  if (!address) return Fail(ErrorCode::kInvalid, "rebinding a driver: " + bdf + " is no PCI address");
  return railhead::RebindDriver(root_, *address);
}

}  // namespace railhead
