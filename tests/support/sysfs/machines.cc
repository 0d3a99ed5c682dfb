#include "tests/support/sysfs/machines.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace railhead::testing {
namespace {

// "0000:15:01.0"
std::string At(int bus, int device, int function = 0, int domain = 0) {
  char buffer[24];
  (void)std::snprintf(buffer, sizeof buffer, "%04x:%02x:%02x.%d", static_cast<unsigned>(domain),
                      static_cast<unsigned>(bus), static_cast<unsigned>(device), function);
  return buffer;
}

// Adds devices and remembers them.
class Builder {
 public:
  Builder(FakeSysfs& sysfs, std::string name, int numa_nodes) : sysfs_(sysfs) {
    machine_.name = std::move(name);
    machine_.numa_nodes = numa_nodes;
  }

  void Gpu(const std::string& address, int numa_node, std::vector<std::string> bridges,
           FakeAccelerator like = {}) {
    const auto number = static_cast<int>(machine_.accelerators.size());
    like.address = address;
    like.numa_node = numa_node;
    like.bridges = std::move(bridges);
    like.minor = number;
    like.uuid = "GPU-00000000-0000-0000-0000-00000000000" + std::to_string(number);
    sysfs_.AddAccelerator(like);
    machine_.accelerators.push_back(address);
  }

  void Nic(const std::string& address, int numa_node, std::vector<std::string> bridges, FakePf like = {}) {
    const std::string number = std::to_string(machine_.nics.size());
    like.address = address;
    like.netdev = "rail" + number;
    like.rdma = (like.vendor == "0x15b3" ? "mlx5_" : "irdma") + number;
    like.numa_node = numa_node;
    like.bridges = std::move(bridges);
    sysfs_.AddPf(like);
    machine_.nics.push_back(address);
  }

  [[nodiscard]] FakeMachine Done() const { return machine_; }

 private:
  FakeSysfs& sysfs_;
  FakeMachine machine_;
};

std::string First(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Four processors on each node: node 1's are 4-7, its mask is f0.
constexpr int kProcessorsPerNode = 4;

std::string Mask(int first, int count) {
  char buffer[16];
  (void)std::snprintf(buffer, sizeof buffer, "%08x",
                      ((1U << static_cast<unsigned>(count)) - 1) << static_cast<unsigned>(first));
  return std::string(buffer) + "\n";
}

std::string UpTo(int count) {
  return count == 1 ? "0\n" : "0-" + std::to_string(count - 1) + "\n";
}

void AddProcessor(FakeSysfs& sysfs, int number) {
  const std::string path = "/sys/devices/system/cpu/cpu" + std::to_string(number) + "/topology";
  const int node = number / kProcessorsPerNode;
  for (const char* one : {"/core_cpus", "/thread_siblings"}) sysfs.Write(path + one, Mask(number, 1));
  for (const char* package : {"/package_cpus", "/core_siblings"}) {
    sysfs.Write(path + package, Mask(node * kProcessorsPerNode, kProcessorsPerNode));
  }
  sysfs.Write(path + "/core_id", std::to_string(number) + "\n");
  sysfs.Write(path + "/physical_package_id", std::to_string(node) + "\n");
}

}  // namespace

FakeMachine MakeDgxH100(FakeSysfs& sysfs) {
  Builder machine(sysfs, "DGX H100", 2);
  const FakePf cx7{.address = "", .netdev = "", .device = "0x1021"};
  const auto trunk = [](int nic) { return std::vector<std::string>{At(nic - 3, 1), At(nic - 2, 0)}; };
  const auto below = [&](int nic, const std::vector<std::string>& more) {
    auto bridges = trunk(nic);
    bridges.insert(bridges.end(), more.begin(), more.end());
    return bridges;
  };
  for (const int nic : {0x18, 0x29, 0x40, 0x4f, 0x5e, 0x9a, 0xaa, 0xc0, 0xce, 0xdc}) {
    const int node = nic < 0x80 ? 0 : 1;
    machine.Nic(At(nic, 0), node, below(nic, {At(nic - 1, 0)}), cx7);
    if (nic == 0x29 || nic == 0xaa) {
      machine.Nic(At(nic, 0, 1), node, below(nic, {At(nic - 1, 0)}), cx7);
    } else {
      machine.Gpu(At(nic + 3, 0), node, below(nic, {At(nic - 1, 1), At(nic + 1, 0), At(nic + 2, 0)}));
    }
  }
  return machine.Done();
}

FakeMachine MakePcieA100(FakeSysfs& sysfs) {
  Builder machine(sysfs, "PCIe A100", 2);
  for (const int host : {0x20, 0xa0}) {
    for (int n = 0; n < 2; ++n) {
      const int node = host == 0x20 ? 0 : 1;
      const int bus = host + 1 + n * 6;  // the switch's upstream port
      const auto below = [&](int port) {
        return std::vector<std::string>{At(host, 1 + 2 * n, 1), At(bus, 0), At(bus + 1, port)};
      };
      const FakeAccelerator a100{.address = "", .device = "0x20f1"};
      machine.Gpu(At(bus + 2, 0), node, below(0), a100);
      machine.Gpu(At(bus + 3, 0), node, below(4), a100);
      machine.Nic(At(bus + 4, 0), node, below(8), {.address = "", .netdev = "", .device = "0x101b"});
    }
  }
  return machine.Done();
}

FakeMachine MakeDualPort(FakeSysfs& sysfs) {
  Builder machine(sysfs, "dual port", 2);
  const FakePf cx6{.address = "", .netdev = "", .device = "0x101d"};
  machine.Gpu("0000:21:00.0", 0, {"0000:20:01.1"}, {.address = "", .device = "0x26b9"});
  machine.Nic("0000:41:00.0", 0, {"0000:40:01.1"}, cx6);
  machine.Nic("0000:41:00.1", 0, {"0000:40:01.1"}, cx6);
  machine.Gpu("0000:e1:00.0", 1, {"0000:e0:01.1"}, {.address = "", .device = "0x26b9"});
  machine.Nic("0000:e2:00.0", 1, {"0000:e0:03.2"}, cx6);
  machine.Nic("0000:e2:00.1", 1, {"0000:e0:03.2"}, cx6);
  return machine.Done();
}

FakeMachine MakeE810(FakeSysfs& sysfs) {
  Builder machine(sysfs, "E810", 1);
  const FakePf e810{.address = "", .netdev = "", .driver = "ice", .vendor = "0x8086", .device = "0x1592"};
  sysfs.AddAccelerator({.address = "0000:00:02.0",
                        .numa_node = 0,
                        .class_code = "0x030000",
                        .driver = "i915",
                        .vendor = "0x8086",
                        .device = "0x4c8a",
                        .bridges = {"pci0000:00"}});
  sysfs.AddAccelerator({.address = "0000:03:00.0",
                        .numa_node = 0,
                        .class_code = "0x030000",
                        .driver = "ast",
                        .vendor = "0x1a03",
                        .device = "0x2000",
                        .bridges = {"0000:00:1c.4", "0000:02:00.0"}});
  machine.Nic("0000:4b:00.0", 0, {"0000:4a:02.0"}, e810);
  machine.Nic("0000:4b:00.1", 0, {"0000:4a:02.0"}, e810);
  machine.Gpu("0000:65:00.0", 0, {"0000:64:02.0"}, {.address = "", .device = "0x26b5"});
  return machine.Done();
}

FakeMachine MakeBlueField3(FakeSysfs& sysfs) {
  Builder machine(sysfs, "BlueField-3", 1);
  const std::vector<std::string> dpu = {"0000:15:01.0", "0000:16:00.0", "0000:17:00.0", "0000:18:00.0",
                                        "0000:19:00.0"};
  const FakePf bf3{.address = "", .netdev = "", .device = "0xa2dc"};
  machine.Nic("0000:1a:00.0", 0, dpu, bf3);
  machine.Nic("0000:1a:00.1", 0, dpu, bf3);
  machine.Gpu("0000:1b:00.0", 0, {"0000:15:01.0", "0000:16:00.0", "0000:17:01.0"});
  return machine.Done();
}

FakeMachine MakeArm(FakeSysfs& sysfs) {
  Builder machine(sysfs, "ARM", 1);
  machine.Gpu("0002:01:00.0", -1, {"0002:00:01.0"}, {.address = "", .device = "0x20f1"});
  machine.Nic("0004:01:00.0", -1, {"0004:00:01.0"}, {.address = "", .netdev = "", .device = "0x101d"});
  machine.Nic("000d:01:00.0", -1, {"000d:00:01.0"}, {.address = "", .netdev = "", .device = "0x101d"});
  return machine.Done();
}

FakeMachine MakeVirtualMachine(FakeSysfs& sysfs) {
  Builder machine(sysfs, "virtual machine", 1);
  // VFs whose PFs stay with the hypervisor: nothing shows that they are VFs.
  const FakePf vf{.address = "", .netdev = "", .total_vfs = 0, .device = "0x101e"};
  machine.Gpu("0000:00:05.0", -1, {"pci0000:00"});
  machine.Gpu("0000:00:06.0", -1, {"pci0000:00"});
  machine.Nic("0000:00:07.0", -1, {"pci0000:00"}, vf);
  machine.Nic("0000:00:08.0", -1, {"pci0000:00"}, vf);
  return machine.Done();
}

const std::vector<MachineKind>& AllMachines() {
  static const std::vector<MachineKind> machines = {
      {"DgxH100", MakeDgxH100},
      {"PcieA100", MakePcieA100},
      {"DualPort", MakeDualPort},
      {"E810", MakeE810},
      {"BlueField3", MakeBlueField3},
      {"Arm", MakeArm},
      {"VirtualMachine", MakeVirtualMachine},
  };
  return machines;
}

void AddProcessors(FakeSysfs& sysfs, int numa_nodes) {
  const int count = numa_nodes * kProcessorsPerNode;
  for (int number = 0; number < count; ++number) AddProcessor(sysfs, number);
  for (const char* list : {"online", "possible", "present"}) {
    sysfs.Write(std::string("/sys/devices/system/cpu/") + list, UpTo(count));
    sysfs.Write(std::string("/sys/devices/system/node/") + list, UpTo(numa_nodes));
  }
  for (int node = 0; node < numa_nodes; ++node) {
    const std::string path = "/sys/devices/system/node/node" + std::to_string(node);
    const std::string number = std::to_string(node);
    sysfs.Write(path + "/cpumap", Mask(node * kProcessorsPerNode, kProcessorsPerNode));
    sysfs.Write(path + "/meminfo", "Node " + number + " MemTotal: 16777216 kB\n");
    std::string distance = node == 0 ? "10" : "20";
    for (int other = 1; other < numa_nodes; ++other) distance += other == node ? " 10" : " 20";
    sysfs.Write(path + "/distance", distance + "\n");
  }
  const std::string devices = "/sys/bus/pci/devices";
  for (const auto& entry : std::filesystem::directory_iterator(sysfs.directory() + devices)) {
    const std::string name = entry.path().filename();
    const std::string node = First(entry.path() / "numa_node");
    const bool known = !node.empty() && node != "-1";
    const int first = known ? std::stoi(node) * kProcessorsPerNode : 0;
    std::ofstream(entry.path() / "local_cpus") << Mask(first, known ? kProcessorsPerNode : count);
  }
}

}  // namespace railhead::testing
