#include "bench/doctor_tree.h"

#include <filesystem>
#include <vector>

#include "netns/base/files.h"
#include "netns/sys/pci.h"
#include "tests/support/sysfs/fake_sysfs.h"

namespace railhead::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kPriorities = 8;
constexpr const char* kDevices = "/sys/bus/pci/devices/";

// A configuration space with one extended capability, of which the word at `offset` is `value`.
std::string ConfigWith(char capability, std::size_t offset, char value) {
  constexpr std::size_t kFirst = 0x100;
  std::string config(4096, '\0');
  config[kFirst] = capability;
  config[kFirst + 2] = 1;  // its version; no next one
  config[kFirst + offset] = value;
  return config;
}

void AddPf(testing::FakeSysfs& sysfs, const PciAddress& pf, const std::string& number) {
  const std::string netdev = "rail" + number;
  const std::string rdma = "mlx5_" + number;
  sysfs.Write(kDevices + pf.ToString() + "/config", ConfigWith(0x10, 8, 0x19));  // SR-IOV, with ARI
  sysfs.Write("/sys/class/net/" + netdev + "/mtu", "9000\n");
  sysfs.Write("/sys/class/infiniband/" + rdma + "/fw_ver", "28.41.1000\n");
  std::vector<std::string> devices = {rdma};
  if (const auto vfs = VfsOf(sysfs.root(), pf); vfs && !vfs->empty()) {
    const auto of_vf = RdmaDevicesOf(sysfs.root(), vfs->front());
    if (of_vf) devices.insert(devices.end(), of_vf->begin(), of_vf->end());
  }
  for (const std::string& device : devices) {
    const std::string gid = "fe80:0000:0000:0000:0000:0000:0000:0001";
    sysfs.AddGid(device, 0, gid, "IB/RoCE v1", netdev);
    sysfs.AddGid(device, 1, gid, "RoCE v2", netdev);
  }
  for (const std::string& of : {std::string("all"), netdev}) {
    const std::string directory = "/proc/sys/net/ipv4/conf/" + of + "/";
    for (const char* name : {"rp_filter", "arp_ignore", "arp_announce"}) sysfs.Write(directory + name, "2\n");
  }
  for (const char* side : {"roce_rp", "roce_np"}) {
    const std::string directory = "/sys/class/net/" + netdev + "/ecn/" + side + "/enable/";
    for (int priority = 0; priority < kPriorities; ++priority)
      sysfs.Write(directory + std::to_string(priority), "1\n");
  }
}

// Groups of PFs and accelerators, ACS of bridges; VFs are as they are.
void AddPci(testing::FakeSysfs& sysfs) {
  int groups = 0;
  for (const auto& entry : fs::directory_iterator(sysfs.directory() + kDevices)) {
    const std::string address = entry.path().filename();
    if (fs::exists(entry.path() / "physfn")) continue;
    const auto class_code = ReadAttribute(entry.path() / "class");
    if (class_code && (*class_code).value_or("").starts_with("0x0604")) {
      sysfs.Write(kDevices + address + "/config", ConfigWith(0x0d, 6, 0x01));
      continue;
    }
    const std::string group = "/sys/kernel/iommu_groups/" + std::to_string(groups++);
    sysfs.Write(group + "/type", "identity\n");
    sysfs.Link(kDevices + address + "/iommu_group", group);
  }
}

void AddProcess(testing::FakeSysfs& sysfs, const std::string& pid, const std::string& name) {
  const std::string directory = sysfs.directory() + "/proc/" + pid;
  fs::create_directories(directory + "/ns");
  fs::create_symlink("net:[4026531840]", directory + "/ns/net");
  fs::create_symlink("pid:[4026531836]", directory + "/ns/pid");
  sysfs.Write("/proc/" + pid + "/comm", name + "\n");
}

}  // namespace

void AddFactsForDoctor(const std::string& directory) {
  testing::FakeSysfs sysfs(directory);
  AddPci(sysfs);
  int number = 0;
  const auto pfs = ListRailPfs(sysfs.root()).value_or(std::vector<PciDevice>{});
  for (const PciDevice& pf : pfs) AddPf(sysfs, pf.address, std::to_string(number++));
  AddProcess(sysfs, "self", "railctl");
  for (int i = 1; i < kNodeProcesses; ++i) AddProcess(sysfs, std::to_string(i), "training");
  AddProcess(sysfs, std::to_string(kNodeProcesses), "containerd");
  sysfs.Write("/proc/" + std::to_string(kNodeProcesses) + "/limits",
              "Max locked memory         unlimited            unlimited            bytes\n");
  sysfs.Write("/sys/module/ib_core/parameters/netns_mode", "Y\n");
  sysfs.Write("/sys/class/misc/rdma_cm/dev", "10:58\n");
  sysfs.Write("/sys/module/nvidia/version", "550.54\n");
  sysfs.Write("/sys/module/nvidia_peermem/version", "550.54\n");
  sysfs.Write("/etc/containerd/config.toml", "version = 3\n");
  sysfs.Write("/etc/cni/net.d/10-calico.conflist", R"({"name": "k8s", "plugins": [{"type": "calico"}]})");
  sysfs.Write("/var/lib/kubelet/device-plugins/kubelet.sock", "");
}

}  // namespace railhead::bench
