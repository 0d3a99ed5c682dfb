#include "deviceplugin/services/provision/pf_change.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"
#include "netns/sys/user_space.h"

namespace railhead::provision {
namespace {

// How long to wait for an ADD that has locked the new VF. Such an ADD sees no driver, and ends.
constexpr std::chrono::seconds kNewVfLockLimit{30};

Error WithUndone(Error error, const std::vector<Error>& failed) {
  for (const Error& undo : failed) error.message += "; " + undo.message;
  if (!failed.empty()) error.hint = "what could not be taken back is to be put right by hand";
  return error;
}

// The reason why the wait for a VF failed. `driver`: the one that it has. `wanted`: the one that the kernel
// offered it to, "": any.
Error NotServed(const std::string& vf, const std::string& driver, const std::string& wanted) {
  if (driver.empty()) {
    return {ErrorCode::kTimeout,
            vf + " has no driver: " + (wanted.empty() ? "none took it" : wanted + " did not take it") +
                " when the kernel offered it",
            "load the driver's module (modprobe), and see the kernel's log for why it refused", 0};
  }
  if (!wanted.empty() && driver != wanted) {
    return {ErrorCode::kTimeout, vf + " has driver " + driver + " instead of " + wanted,
            "see who else binds drivers, and the kernel's log", 0};
  }
  return {ErrorCode::kTimeout, vf + " has driver " + driver + " and no network interface",
          "see the kernel's log", 0};
}

}  // namespace

PfChange::PfChange(const Root& root, RouteApi& host, VfControl& control, const PfPlan& plan,
                   Deadline deadline, ApplyWatch watch)
    : root_(root),
      host_(host),
      control_(control),
      plan_(plan),
      pf_(plan.actual),
      deadline_(deadline),
      driver_deadline_(deadline),
      watch_(std::move(watch)) {
  for (const VfActual& vf : pf_.vfs) locked_.insert(vf.address.ToString());
}

std::string PfChange::VfName(int vf) const {
  return "VF " + std::to_string(vf) + " of " + pf_.Name();
}

Result<PciAddress> PfChange::AddressOf(int vf) const {
  const auto vfs = RH_TRY(VfsOf(root_, pf_.address));
  if (vf < static_cast<int>(vfs.size())) return vfs[static_cast<std::size_t>(vf)];
  return Fail(ErrorCode::kNotFound, VfName(vf) + " no longer exists",
              "see which other program sets sriov_numvfs");
}

Result<void> PfChange::Run() {
  UndoStack undo;
  auto done = ChangePf(undo);
  if (done && plan_.make) done = Replace(undo);
  if (done && !plan_.make) done = Change(undo);
  if (!done) {
    undoing_ = true;
    return Fail(WithUndone(std::move(done.error()), undo.Run()));
  }
  undo.Commit();
  const auto settled = Settle(plan_.make ? plan_.vfs : WithDriversKept(plan_.vfs));
  if (cut_short_) return Fail(StoppedError("giving the VFs of " + pf_.Name() + " their drivers"));
  const auto unmarked = RemoveUnderWay(root_, pf_.address);
  return settled ? unmarked : settled;
}

bool PfChange::CutShort() {
  cut_short_ = cut_short_ || (!undoing_ && watch_.Stopped());
  return cut_short_;
}

Result<void> PfChange::Mark() {
  const int vfs = pf_.vfs_before.value_or(static_cast<int>(pf_.vfs.size()));
  return MarkUnderWay(root_, pf_.address, {KernelBinds(), vfs});
}

Result<void> PfChange::Unmark() {
  return pf_.interrupted ? Result<void>() : RemoveUnderWay(root_, pf_.address);
}

// If the kernel offers VFs to drivers, a kernel driver comes back by itself.
bool PfChange::MustBeNamed(const std::string& driver) const {
  return UserSpaceOf(driver) != UserSpace::kNone || !KernelBinds();
}

std::vector<VfTarget> PfChange::WithDriversKept(std::vector<VfTarget> vfs) const {
  for (VfTarget& vf : vfs) {
    const std::string& driver = pf_.vfs[static_cast<std::size_t>(vf.index)].driver;
    if (vf.bind && vf.driver.empty() && MustBeNamed(driver)) vf.driver = driver;
  }
  return vfs;
}

Result<void> PfChange::Settle(const std::vector<VfTarget>& vfs) {
  std::optional<Error> first;
  const auto keep = [&](const Result<void>& result) {
    if (!result && !first) first = result.error();
    return result.has_value();
  };
  (void)keep(Bind(vfs));
  driver_deadline_ = std::min(deadline_, std::chrono::steady_clock::now() + kDriverLimit);
  for (const VfTarget& vf : vfs) {
    if (keep(AwaitDriver(vf))) (void)keep(SetMtu(vf));
  }
  if (first) return Fail(*first);
  return {};
}

Result<void> PfChange::ChangePf(UndoStack& undo) {
  if (!pf_.link) return {};
  const int index = pf_.link->index;
  if (plan_.mtu) {
    RH_TRY_WRAP(host_.ChangeLink(index, {{.mtu = plan_.mtu}}), "setting the MTU of " + pf_.Name());
    undo.Push("the MTU of " + pf_.Name(),
              [this, index] { return host_.ChangeLink(index, {{.mtu = pf_.link->mtu}}); });
  }
  if (plan_.bring_up) {
    RH_TRY_WRAP(host_.ChangeLink(index, {.up = true}), "bringing " + pf_.Name() + " up");
    undo.Push("bringing up " + pf_.Name(), [this, index] { return host_.ChangeLink(index, {.up = false}); });
  }
  return {};
}

Result<std::vector<VfTarget>> PfChange::Before(const std::vector<VfActual>& vfs) {
  std::vector<VfTarget> before;
  before.reserve(vfs.size());
  for (const VfActual& vf : vfs) {
    VfTarget wanted;
    wanted.index = vf.index;
    wanted.bind = !vf.driver.empty();
    if (MustBeNamed(vf.driver)) wanted.driver = vf.driver;
    if (vf.link) wanted.mtu = vf.link->mtu;
    const auto state =
        pf_.link ? RH_TRY_WRAP(host_.GetVf(pf_.link->index, vf.index), "asking for " + VfName(vf.index))
                 : std::nullopt;
    if (state && !MacOf(*state).IsZero()) wanted.mac = state->mac;
    before.push_back(std::move(wanted));
  }
  return before;
}

Result<void> PfChange::Replace(UndoStack& undo) {
  auto before = RH_TRY(Before(pf_.vfs));
  RH_TRY(Mark());
  undo.Push("the VFs of " + pf_.Name(), [this, before = std::move(before)]() -> Result<void> {
    RH_TRY(Make(before));
    const auto settled = Settle(before);
    const auto unmarked = Unmark();
    return settled ? unmarked : settled;
  });
  return Make(plan_.vfs);
}

Result<void> PfChange::Make(const std::vector<VfTarget>& vfs) {
  const auto count = static_cast<int>(vfs.size());
  const auto set_count = [&](int wanted) {
    return WithContext(control_.SetVfCount(pf_.address, wanted),
                       "setting the number of VFs of " + pf_.Name() + " to " + std::to_string(wanted));
  };
  if (pf_.autoprobe)
    RH_TRY_WRAP(control_.SetAutoprobe(pf_.address, false), "keeping drivers from new VFs of " + pf_.Name());
  if (!RH_TRY(VfsOf(root_, pf_.address)).empty()) RH_TRY(set_count(0));
  if (count > 0) RH_TRY(set_count(count));
  const auto made = RH_TRY(VfsOf(root_, pf_.address));
  if (static_cast<int>(made.size()) != count) {
    return Fail(
        ErrorCode::kExhausted,
        pf_.Name() + " made " + std::to_string(made.size()) + " VFs instead of " + std::to_string(count),
        "see the kernel's log: bus numbers or memory windows of its PCI bridge may not suffice");
  }
  RH_TRY(RefuseOtherOrder(made));
  RH_TRY(LockNew(made));
  for (const VfTarget& vf : vfs) RH_TRY(SetMac(vf));
  // Restore it before binding. While autoprobe is off the kernel refuses to bind VFs, unless a driver is
  // named (pci_device_can_probe).
  if (pf_.autoprobe)
    RH_TRY_WRAP(control_.SetAutoprobe(pf_.address, *pf_.autoprobe),
                "letting drivers have new VFs of " + pf_.Name());
  return {};
}

// VF N has the routing id that the PF's capability gives it: First VF Offset + N * VF Stride
// (pci_iov_virtfn_bus, pci_iov_virtfn_devfn). Every user of the PCI order relies on it.
Result<void> PfChange::RefuseOtherOrder(const std::vector<PciAddress>& made) const {
  if (std::ranges::is_sorted(made)) return {};
  return Fail(ErrorCode::kConflict,
              "the PCI addresses of the VFs of " + pf_.Name() + " do not follow their index",
              "the NIC's firmware is broken: ask its vendor");
}

Result<void> PfChange::LockNew(const std::vector<PciAddress>& made) {
  std::set<std::string> fresh;
  for (const PciAddress& vf : made) {
    if (!locked_.contains(vf.ToString())) fresh.insert(vf.ToString());
  }
  locks_.push_back(RH_TRY(attachment::DeviceLocks::Acquire(root_, fresh, kNewVfLockLimit)));
  locked_.merge(fresh);
  return {};
}

Result<void> PfChange::SetMac(const VfTarget& vf) {
  if (!vf.mac || !pf_.link) return {};
  const std::string what = "setting the MAC of " + VfName(vf.index) + " to " + vf.mac->ToString();
  RH_TRY_WRAP(host_.SetVf(pf_.link->index, vf.index, {.mac = vf.mac}), what);
  const auto state = RH_TRY_WRAP(host_.GetVf(pf_.link->index, vf.index), what);
  if (state && state->mac == *vf.mac) return {};
  return Fail(ErrorCode::kConflict,
              what + ": the PF says " +
                  (state ? MacOf(*state).ToString() : std::string("that this VF does not exist")),
              "the driver does not keep it: use \"mac\": \"keep\" for this rail");
}

Result<void> PfChange::Change(UndoStack& undo) {
  const bool rebinds = std::ranges::any_of(plan_.vfs, &VfTarget::Rebinds);
  if (!rebinds) return {};
  std::vector<VfActual> touched;
  for (const VfTarget& vf : plan_.vfs) {
    if (vf.Rebinds()) touched.push_back(pf_.vfs[static_cast<std::size_t>(vf.index)]);
  }
  auto before = RH_TRY(Before(touched));
  RH_TRY(Mark());
  undo.Push("the drivers of the VFs of " + pf_.Name(), [this, before]() -> Result<void> {
    const auto settled = Settle(before);
    const auto unmarked = Unmark();
    return settled ? unmarked : settled;
  });
  // Unbind all before the first is bound again. Then the kernel numbers them in their order.
  for (const VfActual& vf : touched) {
    if (vf.driver.empty()) continue;
    RH_TRY_WRAP(control_.Unbind(vf.address, vf.driver),
                "unbinding " + VfName(vf.index) + " from " + vf.driver);
  }
  for (const VfTarget& old : before) {
    undo.Push("the MAC of " + VfName(old.index), [this, old] {
      const VfSettings change{.mac = old.mac.value_or(MacAddress{})};
      return pf_.link ? host_.SetVf(pf_.link->index, old.index, change) : Result<void>();
    });
  }
  for (const VfTarget& vf : plan_.vfs) RH_TRY(SetMac(vf));
  return {};
}

Result<void> PfChange::Bind(const std::vector<VfTarget>& vfs) {
  std::optional<Error> first;
  const auto bind = [&](const VfTarget& vf) -> Result<void> {
    const PciAddress address = RH_TRY(AddressOf(vf.index));
    const auto device = RH_TRY(FindPciDevice(root_, address));
    if (!device || device->driver) return {};
    if (!vf.driver.empty()) RH_TRY(control_.SetDriverOverride(address, vf.driver));
    return control_.Probe(address);
  };
  for (const VfTarget& vf : vfs) {
    if (!vf.bind) continue;
    if (CutShort()) break;
    auto bound = WithContext(
        bind(vf), "binding " + VfName(vf.index) + " to " + (vf.driver.empty() ? "its driver" : vf.driver));
    if (!bound && !first) first = std::move(bound.error());
  }
  if (first) return Fail(*first);
  return {};
}

Result<void> PfChange::AwaitDriver(const VfTarget& vf) {
  if (!vf.bind) return {};
  for (;;) {
    const PciAddress address = RH_TRY(AddressOf(vf.index));
    const auto device = RH_TRY(FindPciDevice(root_, address));
    const std::string driver = device ? device->driver.value_or("") : "";
    const bool bound = vf.driver.empty() ? !driver.empty() : driver == vf.driver;
    const bool netdev = UserSpaceOf(driver) == UserSpace::kNone && pf_.link;
    if (bound && (!netdev || !RH_TRY(NetdevsOf(root_, address)).empty())) return {};
    if (CutShort()) return {};  // Run() reports it
    if (control_.AwaitChange(bound ? deadline_ : driver_deadline_)) continue;
    return Fail(NotServed(VfName(vf.index) + " (" + address.ToString() + ")", driver, vf.driver));
  }
}

Result<void> PfChange::SetMtu(const VfTarget& vf) {
  if (!vf.mtu) return {};
  for (bool again = true;; again = false) {
    const PciAddress address = RH_TRY(AddressOf(vf.index));
    const auto link = RH_TRY(HostLinkOf(root_, host_, address));
    if (!link || link->mtu >= *vf.mtu) return {};
    auto changed = WithContext(host_.ChangeLink(link->index, {{.mtu = vf.mtu}}),
                               "setting the MTU of " + VfName(vf.index));
    // Its driver may have replaced the interface since the look-up.
    if (changed || changed.error().sys_errno != ENODEV || !again) return changed;
  }
}

}  // namespace railhead::provision
