#include "cni/attachment/reset.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "cni/attachment/attach_plan.h"
#include "cni/attachment/devices.h"
#include "cni/attachment/restore.h"
#include "cni/state/attach_log.h"
#include "cni/state/tenants.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "netns/base/poll_pause.h"
#include "netns/base/text.h"
#include "netns/sys/device_nodes.h"
#include "netns/sys/pci.h"
#include "netns/sys/rdma_sysfs.h"

namespace railhead::attachment {
namespace {

constexpr std::chrono::seconds kBackLimit{10};

class DeviceReset {
 public:
  DeviceReset(const Root& root, Kernel& kernel, const Journal& journal, PciDevice device, std::string why)
      : root_(root),
        kernel_(kernel),
        journal_(journal),
        device_(std::move(device)),
        bdf_(device_.address.ToString()),
        why_(std::move(why)) {}

  Result<ResetOutcome> OfFunction() {
    RH_TRY(RequireNodesClosed(root_, bdf_));
    auto done = kernel_.ResetFunction(bdf_);
    if (!done) return ResetOutcome{Describe(done.error())};
    return Done();
  }

  Result<ResetOutcome> OfDriver() {
    if (!RH_TRY(VfsOf(root_, device_.address)).empty())
      return ResetOutcome{"device " + bdf_ +
                          " is a PF with VFs, which binding its driver again would remove"};
    const NetNs host_ns = RH_TRY(kernel_.HostNetns());
    const auto host = RH_TRY(kernel_.OpenRoute(host_ns));
    const DevicePlan plan = RH_TRY(Look(host_ns, *host));
    if (auto free = RefuseIfHostUses(root_, *host, plan.link, bdf_); !free)
      return ResetOutcome{Describe(free.error())};
    // A soft RoCE device that a process has open holds its interface: unbinding would wait for the process.
    const auto soft = RH_TRY(RxeDevicesOf(root_, plan.link.name));
    RH_TRY(RequireRdmaUnused(root_, kernel_, bdf_, soft));
    const bool had_rdma = !RH_TRY(RdmaDevicesOf(root_, device_.address)).empty();
    const JournalEntry entry = RH_TRY(Describe(plan));
    RH_TRY_WRAP(journal_.Write(entry), "writing the journal");
    LogRebind(root_, entry.key, bdf_, why_);
    if (auto bound = RebindOnHost(root_, kernel_, entry.devices.front(), BackBy()); !bound) {
      if (!RH_TRY(IsAsBefore(*host, plan)))
        return Fail(Wrap(std::move(bound.error()), "resetting device " + bdf_));
      RH_TRY(journal_.Remove(entry));
      return ResetOutcome{Describe(bound.error())};
    }
    if (had_rdma) RH_TRY(AwaitRdma());
    RH_TRY(journal_.Remove(entry));
    return Done();
  }

 private:
  [[nodiscard]] static std::string Describe(const Error& error) { return railhead::Describe(error); }
  static Deadline BackBy() { return std::chrono::steady_clock::now() + kBackLimit; }

  Result<ResetOutcome> Done() {
    RH_TRY(RemoveTenant(root_, bdf_));
    return ResetOutcome{};
  }

  Result<DevicePlan> Look(const NetNs& host_ns, RouteApi& host) {
    DevicePlan plan;
    AttachedDevice& record = plan.record;
    record.device = bdf_;
    record.rebound_for = why_;
    plan.function = device_;
    plan.link = RH_TRY(FindHostLink(root_, host, device_));
    record.pod_name = plan.link.name;
    if (device_.physfn && device_.vf_index) {
      record.pf = device_.physfn->ToString();
      record.vf = *device_.vf_index;
      const auto name = RH_TRY(UplinkNetdev(root_, *device_.physfn));
      const auto pf = name ? RH_TRY(host.FindLink(*name)) : std::nullopt;
      if (pf) record.before.vf = RH_TRY(host.GetVf(pf->index, record.vf));
    }
    RH_TRY(ReadHostState(root_, plan));
    const auto settings = RH_TRY(kernel_.OpenDevices(host_ns));
    record.before.settings = RH_TRY_WRAP(settings->Read(plan.link), "reading the settings of device " + bdf_);
    return plan;
  }

  [[nodiscard]] Result<JournalEntry> Describe(const DevicePlan& plan) const {
    JournalEntry entry;
    entry.key = ResetKey(bdf_);
    entry.boot_id = RH_TRY(BootId(root_));
    entry.since = static_cast<std::int64_t>(std::time(nullptr));
    entry.devices.push_back(plan.record);
    return entry;
  }

  // Whether the driver is still bound as before.
  Result<bool> IsAsBefore(RouteApi& host, const DevicePlan& plan) {
    const auto now = RH_TRY(FindPciDevice(root_, device_.address));
    const auto link = RH_TRY(host.FindLink(plan.link.index));
    return now && now->driver == device_.driver && link && link->name == plan.link.name;
  }

  // The driver registers the RDMA device a moment after the interface.
  Result<void> AwaitRdma() {
    const Deadline until = BackBy();
    for (PollPause pause; RH_TRY(RdmaDevicesOf(root_, device_.address)).empty();) {
      if (std::chrono::steady_clock::now() >= until) {
        return Fail(ErrorCode::kTimeout,
                    "device " + bdf_ + " has no RDMA device after its driver was bound again",
                    "look for the reason in dmesg");
      }
      std::this_thread::sleep_for(pause.Next());
    }
    return {};
  }

  const Root& root_;
  Kernel& kernel_;
  const Journal& journal_;
  const PciDevice device_;
  const std::string bdf_;
  const std::string why_;
};

}  // namespace

Result<ResetOutcome> ResetDevice(const Root& root, Kernel& kernel, const Journal& journal,
                                 const std::string& device, const std::string& why) {
  const auto address = PciAddress::Parse(device);
  auto function = address ? RH_TRY(FindPciDevice(root, *address)) : std::nullopt;
  if (!function || !function->driver) {  // everything on the device went with its driver
    RH_TRY(RemoveTenant(root, device));
    return ResetOutcome{};
  }
  const bool by_program = IsForUserSpace(*function);
  DeviceReset reset(root, kernel, journal, *std::move(function), why);
  return by_program ? reset.OfFunction() : reset.OfDriver();
}

namespace {

constexpr auto kRebindLimit = std::chrono::seconds(10);

}  // namespace

bool NeedsRebindForMac(const std::string& driver) {
  static constexpr std::array<std::string_view, 2> kDrivers = {"igbvf", "ixgbevf"};
  return Contains(kDrivers, driver);
}

Result<std::optional<Link>> FindPfOnHost(const Root& root, RouteApi& host, const AttachedDevice& device) {
  const auto pf_address = PciAddress::Parse(device.pf);
  const auto name = pf_address ? RH_TRY(UplinkNetdev(root, *pf_address)) : std::nullopt;
  const auto pf = name ? RH_TRY(host.FindLink(*name)) : std::nullopt;
  const auto address = PciAddress::Parse(device.device);
  if (pf || !address || !RH_TRY(FindPciDevice(root, *address))) return pf;
  return Fail(ErrorCode::kNotFound,
              "restoring VF " + std::to_string(device.vf) + ": its PF " + device.pf + " is not on the host");
}

// These drivers take the PF's MAC, which can differ from the interface's earlier MAC. So the PF gives the
// host's MAC during the rebind.
Result<Link> RebindKeepingMac(const Root& root, Kernel& kernel, RouteApi& host,
                              const AttachedDevice& device) {
  const auto address = PciAddress::Parse(device.device);
  if (!address) return Fail(ErrorCode::kInvalid, "device " + device.device + " has no PCI address");
  const AttachedDevice::Before& before = device.before;
  const MacAddress administrative = before.vf ? MacOf(*before.vf) : MacAddress{};
  const bool differs = !administrative.IsZero() && administrative != before.mac;
  const auto pf =
      differs && NeedsRebindForMac(before.driver) ? RH_TRY(FindPfOnHost(root, host, device)) : std::nullopt;
  if (pf) RH_TRY(host.SetVf(pf->index, device.vf, {.mac = before.mac}));
  auto bound = RebindAndAwait(root, kernel, host, *address);
  if (!pf) return bound;
  // Also if the driver could not be bound again.
  const auto restored = host.SetVf(pf->index, device.vf, {.mac = administrative});
  if (bound && !restored) return Fail(restored.error());
  return bound;
}

Result<Link> RebindAndAwait(const Root& root, Kernel& kernel, RouteApi& host, const PciAddress& device) {
  const std::string bdf = device.ToString();
  RH_TRY(kernel.RebindDriver(bdf));
  const auto deadline = std::chrono::steady_clock::now() + kRebindLimit;
  for (PollPause pause;;) {
    for (const auto& name : RH_TRY(OwnNetdevsOf(root, device))) {
      if (auto found = RH_TRY(host.FindLink(name)); found) return *found;
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      return Fail(ErrorCode::kTimeout,
                  "device " + bdf + " has no interface after its driver was bound again");
    }
    std::this_thread::sleep_for(pause.Next());
  }
}

namespace {

std::string WhyReset(const Tenant& last) {
  return last.leftover.empty() ? Describe(last) + " had it before" : last.leftover;
}

// For a device that is not reset.
Result<void> RequireFree(const Root& root, Kernel& kernel, const Journal& journal, const DevicePlan& plan,
                         const Tenant& last, const std::string& why) {
  const auto on_host = plan.record.before.user_space ? std::nullopt : std::optional<Link>(plan.link);
  auto unused = RequireUnused(root, kernel, journal, plan.function, on_host);
  if (unused) return {};
  Error error = std::move(unused.error());
  error.hint +=
      (error.hint.empty() ? "" : "; ") + Describe(last) + " had it before, and it was not reset: " + why;
  return Fail(std::move(error));
}

Result<bool> MakeReady(const Root& root, Kernel& kernel, const Journal& journal, const Tenant& tenant,
                       ResetPolicy policy, const DevicePlan& plan) {
  const auto last = RH_TRY(ReadTenant(root, plan.record.device));
  if (!last) return false;
  const bool due = last->pod_namespace != tenant.pod_namespace || !last->leftover.empty();
  if (policy == ResetPolicy::kNever) {
    if (due) RH_TRY(RequireFree(root, kernel, journal, plan, *last, "policy.reset is never"));
    return false;
  }
  if (!due && policy == ResetPolicy::kTenant) return false;
  const ResetOutcome outcome =
      RH_TRY(ResetDevice(root, kernel, journal, plan.record.device, WhyReset(*last)));
  if (outcome.impossible.empty()) return true;
  if (due) RH_TRY(RequireFree(root, kernel, journal, plan, *last, outcome.impossible));
  return false;
}

}  // namespace

Result<bool> MakeReadyFor(const Root& root, Kernel& kernel, const Journal& journal, const Tenant& tenant,
                          ResetPolicy policy, const AttachPlan& plan) {
  bool changed = false;
  for (const DevicePlan& device : plan.devices)
    changed = RH_TRY(MakeReady(root, kernel, journal, tenant, policy, device)) || changed;
  return changed;
}

Result<void> RecordTenant(const Root& root, const Tenant& tenant, const AttachPlan& attach) {
  for (const DevicePlan& plan : attach.devices) {
    const auto last = RH_TRY(ReadTenant(root, plan.record.device));
    Tenant now = tenant;
    // The leftover of a device that was not reset is still there.
    if (last) now.leftover = last->leftover;
    if (last == now) continue;
    RH_TRY_WRAP(WriteTenant(root, plan.record.device, now),
                "recording who gets device " + plan.record.device);
  }
  return {};
}

namespace {

constexpr const char* kEndIt = "an earlier pod may have left it: end it; the runtime tries again";

// A namespace that may have an interface on top of the device.
struct Place {
  std::string netns;
  std::string what;
};

bool IsNumber(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

Result<std::vector<Place>> PlacesOnNode(const Root& root, const Journal& journal) {
  std::vector<Place> places;
  const JournalScan scan = RH_TRY(journal.Scan());
  for (const JournalEntry& entry : scan.entries)
    places.push_back({entry.netns, "the pod of container " + entry.key.container_id});
  const std::string named = root.Path("/run/netns/");
  for (const std::string& name : RH_TRY(ListDirectory(named)).value_or(std::vector<std::string>{}))
    places.push_back({named + name, "network namespace " + name});
  const std::string proc = root.Path("/proc/");
  for (const std::string& pid : RH_TRY(ListDirectory(proc)).value_or(std::vector<std::string>{})) {
    if (IsNumber(pid)) places.push_back({proc + pid + "/ns/net", "the namespace of process " + pid});
  }
  return places;
}

Result<void> RequireNoUppers(const Root& root, Kernel& kernel, const Journal& journal,
                             const std::string& device, const Link& on_host) {
  const NetNs host = RH_TRY(kernel.HostNetns());
  std::set<unsigned long long> seen = {host.inode()};
  for (const Place& place : RH_TRY(PlacesOnNode(root, journal))) {
    const auto ns = kernel.OpenNetns(place.netns);
    if (!ns || !seen.insert(ns->inode()).second) continue;  // it has ended
    const auto route = RH_TRY(kernel.OpenRoute(*ns));
    const auto uppers = RH_TRY(route->ListUppers(on_host.index, host));
    if (uppers.empty()) continue;
    return Fail(ErrorCode::kBusy,
                "device " + device + " has interface " + uppers.front().name + " on top, in " + place.what,
                "an earlier pod left it there: remove it");
  }
  return {};
}

}  // namespace

Result<void> RequireNodesClosed(const Root& root, const std::string& device) {
  const auto held = IsVfioGroupHeld(root, device);
  if (held && !*held) return {};
  const auto open = RH_TRY(FindOpenNodes(root));
  const auto nodes = RH_TRY(NodesOf(root, device));
  for (const std::string& node : nodes) {
    const auto found = open.by_path.find(node);
    if (found == open.by_path.end()) continue;
    std::string message = "device " + device + " is used by " + DescribeProcess(root, found->second);
    message.append(" through ").append(node);
    return Fail(ErrorCode::kBusy, std::move(message), kEndIt);
  }
  if (held) {
    return Fail(ErrorCode::kBusy,
                "the VFIO group of device " + device + " is used by a process that /proc does not show",
                kEndIt);
  }
  if (nodes.empty() || open.hidden.empty()) return {};
  return Fail(ErrorCode::kPermission,
              "process " + open.hidden + " does not show whether it uses device " + device,
              "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH show it");
}

Result<void> RequireRdmaUnused(const Root& root, Kernel& kernel, const std::string& device,
                               const std::vector<std::string>& rdma_devices) {
  if (rdma_devices.empty()) return {};
  const NetNs host = RH_TRY(kernel.HostNetns());
  const auto rdma = RH_TRY(kernel.OpenRdma(host));
  for (const std::string& name : rdma_devices) {
    for (const RdmaUser& user : RH_TRY(rdma->ListUsers(name))) {
      std::vector<std::string> kinds;
      for (const auto& [kind, count] : user.resources) kinds.push_back(std::to_string(count) + " " + kind);
      const std::string who = user.pid == 0 ? "a process that /proc does not show"
                                            : DescribeProcess(root, std::to_string(user.pid));
      std::string message = "RDMA device " + name;
      message.append(" of ").append(device).append(" is used by ").append(who).append(": ");
      return Fail(ErrorCode::kBusy, message.append(Join(kinds, ", ")), kEndIt);
    }
  }
  return {};
}

Result<void> RequireUnused(const Root& root, Kernel& kernel, const Journal& journal, const PciDevice& device,
                           const std::optional<Link>& on_host) {
  const std::string bdf = device.address.ToString();
  RH_TRY(RequireNodesClosed(root, bdf));
  if (!on_host) return {};
  auto rdma_devices = RH_TRY(RdmaDevicesOf(root, device.address));
  for (std::string& soft : RH_TRY(RxeDevicesOf(root, on_host->name))) rdma_devices.push_back(std::move(soft));
  RH_TRY(RequireRdmaUnused(root, kernel, bdf, rdma_devices));
  return RequireNoUppers(root, kernel, journal, bdf, *on_host);
}

}  // namespace railhead::attachment
