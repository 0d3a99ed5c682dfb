#include "cni/attachment/reset.h"

#include <chrono>
#include <ctime>
#include <optional>
#include <thread>
#include <utility>

#include "cni/attachment/attach_plan.h"
#include "cni/attachment/device_use.h"
#include "cni/attachment/host_device.h"
#include "cni/attachment/journal_record.h"
#include "cni/attachment/restore.h"
#include "cni/state/attach_log.h"
#include "cni/state/tenants.h"
#include "netns/base/node.h"
#include "netns/base/poll_pause.h"
#include "netns/sys/pci.h"
#include "netns/sys/rdma_sysfs.h"

namespace railhead {
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
    if (device_.sriov_numvfs > 0)
      return ResetOutcome{"device " + bdf_ + " is a PF with VFs, which binding its driver anew would remove"};
    const NetNs host_ns = RH_TRY(kernel_.HostNetns());
    const auto host = RH_TRY(kernel_.OpenRoute(host_ns));
    LinkPlan plan = RH_TRY(Look(host_ns, *host));
    if (auto free = RefuseIfHostUses(root_, *host, plan.host_link, bdf_); !free)
      return ResetOutcome{Describe(free.error())};
    // A soft RoCE device that a process has open holds its interface: unbinding would wait for the process.
    const auto soft = RH_TRY(RxeDevicesOf(root_, plan.host_link.name));
    RH_TRY(RequireRdmaUnused(root_, kernel_, bdf_, soft));
    const bool had_rdma = !RH_TRY(RdmaDevicesOf(root_, device_.address)).empty();
    const JournalEntry entry = RH_TRY(Describe(plan));
    RH_TRY_WRAP(journal_.Write(entry), "writing the journal");
    LogRebind(root_, entry.key, bdf_, why_);
    if (auto bound = RebindOnHost(root_, kernel_, entry.links.front(), BackBy()); !bound) {
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

  Result<LinkPlan> Look(const NetNs& host_ns, RouteApi& host) {
    LinkPlan plan;
    plan.device = device_;
    plan.bdf = bdf_;
    plan.host_link = RH_TRY(FindHostLink(root_, host, device_));
    plan.pod_name = plan.host_link.name;
    const auto settings = RH_TRY(kernel_.OpenDevices(host_ns));
    plan.host_settings =
        RH_TRY_WRAP(settings->Read(plan.host_link), "reading the settings of device " + bdf_);
    if (!device_.physfn || !device_.vf_index) return plan;
    plan.pf_bdf = device_.physfn->ToString();
    const auto name = RH_TRY(UplinkNetdev(root_, *device_.physfn));
    const auto pf = name ? RH_TRY(host.FindLink(*name)) : std::nullopt;
    if (pf) plan.host_vf = RH_TRY(host.GetVf(pf->index, *device_.vf_index));
    return plan;
  }

  [[nodiscard]] Result<JournalEntry> Describe(const LinkPlan& plan) const {
    JournalEntry entry;
    entry.key = ResetKey(bdf_);
    entry.boot_id = RH_TRY(BootId(root_));
    entry.since = static_cast<std::int64_t>(std::time(nullptr));
    entry.links.push_back(RH_TRY(DescribeOnHost(root_, plan)));
    entry.links.front().rebound_for = why_;
    return entry;
  }

  // Whether the driver has not even been unbound.
  Result<bool> IsAsBefore(RouteApi& host, const LinkPlan& plan) {
    const auto now = RH_TRY(FindPciDevice(root_, device_.address));
    const auto link = RH_TRY(host.FindLink(plan.host_link.index));
    return now && now->driver == device_.driver && link && link->name == plan.host_link.name;
  }

  // Its driver makes the RDMA device a moment later than the interface.
  Result<void> AwaitRdma() {
    const Deadline until = BackBy();
    for (PollPause pause; RH_TRY(RdmaDevicesOf(root_, device_.address)).empty();) {
      if (std::chrono::steady_clock::now() >= until) {
        return Fail(ErrorCode::kTimeout,
                    "device " + bdf_ + " has no RDMA device after its driver was bound again",
                    "dmesg may tell why");
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
  if (!function || !function->driver) {  // what was on it went with its driver
    RH_TRY(RemoveTenant(root, device));
    return ResetOutcome{};
  }
  const bool by_program = IsForUserSpace(*function);
  DeviceReset reset(root, kernel, journal, *std::move(function), why);
  return by_program ? reset.OfFunction() : reset.OfDriver();
}

}  // namespace railhead
