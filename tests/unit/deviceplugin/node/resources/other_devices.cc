#include "tests/unit/deviceplugin/node/resources/other_devices.h"

#include <filesystem>

namespace railhead::testing {
namespace fs = std::filesystem;
namespace {

std::string PciPath(const std::string& address) {
  return "/sys/bus/pci/devices/" + address;
}

// "/sys/devices/pci0000:40/.../0000:43:00.0"
std::string RealPath(const FakeSysfs& sysfs, const std::string& address) {
  const std::string path = fs::canonical(sysfs.directory() + PciPath(address));
  return path.substr(fs::canonical(sysfs.directory()).string().size());
}

}  // namespace

void BindToUserSpace(FakeSysfs& sysfs, const std::string& address, const std::string& driver,
                     const std::string& group) {
  sysfs.Unbind(address);
  const std::string path = RealPath(sysfs, address);
  const std::string driver_path = "/sys/bus/pci/drivers/" + driver;
  sysfs.Write(driver_path + "/bind", "");
  sysfs.Link(path + "/driver", driver_path);
  if (driver == "vfio-pci") {
    sysfs.Write("/sys/kernel/iommu_groups/" + group + "/type", "DMA\n");
    sysfs.Link(path + "/iommu_group", "/sys/kernel/iommu_groups/" + group);
  } else {
    sysfs.Write(path + "/uio/uio3/name", driver + "\n");
  }
}

void AddAcceleratorFunction(FakeSysfs& sysfs, const std::string& address, const std::string& driver) {
  sysfs.AddPf({.address = address,
               .netdev = "",
               .total_vfs = 0,
               .driver = driver,
               .vendor = "0x8086",
               .device = "0x0d5c"});
  sysfs.Write(PciPath(address) + "/class", "0x120000\n");
}

void AddSubfunction(FakeSysfs& sysfs, const std::string& pf, const std::string& name, int sfnum,
                    const std::string& netdev, const std::string& rdma) {
  const std::string path = RealPath(sysfs, pf) + "/" + name;
  sysfs.Write(path + "/sfnum", std::to_string(sfnum) + "\n");
  sysfs.Link("/sys/bus/auxiliary/devices/" + name, path);
  if (!netdev.empty()) {
    sysfs.Write(path + "/net/" + netdev + "/type", "1\n");
    sysfs.Link("/sys/class/net/" + netdev, path + "/net/" + netdev);
  }
  if (!rdma.empty()) {
    sysfs.Write(path + "/infiniband/" + rdma + "/ports/1/link_layer", "Ethernet\n");
    sysfs.Link("/sys/class/infiniband/" + rdma, path + "/infiniband/" + rdma);
    sysfs.Write(path + "/infiniband_verbs/uverbs77/ibdev", rdma + "\n");
    sysfs.Link("/sys/class/infiniband_verbs/uverbs77", path + "/infiniband_verbs/uverbs77");
  }
}

void BindSubfunction(FakeSysfs& sysfs, const std::string& pf, const std::string& name) {
  const std::string driver = "/sys/bus/auxiliary/drivers/mlx5_core.sf";
  sysfs.Write(driver + "/bind", "");
  sysfs.Link(RealPath(sysfs, pf) + "/" + name + "/driver", driver);
}

void AddVdpa(FakeSysfs& sysfs, const std::string& address, const std::string& name,
             const std::string& driver) {
  const std::string path = RealPath(sysfs, address) + "/" + name;
  sysfs.Write("/sys/bus/vdpa/drivers/" + driver + "/bind", "");
  sysfs.Link(path + "/driver", "/sys/bus/vdpa/drivers/" + driver);
  if (driver == "vhost_vdpa") sysfs.Write(path + "/vhost-vdpa-5/dev", "511:5\n");
  sysfs.Link("/sys/bus/vdpa/devices/" + name, path);
}

void MakeInfiniBand(FakeSysfs& sysfs, const std::string& address, const std::string& pkey) {
  const std::string path = RealPath(sysfs, address);
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(sysfs.directory() + path + "/infiniband", none)) {
    const std::string port = path + "/infiniband/" + entry.path().filename().string() + "/ports/1";
    sysfs.Write(port + "/link_layer", "InfiniBand\n");
    sysfs.Write(port + "/pkeys/0", pkey + "\n");
  }
  for (const auto& entry : fs::directory_iterator(sysfs.directory() + path + "/net", none)) {
    sysfs.Write(path + "/net/" + entry.path().filename().string() + "/type", "32\n");
  }
}

}  // namespace railhead::testing
