// Files of a node with two rails for `railctl doctor`: a GPU and a NIC on one switch each.
#pragma once

#include <filesystem>
#include <string>

#include "tests/support/sysfs/fake_sysfs.h"

namespace railhead::testing {

inline constexpr const char* kDoctorFabric = R"({
  "version": 1, "rdmaMode": "shared",
  "rails": [
    {"name": "rail0", "pf": "pf0", "mtu": 9000, "trafficClass": 106},
    {"name": "rail1", "pf": "pf1", "mtu": 9000, "trafficClass": 106} ] })";

// A configuration space whose only extended capability is ACS with this control register.
inline std::string AcsConfig(char control) {
  std::string config(4096, '\0');
  config[0x100] = 0x0d;
  config[0x102] = 1;
  config[0x106] = control;
  return config;
}

inline void MakeDoctorNode(FakeSysfs& sysfs, int vfs = 2) {
  for (const int number : {0, 1}) {
    const std::string n = std::to_string(number);
    const std::string bus = number == 0 ? "4" : "8";
    const std::vector<std::string> above = {"0000:" + bus + "0:01.0", "0000:" + bus + "1:00.0"};
    auto to_nic = above;
    to_nic.push_back("0000:" + bus + "2:00.0");
    auto to_gpu = above;
    to_gpu.push_back("0000:" + bus + "2:04.0");
    const std::string pf = "0000:" + bus + "3:00.0";
    sysfs.AddPf(
        {.address = pf, .netdev = "pf" + n, .rdma = "mlx5_" + n, .total_vfs = 128, .bridges = to_nic});
    sysfs.AddAccelerator({.address = "0000:" + bus + "7:00.0", .bridges = to_gpu});
    sysfs.AddVfs(pf, vfs, {.rdma = "mlx5_" + n + "v{n}"});
    sysfs.Write("/proc/sys/kernel/osrelease", "6.1.0-44-amd64\n");
    sysfs.Write("/sys/class/net/pf" + n + "/mtu", "9000\n");
    sysfs.Write("/sys/class/infiniband/mlx5_" + n + "/fw_ver", "28.41.1000\n");
    sysfs.AddGid("mlx5_" + n, 0, "fe80:0000:0000:0000:0000:0000:0000:0001", "IB/RoCE v1", "pf" + n);
    sysfs.AddGid("mlx5_" + n, 1, "fe80:0000:0000:0000:0000:0000:0000:0001", "RoCE v2", "pf" + n);
    for (const std::string& of : {std::string("all"), "pf" + n}) {
      const std::string directory = "/proc/sys/net/ipv4/conf/" + of + "/";
      sysfs.Write(directory + "rp_filter", "0\n");
      sysfs.Write(directory + "arp_ignore", of == "all" ? "0\n" : "1\n");
      sysfs.Write(directory + "arp_announce", "2\n");
    }
    for (const char* side : {"roce_rp", "roce_np"}) {
      for (int priority = 0; priority < 8; ++priority)
        sysfs.Write("/sys/class/net/pf" + n + "/ecn/" + side + "/enable/" + std::to_string(priority), "1\n");
    }
  }
  sysfs.Write("/etc/railhead/fabric.json", kDoctorFabric);
  sysfs.Write("/etc/railhead/node-name", "node0\n");
  sysfs.Write("/sys/module/ib_core/parameters/netns_mode", "Y\n");
  sysfs.Write("/sys/class/misc/rdma_cm/dev", "10:58\n");
  sysfs.Write("/sys/module/nvidia/version", "550.54\n");
  sysfs.Write("/sys/module/nvidia_peermem/version", "550.54\n");
  sysfs.Write("/proc/4711/comm", "containerd\n");
  sysfs.Write("/proc/4711/limits",
              "Limit                     Soft Limit           Hard Limit           Units\n"
              "Max locked memory         unlimited            unlimited            bytes\n"
              "Max address space         unlimited            unlimited            bytes\n");
  for (const char* pid : {"self", "4711"}) {
    std::filesystem::create_directories(sysfs.directory() + "/proc/" + pid + "/ns");
    std::filesystem::create_symlink("net:[4026531840]", sysfs.directory() + "/proc/" + pid + "/ns/net");
    std::filesystem::create_symlink("pid:[4026531836]", sysfs.directory() + "/proc/" + pid + "/ns/pid");
  }
  std::filesystem::create_directories(sysfs.directory() + "/run/systemd/system");
  sysfs.Write("/etc/containerd/config.toml", "version = 3\n");
  sysfs.Write("/etc/cni/net.d/10-calico.conflist", R"({"name": "k8s", "plugins": [{"type": "calico"}]})");
  sysfs.Write("/var/lib/kubelet/device-plugins/kubelet.sock", "");
  std::filesystem::create_directories(sysfs.directory() + "/var/lib/kubelet/pods/uid");
  sysfs.Write("/proc/4712/comm", "kubelet\n");
  sysfs.Write("/proc/4712/cmdline", std::string("/usr/bin/kubelet\0--v=2\0", 23));
  sysfs.Write("/proc/4713/comm", "railheadd\n");
  std::filesystem::create_symlink("/usr/bin/railheadd", sysfs.directory() + "/proc/4713/exe");
  sysfs.Write("/usr/bin/railhead-nvml", "");
  for (const char* pid : {"4712", "4713"})
    std::filesystem::create_symlink(sysfs.directory(), sysfs.directory() + "/proc/" + pid + "/root");
}

}  // namespace railhead::testing
