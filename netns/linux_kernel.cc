#include "netns/linux_kernel.h"

#include <chrono>
#include <thread>
#include <utility>

#include "netns/base/poll_pause.h"
#include "netns/nl/netlink_device.h"
#include "netns/nl/netlink_rdma.h"
#include "netns/nl/netlink_route.h"
#include "netns/nl/send_gratuitous_arp.h"
#include "netns/ns/netns.h"
#include "netns/ns/processes.h"
#include "netns/ns/run_in_namespace.h"
#include "netns/ns/sysctl.h"
#include "netns/packet/announce.h"
#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"

namespace railhead {
namespace {

constexpr int kPort = 1;
constexpr std::chrono::seconds kReadLimit{20};
// A VF with a few addresses needs fewer slots than these.
constexpr int kLikelySlots = 16;
constexpr int kLooksPerThoroughOne = 16;

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

Result<std::unique_ptr<DeviceApi>> LinuxKernel::OpenDevices(const NetNs& ns) {
  return OpenNetlinkDevices(ns, bpf_ == Bpf::kAsked);
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

Result<std::optional<GidEntry>> LinuxKernel::WaitGid(const NetNs& ns, const std::string& device,
                                                     const GidRequest& request, Deadline deadline) {
  int looks = 0;
  for (PollPause pause;;) {
    const bool last = std::chrono::steady_clock::now() >= deadline;
    const bool thorough = last || ++looks % kLooksPerThoroughOne == 0;
    const auto table = RH_TRY(ReadGidTable(root_, device, kPort, thorough ? kAllSlots : kLikelySlots));
    // Not on the node: only the pod's own sysfs can show it (exclusive mode).
    if (!table) return Kernel::WaitGid(ns, device, request, deadline);
    const auto found = FindGid(*table, request);
    if (found || last) return found;
    std::this_thread::sleep_for(pause.Next());
  }
}

Result<void> LinuxKernel::Announce(const NetNs& ns, const Link& link,
                                   const std::vector<IpAddress>& addresses) {
  std::vector<IpAddress> left;
  for (const IpAddress& address : addresses) {
    // A packet socket can send where the kernel refuses to.
    const auto sent = address.IsV4() ? nl::SendGratuitousArp(ns, link.index, address) : Result<bool>(false);
    if (!sent || !*sent) left.push_back(address);
  }
  return railhead::Announce(ns, link.index, link.mac, left);
}

Result<std::vector<AddressConflict>> LinuxKernel::ProbeAddresses(const NetNs& ns,
                                                                 const std::vector<ProbeTarget>& targets,
                                                                 std::chrono::milliseconds budget) {
  return railhead::ProbeAddresses(ns, targets, budget);
}

Result<std::vector<std::optional<std::string>>> LinuxKernel::ReadSysctls(
    const NetNs& ns, const std::vector<std::string>& paths) {
  return railhead::ReadSysctls(ns, paths);
}

Result<void> LinuxKernel::WriteSysctls(const NetNs& ns, const std::vector<Sysctl>& values) {
  return railhead::WriteSysctls(ns, values);
}

Result<bool> LinuxKernel::HasProcesses(const NetNs& ns) {
  return railhead::HasProcesses(ns);
}

Result<void> LinuxKernel::RebindDriver(const std::string& bdf) {
  const auto address = PciAddress::Parse(bdf);
  if (!address) return Fail(ErrorCode::kInvalid, "rebinding a driver: " + bdf + " is not a PCI address");
  return railhead::RebindDriver(root_, *address);
}

Result<void> LinuxKernel::BindDriver(const std::string& bdf, const std::string& driver) {
  const auto address = PciAddress::Parse(bdf);
  if (!address) return Fail(ErrorCode::kInvalid, "binding a driver: " + bdf + " is not a PCI address");
  return railhead::BindDriver(root_, *address, driver);
}

Result<void> LinuxKernel::ResetFunction(const std::string& bdf) {
  const auto address = PciAddress::Parse(bdf);
  if (!address) return Fail(ErrorCode::kInvalid, "resetting a function: " + bdf + " is not a PCI address");
  return railhead::ResetFunction(root_, *address);
}

}  // namespace railhead
