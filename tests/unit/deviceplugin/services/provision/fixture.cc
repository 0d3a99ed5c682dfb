#include "tests/unit/deviceplugin/services/provision/fixture.h"

#include <nlohmann/json.hpp>

#include "cni/state/journal.h"
#include "netns/base/files.h"
#include "netns/sys/pci.h"

namespace railhead::testing {

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
  return function->state->mac.ToString();
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
  AttachedLink link;
  link.device = vf;
  link.pod_name = "net1";
  if (const FakeNetdev* netdev = NetdevOf(vf); netdev != nullptr) link.host_mac = netdev->link.mac;
  entry.links = {link};
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
