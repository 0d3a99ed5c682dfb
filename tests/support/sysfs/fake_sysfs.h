// A sysfs tree of SR-IOV NICs in a temporary directory.
//
//   FakeSysfs sysfs;
//   sysfs.AddPf({.address = "0000:43:00.0", .netdev = "pf0", .rdma = "mlx5_0", .numa_node = 1});
//   sysfs.AddVfs("0000:43:00.0", 8);
//   FindPciDevice(sysfs.root(), ...);
//
// The layout is the kernel's (checked against Linux 6.1 and 7.x). Devices are below
// /sys/devices/pciDDDD:BB/..., and VFs are siblings of their PF. /sys/bus/pci/devices, /sys/class/net and
// /sys/class/infiniband hold relative links. Tests add anything else with Write() and Link(). The tree is
// removed with the object. A failure to build it ends the test program: nothing can be tested then. Threads:
// not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "netns/base/root.h"

namespace railhead::testing {

struct FakePf {
  std::string address;    // "0000:43:00.0"
  std::string netdev;     // "" for none
  std::string rdma = {};  // RDMA device's name, "" for none
  int numa_node = -1;
  int total_vfs = 64;  // 0: no SR-IOV
  std::string driver = "mlx5_core";
  std::string vendor = "0x15b3";
  std::string device = "0x1021";
  // Bridges above it, from the host bridge down; default: one root port. The first may
  // be the host bridge itself, "pci0000:00"; alone: the function is on the root bus.
  std::vector<std::string> bridges = {};
};

struct FakeVfs {
  // "{pf}" and "{n}" are replaced. An empty name: the VFs have no such device.
  std::string netdev = "{pf}v{n}";
  std::string rdma = {};
  std::string driver = "mlx5_core";  // "": unbound
  std::string device = "0x101e";
  int offset = 16;  // routing id of VF 0 behind the PF's, as the SR-IOV capability has it
};

// A GPU or its like.
struct FakeAccelerator {
  std::string address;
  int numa_node = -1;
  std::string class_code = "0x030200";  // a 3D controller
  std::string driver = "nvidia";
  std::string vendor = "0x10de";
  std::string device = "0x2330";
  std::vector<std::string> bridges = {};  // as FakePf has them
  // What NVIDIA's driver shows below /proc/driver/nvidia/gpus; "": nothing.
  std::string uuid = {};
  int minor = 0;
};

class FakeSysfs {
 public:
  FakeSysfs();
  // Builds below an existing directory, which stays after the object's end.
  explicit FakeSysfs(std::string directory);
  FakeSysfs(const FakeSysfs&) = delete;
  FakeSysfs& operator=(const FakeSysfs&) = delete;
  ~FakeSysfs();

  [[nodiscard]] Root root() const { return Root(directory_); }
  [[nodiscard]] const std::string& directory() const { return directory_; }

  void AddPf(const FakePf& pf);
  void AddAccelerator(const FakeAccelerator& accelerator);
  // Gives `pf` its VFs, all at once as sriov_numvfs does; returns their addresses.
  std::vector<std::string> AddVfs(const std::string& pf, int count, const FakeVfs& vfs = {});

  // Shows the host's sysfs after the function's network devices went into a pod. RDMA devices stay, as in
  // shared mode.
  void MoveToPod(const std::string& address);
  // Unbinds the function from its driver, which also removes its devices.
  void Unbind(const std::string& address);

  // A network device that is not on PCI: bond, bridge, VLAN, veth.
  void AddVirtualNetdev(const std::string& netdev);
  // `upper` is stacked on `lower`; both exist.
  void AddUpper(const std::string& lower, const std::string& upper);
  // A soft RoCE device on a network device.
  void AddRxe(const std::string& ibdev, const std::string& netdev);
  // Fills one slot of a GID table. `type` as in gid_attrs: "RoCE v2", "IB/RoCE v1".
  void AddGid(const std::string& ibdev, int index, const std::string& gid, const std::string& type,
              const std::string& ndev, int port = 1);

  // Any file or link; `path` is absolute as in production ("/sys/..."). Makes missing directories and
  // replaces existing files.
  void Write(const std::string& path, std::string_view content);
  void Link(const std::string& path, const std::string& target);
  void Remove(const std::string& path);

 private:
  struct Function {
    std::string address;
    std::string path;  // "/sys/devices/..."
    std::string vendor;
    std::string device;
    int numa_node = -1;
    std::string class_code = "0x020000";
  };
  // Makes the missing bridges. Returns the path below the last bridge.
  std::string AddBridges(const std::string& address, const std::vector<std::string>& bridges, int numa_node);
  void WriteBridgeBuses(const std::string& path, std::uint8_t primary, std::uint8_t secondary,
                        std::uint8_t subordinate);
  void AddFunction(const Function& function, const std::string& driver);
  void AddNetdev(const std::string& device_path, const std::string& netdev);
  void AddRdma(const std::string& device_path, const std::string& ibdev);
  void WriteRdmaPort(const std::string& path);
  [[nodiscard]] std::string DevicePath(const std::string& address) const;

  std::string directory_;
  bool owned_ = true;
  int next_ifindex_ = 2;
  int next_uverbs_ = 0;
};

}  // namespace railhead::testing
