#include "deviceplugin/services/provision/provisioner.h"

#include <algorithm>
#include <set>
#include <utility>

#include "cni/attachment/device_locks.h"
#include "cni/state/paths.h"
#include "deviceplugin/services/provision/pf_change.h"
#include "deviceplugin/services/provision/pf_state.h"
#include "deviceplugin/services/provision/vf_control.h"
#include "deviceplugin/services/provision/vf_uses.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/state_folder.h"
#include "netns/base/text.h"

namespace railhead::provision {
namespace {

// Another provisioner's whole run.
constexpr std::chrono::seconds kOtherLimit{300};
// An ADD or DEL that is under way.
constexpr std::chrono::seconds kDeviceLimit{60};
constexpr std::size_t kUsesNamed = 4;

struct PfOfRail {
  const Rail* rail;
  PciDevice device;
};

// The rails' PFs on this node. Each PF belongs to the first rail that names it.
class PfFinder {
 public:
  PfFinder(const Root& root, std::vector<PciDevice> pfs) : root_(root), pfs_(std::move(pfs)) {}

  Result<const PciDevice*> Find(const Rail& rail) {
    if (rail.position) return AtPosition(static_cast<std::size_t>(*rail.position));
    for (const std::string& name : rail.pfs) {
      for (const PciDevice& pf : pfs_) {
        if (ToLower(name) == pf.address.ToString()) return &pf;
        if (RH_TRY(UplinkNetdev(root_, pf.address)) == name) return &pf;
      }
    }
    return nullptr;
  }

 private:
  // Positions are those of ListRailPfs().
  Result<const PciDevice*> AtPosition(std::size_t position) {
    for (const PciDevice& pf : pfs_) {
      const bool counts = pf.sriov_totalvfs > 0 || !RH_TRY(RdmaDevicesOf(root_, pf.address)).empty();
      if (counts && position-- == 0) return &pf;
    }
    return nullptr;
  }

  const Root& root_;
  std::vector<PciDevice> pfs_;
};

std::optional<Error> RefuseDriver(const Root& root, const PfPlan& plan) {
  for (const VfTarget& vf : plan.vfs) {
    if (vf.driver.empty() || Exists(root.Path("/sys/bus/pci/drivers/") + vf.driver)) continue;
    return Error{ErrorCode::kNotFound,
                 "the VFs of " + plan.actual.Name() + " shall have driver " + vf.driver +
                     ", which this node's kernel does not have",
                 "load its module first: modprobe " + vf.driver, 0};
  }
  return std::nullopt;
}

// Making VFs ends RoCE LAG, which a NIC's firmware does for a bond
// (drivers/net/ethernet/mellanox/mlx5/core/lag). It also ends the host's connections that use it, for example
// to storage.
Result<std::optional<Error>> RefuseBonded(RouteApi& host, const PfPlan& plan) {
  if (!plan.make || !plan.actual.link || plan.actual.link->master == 0) return std::nullopt;
  const auto master = RH_TRY(host.FindLink(plan.actual.link->master));
  if (!master || master->kind != "bond") return std::nullopt;
  return std::optional<Error>(Error{
      ErrorCode::kBusy,
      "making VFs on " + plan.actual.Name() + ": it is a port of the host's bond " + master->name +
          ", whose RoCE LAG would end",
      "take it out of the bond first; if nothing of the host uses RDMA there, say \"allowBonded\": true for "
      "rail " +
          plan.actual.rail + " in provision",
      0});
}

Result<std::optional<Error>> RefuseUsed(const Root& root, RouteApi& host, const PfPlan& plan) {
  const auto uses = RH_TRY(FindVfUses(root, host, plan.actual));
  if (!uses.empty()) {
    std::string message = plan.actual.Name() + " is not changed while one of its VFs is in use: ";
    for (std::size_t i = 0; i < std::min(uses.size(), kUsesNamed); ++i) {
      message += (i == 0 ? "" : "; ") + std::string("VF ") + std::to_string(uses[i].vf) + " (" +
                 uses[i].device + ") " + uses[i].why;
    }
    if (uses.size() > kUsesNamed) message += "; and " + std::to_string(uses.size() - kUsesNamed) + " more";
    return std::optional<Error>(Error{ErrorCode::kBusy, std::move(message), uses.front().hint, 0});
  }
  auto pf_use = RH_TRY(FindPfUse(root, host, plan.actual));
  // Making the first VFs takes nothing from the host.
  const bool reduces = plan.make && !plan.actual.vfs.empty();
  const bool in_pod = pf_use && !plan.actual.link;
  return reduces || in_pod ? pf_use : std::nullopt;
}

class Node {
 public:
  Node(const Root& root, RouteApi& host, const Provision& provision)
      : root_(root), host_(host), provision_(provision) {}

  // All rails' PFs, and the rails without.
  Result<std::pair<std::vector<PfOfRail>, std::vector<std::string>>> FindPfs(
      const std::optional<std::string>& only) {
    if (only && provision_.fabric.FindRail(*only) == nullptr) {
      return Fail(ErrorCode::kNotFound, "the fabric has no rail '" + *only + "'", "see its \"rails\"");
    }
    auto candidates = RH_TRY_WRAP(ListNetworkPfs(root_), "looking for network functions");
    PfFinder finder(root_, std::move(candidates));
    std::pair<std::vector<PfOfRail>, std::vector<std::string>> found;
    std::set<PciAddress> taken;
    for (const Rail& rail : provision_.fabric.rails) {
      const PciDevice* pf = RH_TRY(finder.Find(rail));
      const bool first = pf != nullptr && taken.insert(pf->address).second;
      if (only && rail.name != *only) continue;
      if (first) found.first.push_back({&rail, *pf});
      if (pf == nullptr) found.second.push_back(rail.name);
    }
    return found;
  }

  // Does not check who uses the PF.
  Result<PfPlan> Compare(const PfOfRail& pf, const LinksByName& links) {
    const PfSettings& settings = provision_.settings.Of(pf.rail->name);
    const bool derived = settings.mac == MacPolicy::kDerived;
    PfActual actual = RH_TRY(ReadPf(root_, host_, links, pf.device, pf.rail->name, derived));
    return PlanPf(std::move(actual), settings, pf.rail->mtu);
  }

  Result<PfPlan> Compare(const PfOfRail& pf) {
    const auto device = RH_TRY(FindPciDevice(root_, pf.device.address));
    if (!device) return Fail(ErrorCode::kNotFound, "PF " + pf.device.address.ToString() + " has disappeared");
    const auto links = RH_TRY(ReadHostLinks(host_));
    return Compare({pf.rail, *device}, links);
  }

  Result<void> Judge(PfPlan& plan) {
    if (plan.refused || !plan.Disturbs()) return {};
    plan.refused = RefuseDriver(root_, plan);
    if (!plan.refused) plan.refused = RH_TRY(RefuseUsed(root_, host_, plan));
    const bool allowed = provision_.settings.Of(plan.actual.rail).allow_bonded;
    if (!plan.refused && !allowed) plan.refused = RH_TRY(RefuseBonded(host_, plan));
    return {};
  }

  // Waits until the PF is as planned. It ignores refusals: they would come from a change by another program.
  Result<void> Verify(const PfOfRail& pf, VfControl& control, Deadline deadline, const ApplyWatch& watch) {
    for (;;) {
      const PfPlan left = RH_TRY(Compare(pf));
      if (left.NothingToDo()) return {};
      if (watch.Stopped()) return Fail(StoppedError("waiting for the VFs of " + left.actual.Name()));
      if (control.AwaitChange(deadline)) continue;
      return Fail(ErrorCode::kConflict, left.actual.Name() + " is not as it was set",
                  "see what is left to do: railctl vfs plan");
    }
  }

 private:
  const Root& root_;
  RouteApi& host_;
  const Provision& provision_;
};

class Applier {
 public:
  Applier(const Root& root, RouteApi& host, VfControl& control, Node& node, std::chrono::milliseconds limit,
          const ApplyWatch& watch)
      : root_(root), host_(host), control_(control), node_(node), limit_(limit), watch_(watch) {}

  // `seen`: the plan that was made without locks.
  PfOutcome Apply(const PfOfRail& pf, PfPlan seen) {
    PfOutcome outcome{std::move(seen), std::nullopt};
    if (const auto done = TryApply(pf, outcome.plan); !done) outcome.error = done.error();
    return outcome;
  }

 private:
  Result<void> TryApply(const PfOfRail& pf, PfPlan& plan) {
    if (plan.refused) return Fail(*plan.refused);
    if (plan.NothingToDo()) return {};
    watch_.ReportProgress("provisioning " + plan.actual.Name());
    std::set<std::string> devices = {pf.device.address.ToString()};
    for (const VfActual& vf : plan.actual.vfs) devices.insert(vf.address.ToString());
    const auto locks = attachment::DeviceLocks::Acquire(root_, devices, kDeviceLimit, watch_.stop);
    if (!locks && watch_.Stopped()) return Fail(StoppedError("locking the devices of " + plan.actual.Name()));
    if (!locks) {
      return Fail(ErrorCode::kBusy, plan.actual.Name() + ": " + locks.error().message,
                  "a pod is getting or giving back one of its VFs: try again");
    }
    const std::size_t vfs_locked = plan.actual.vfs.size();
    plan = RH_TRY(node_.Compare(pf));
    if (plan.actual.vfs.size() != vfs_locked) {
      return Fail(ErrorCode::kBusy, plan.actual.Name() + ": somebody else changes its VFs", "try again");
    }
    RH_TRY(node_.Judge(plan));
    if (plan.refused) return Fail(*plan.refused);
    if (plan.NothingToDo()) return {};
    const Deadline deadline = std::chrono::steady_clock::now() + limit_;
    PfChange change(root_, host_, control_, plan, deadline, watch_);
    RH_TRY(change.Run());
    return node_.Verify(pf, control_, deadline, watch_);
  }

  const Root& root_;
  RouteApi& host_;
  VfControl& control_;
  Node& node_;
  std::chrono::milliseconds limit_;
  const ApplyWatch& watch_;
};

}  // namespace

bool VfsPlan::NothingToDo() const {
  return std::ranges::all_of(pfs, [](const PfPlan& pf) { return pf.NothingToDo() && !pf.refused; });
}

bool VfsPlan::Refused() const {
  return std::ranges::any_of(pfs, [](const PfPlan& pf) { return pf.refused.has_value(); });
}

bool VfsOutcome::Failed() const {
  return std::ranges::any_of(pfs, [](const PfOutcome& pf) { return pf.error.has_value(); });
}

Result<std::optional<Provision>> ReadProvision(const Root& root, const std::string& path) {
  auto fabric = RH_TRY(ReadFabric(root, path));
  if (!fabric) return std::nullopt;
  auto settings = RH_TRY(ReadProvisionSettings(*fabric, path));
  if (!settings) return std::nullopt;
  return Provision{*std::move(fabric), *std::move(settings)};
}

Result<VfsPlan> PlanVfs(const Root& root, Kernel& kernel, const Provision& provision,
                        const std::optional<std::string>& only) {
  const NetNs ns = RH_TRY(kernel.HostNetns());
  const auto host = RH_TRY(kernel.OpenRoute(ns));
  Node node(root, *host, provision);
  auto [pfs, absent] = RH_TRY(node.FindPfs(only));
  const LinksByName links = RH_TRY(ReadHostLinks(*host));
  VfsPlan plan;
  plan.absent_rails = std::move(absent);
  plan.pfs.reserve(pfs.size());
  for (const PfOfRail& pf : pfs) {
    plan.pfs.push_back(RH_TRY(node.Compare(pf, links)));
    RH_TRY(node.Judge(plan.pfs.back()));
  }
  return plan;
}

Result<VfsOutcome> ApplyVfs(const Root& root, Kernel& kernel, VfControl& control, const Provision& provision,
                            const std::optional<std::string>& only, std::chrono::milliseconds limit,
                            const ApplyWatch& watch) {
  VfsPlan first = RH_TRY(PlanVfs(root, kernel, provision, only));
  VfsOutcome outcome;
  outcome.absent_rails = std::move(first.absent_rails);
  outcome.pfs.reserve(first.pfs.size());
  const bool idle =
      std::ranges::all_of(first.pfs, [](const PfPlan& pf) { return pf.NothingToDo() || pf.refused; });
  if (idle) {
    for (PfPlan& pf : first.pfs) {
      auto error = pf.refused;
      outcome.pfs.push_back({std::move(pf), std::move(error)});
    }
    return outcome;
  }
  watch.ReportProgress("waiting for another program that changes VFs");
  const auto lock = FileLock::Acquire(paths::Lock(root, "provision"), kOtherLimit, watch.stop);
  if (!lock && watch.Stopped()) return outcome;
  if (!lock)
    return Fail(ErrorCode::kBusy, "another railctl or railheadd changes VFs: " + lock.error().message);
  const NetNs ns = RH_TRY(kernel.HostNetns());
  const auto host = RH_TRY(kernel.OpenRoute(ns));
  Node node(root, *host, provision);
  const auto [pfs, absent] = RH_TRY(node.FindPfs(only));
  Applier applier(root, *host, control, node, limit, watch);
  for (const PfOfRail& pf : pfs) {
    if (watch.Stopped()) break;
    PfPlan plan = RH_TRY(node.Compare(pf));
    RH_TRY(node.Judge(plan));
    outcome.pfs.push_back(applier.Apply(pf, std::move(plan)));
  }
  return outcome;
}

}  // namespace railhead::provision
