#include "cni/attachment/reset.h"

#include <chrono>
#include <ctime>
#include <optional>
#include <thread>
#include <utility>

#include "cni/attachment/attach_plan.h"
#include "cni/attachment/driver_settings.h"
#include "cni/attachment/host_device.h"
#include "cni/attachment/host_state.h"
#include "cni/attachment/refuse_host_use.h"
#include "cni/attachment/require_unused.h"
#include "cni/attachment/restore.h"
#include "cni/state/attach_log.h"
#include "cni/state/tenants.h"
#include "netns/base/node.h"
#include "netns/base/poll_pause.h"
#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"
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
    RH_TRY(ReadDriverSettings(kernel_, host_ns, {&plan, 1}));
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

}  // namespace railhead::attachment
