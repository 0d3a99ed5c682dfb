#include "tests/unit/deviceplugin/services/provision/fake_control.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "netns/base/files.h"
#include "netns/sys/pci.h"

namespace railhead::testing {
namespace {

std::string DirectoryOf(const std::string& function) {
  return "/sys/bus/pci/devices/" + function;
}

}  // namespace

void FakeControl::AddPf(const std::string& pf, bool autoprobe) {
  sysfs_.Write(DirectoryOf(pf) + "/sriov_drivers_autoprobe", autoprobe ? "1\n" : "0\n");
}

bool FakeControl::Autoprobe(const std::string& pf) const {
  return ReadAttribute(sysfs_.directory() + DirectoryOf(pf) + "/sriov_drivers_autoprobe")
             .value()
             .value_or("1") != "0";
}

Result<void> FakeControl::Begin(const std::string& call, const std::string& what) {
  log_.push_back(call + " " + what);
  if (before) before(log_.back());
  const auto fault = faults_.find(call);
  if (fault == faults_.end() || fault->second.times == 0) return {};
  if (what.find(fault->second.text) == std::string::npos) return {};
  --fault->second.times;
  return FailSys(fault->second.error, call + " " + what);
}

void FakeControl::MakeVfs(const std::string& pf, int count) {
  FakeFunction vf = *kernel_.state().Function(pf);
  const auto addresses = sysfs_.AddVfs(pf, count, {.netdev = "", .driver = ""});
  for (int n = 0; n < count; ++n) {
    FakeFunction made = vf;
    made.bdf = addresses[static_cast<std::size_t>(n)];
    made.pf = pf;
    made.vf = n;
    made.netdev_name = vf.netdev_name + "v" + std::to_string(n);
    made.was_bound = false;
    made.state = VfState{.vf = n};
    kernel_.state().functions.push_back(std::move(made));
    if (Autoprobe(pf)) Bind(addresses[static_cast<std::size_t>(n)]);
  }
}

void FakeControl::RemoveVfs(const std::string& pf) {
  const auto vfs = VfsOf(sysfs_.root(), *PciAddress::Parse(pf)).value();
  for (const PciAddress& address : vfs) {
    const std::string vf = address.ToString();
    if (FakeFunction* function = kernel_.state().Function(vf); function != nullptr)
      kernel_.state().Unbind(*function);
    std::erase_if(kernel_.state().functions, [&](const FakeFunction& other) { return other.bdf == vf; });
    overrides_.erase(vf);
  }
  kernel_.Sync();
  for (std::size_t n = 0; n < vfs.size(); ++n) {
    const auto path = ReadLink(sysfs_.directory() + DirectoryOf(vfs[n].ToString())).value();
    sysfs_.Remove("/sys" + path->substr(std::string("../../..").size()));
    sysfs_.Remove(DirectoryOf(vfs[n].ToString()));
    sysfs_.Remove(DirectoryOf(pf) + "/virtfn" + std::to_string(n));
  }
  sysfs_.Write(DirectoryOf(pf) + "/sriov_numvfs", "0\n");
}

Result<void> FakeControl::SetVfCount(const PciAddress& pf, int count) {
  const std::string id = pf.ToString();
  RH_TRY(Begin("SetVfCount", id + " " + std::to_string(count)));
  const std::size_t now = VfsOf(sysfs_.root(), pf).value().size();
  if (count > 0 && now > 0) return FailSys(EBUSY, "SetVfCount");
  if (count > FindPciDevice(sysfs_.root(), pf).value()->sriov_totalvfs) return FailSys(ERANGE, "SetVfCount");
  if (count == 0) {
    RemoveVfs(id);
  } else {
    MakeVfs(id, std::min(count, at_most_));
  }
  kernel_.Sync();
  return {};
}

Result<void> FakeControl::SetAutoprobe(const PciAddress& pf, bool on) {
  RH_TRY(Begin("SetAutoprobe", pf.ToString() + (on ? " 1" : " 0")));
  AddPf(pf.ToString(), on);
  return {};
}

Result<void> FakeControl::SetDriverOverride(const PciAddress& function, const std::string& driver) {
  RH_TRY(Begin("SetDriverOverride", function.ToString() + " " + driver));
  overrides_[function.ToString()] = driver;
  return {};
}

Result<void> FakeControl::Unbind(const PciAddress& function, const std::string& driver) {
  const std::string id = function.ToString();
  RH_TRY(Begin("Unbind", id + " " + driver));
  if (FindPciDevice(sysfs_.root(), function).value()->driver != driver) return FailSys(ENODEV, "Unbind");
  if (kernel_.state().OfFunction(id) == nullptr) {
    sysfs_.Remove(DirectoryOf(id) + "/driver");
  } else {
    kernel_.state().Unbind(*kernel_.state().Function(id));
    kernel_.Sync();
  }
  return {};
}

void FakeControl::Bind(const std::string& vf) {
  FakeFunction& function = *kernel_.state().Function(vf);
  if (refused_.contains(function.vf)) return;
  const auto driver = overrides_.find(vf);
  if (driver != overrides_.end() && driver->second != function.driver.name) {
    sysfs_.Link(DirectoryOf(vf) + "/driver", "/sys/bus/pci/drivers/" + driver->second);
    return;
  }
  if (put_off_) {
    waiting_.push_back(vf);
  } else {
    kernel_.state().Bind(function);
    kernel_.Sync();
  }
}

void FakeControl::BindTo(const std::string& vf, const std::string& driver) {
  FakeFunction& function = *kernel_.state().Function(vf);
  kernel_.state().Unbind(function);
  kernel_.Sync();
  if (driver.empty()) return;
  AddDriver(driver);
  sysfs_.Link(DirectoryOf(vf) + "/driver", "/sys/bus/pci/drivers/" + driver);
}

Result<void> FakeControl::Probe(const PciAddress& function) {
  const std::string id = function.ToString();
  RH_TRY(Begin("Probe", id));
  const auto device = FindPciDevice(sysfs_.root(), function).value();
  // Neither is an error (bus_rescan_devices_helper in drivers/base/bus.c).
  if (device->driver) return {};
  if (!overrides_.contains(id) && !Autoprobe(device->physfn->ToString())) return {};
  Bind(id);
  return {};
}

bool FakeControl::AwaitChange(Deadline deadline) {
  latest_deadline_ = std::max(latest_deadline_, deadline);
  if (waiting_.empty()) return false;
  kernel_.state().Bind(*kernel_.state().Function(waiting_.front()));
  kernel_.Sync();
  waiting_.erase(waiting_.begin());
  return true;
}

}  // namespace railhead::testing
