#include "tests/unit/deviceplugin/services/provision/fixture.h"

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "cni/state/journal.h"
#include "deviceplugin/services/provision/provision_settings.h"
#include "netns/base/files.h"
#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"

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
    made.state = VfSettings{.mac = MacAddress{}};
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

void ProvisionFixture::SetUp() {
  sysfs_.Write("/proc/sys/kernel/random/boot_id", "11111111-2222\n");
  for (const auto& [pf, netdev] : {std::pair(kPf0, "pf0"), std::pair(kPf1, "pf1")}) {
    (void)kernel_.AddPf({.address = pf, .netdev = netdev});
    control_.AddPf(pf);
  }
  control_.AddDriver("mlx5_core");
  control_.AddDriver("vfio-pci");
}

provision::Provision ProvisionFixture::Of(const std::string& provision) {
  auto fabric = ParseFabric(R"({"version": 1, "rails": [{"name": "rail0", "pf": "pf0"},
                                {"name": "rail1", "pf": ")" +
                                std::string(kPf1) + R"(", "mtu": 4200}], "provision": )" + provision + "}",
                            "fabric.json");
  EXPECT_TRUE(fabric) << Describe(fabric.error());
  auto settings = provision::ReadProvisionSettings(*fabric, "fabric.json");
  EXPECT_TRUE(settings && *settings) << provision;
  return {*std::move(fabric), **std::move(settings)};
}

provision::VfsPlan ProvisionFixture::Plan(const std::string& provision) {
  auto plan = PlanVfs(root_, kernel_, Of(provision));
  EXPECT_TRUE(plan) << Describe(plan.error());
  return plan.value_or(provision::VfsPlan{});
}

provision::VfsOutcome ProvisionFixture::Apply(const std::string& provision) {
  auto outcome = ApplyVfs(root_, kernel_, control_, Of(provision));
  EXPECT_TRUE(outcome) << Describe(outcome.error());
  return outcome.value_or(provision::VfsOutcome{});
}

provision::PfOutcome ProvisionFixture::Apply0(const std::string& provision) {
  auto outcome = ApplyVfs(root_, kernel_, control_, Of(provision), "rail0");
  EXPECT_TRUE(outcome) << Describe(outcome.error());
  EXPECT_EQ(outcome->pfs.size(), 1U);
  return outcome->pfs.at(0);
}

std::vector<std::string> ProvisionFixture::VfsOf(const std::string& pf) const {
  const auto addresses = railhead::VfsOf(root_, *PciAddress::Parse(pf)).value();
  std::vector<std::string> vfs;
  vfs.reserve(addresses.size());
  for (const PciAddress& vf : addresses) vfs.push_back(vf.ToString());
  return vfs;
}

std::string ProvisionFixture::AdminMac(const std::string& pf, int vf) {
  const auto vfs = VfsOf(pf);
  const FakeFunction* function = kernel_.state().Function(vfs.at(static_cast<std::size_t>(vf)));
  return MacOf(*function->state).ToString();
}

std::string ProvisionFixture::DriverOf(const std::string& bdf) const {
  return FindPciDevice(root_, *PciAddress::Parse(bdf)).value()->driver.value_or("");
}

std::string ProvisionFixture::Autoprobe(const std::string& pf) const {
  return ReadAttribute(root_.Path("/sys/bus/pci/devices/") + pf + "/sriov_drivers_autoprobe")
      .value()
      .value_or("");
}

std::string ProvisionFixture::File(const std::string& path) const {
  return ReadFile(root_.Path(path)).value().value_or("(none)");
}

void ProvisionFixture::Attach(const std::string& vf, const std::string& pod) {
  JournalEntry entry;
  entry.key = {"rails", "c0ffee", "net1"};
  entry.boot_id = "11111111-2222";
  entry.phase = Phase::kDone;
  entry.netns = "/run/netns/gone";
  entry.cni_args = {{"K8S_POD_NAMESPACE", "team"}, {"K8S_POD_NAME", pod}};
  AttachedDevice link;
  link.device = vf;
  link.pod_name = "net1";
  if (const FakeNetdev* netdev = NetdevOf(vf); netdev != nullptr) link.before.mac = netdev->link.mac;
  entry.devices = {link};
  const auto written = Journal(root_).Write(entry);
  EXPECT_TRUE(written) << Describe(written.error());
}

void ProvisionFixture::GiveOut(const std::string& vf, const std::string& uid) {
  sysfs_.Write("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
               nlohmann::json{{"Data",
                               {{"PodDeviceEntries",
                                 {{{"PodUID", uid},
                                   {"ContainerName", "app"},
                                   {"ResourceName", "railhead.io/roce"},
                                   {"DeviceIDs", {{"0", {vf}}}},
                                   {"AllocResp", ""}}}},
                                {"RegisteredDevices", nlohmann::json::object()}}},
                              {"Checksum", 1}}
                   .dump());
}

}  // namespace railhead::testing
