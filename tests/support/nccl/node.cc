#include "tests/support/nccl/node.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace railhead::testing {
namespace fs = std::filesystem;
namespace {

// As a kernel prints them, shortened.
constexpr const char* kXeonLines =
    "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n"
    "model name\t: Intel(R) Xeon(R) Platinum 8480C\nstepping\t: 8\n";
constexpr const char* kEpycLines =
    "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n"
    "model name\t: AMD EPYC 9654 96-Core Processor\nstepping\t: 1\n";
constexpr const char* kGraceLines =
    "processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n"
    "CPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0xd4f\n";

const char* LinesOf(Processor processor) {
  switch (processor) {
    case Processor::kXeon:
      return kXeonLines;
    case Processor::kEpyc:
      return kEpycLines;
    case Processor::kGrace:
      break;
  }
  return kGraceLines;
}

struct Gives {
  int vfs = 4;
  int taken = 0;    // which of them the pod has
  int offset = 16;  // as FakeVfs has it
};

// VFs for a PF; one of them for the pod.
void GiveVf(FakeSysfs& sysfs, FakeNode& node, const std::string& pf, const Gives& gives = {}) {
  const std::string number = std::to_string(node.pod.nics.size());
  const auto vfs = sysfs.AddVfs(pf, gives.vfs, {.rdma = "mlx5_" + number + "{n}", .offset = gives.offset});
  const std::string name = "mlx5_" + number + std::to_string(gives.taken);
  node.pod.nics.push_back({name, AddressOf(vfs.at(static_cast<std::size_t>(gives.taken))), std::nullopt});
}

FakeNode FromMachine(FakeSysfs& sysfs, const FakeMachine& machine, const Gives& gives = {}) {
  FakeNode node;
  node.accelerators = machine.accelerators;
  for (const std::string& pf : machine.nics) GiveVf(sysfs, node, pf, gives);
  return node;
}

}  // namespace

PciAddress AddressOf(const std::string& text) {
  const auto address = PciAddress::Parse(text);
  if (!address) std::abort();
  return *address;
}

void Finish(FakeSysfs& sysfs, int numa_nodes, Processor processor) {
  AddProcessors(sysfs, numa_nodes);
  sysfs.Write("/proc/cpuinfo", LinesOf(processor));
  const fs::path devices = sysfs.directory() + "/sys/bus/pci/devices";
  for (const auto& entry : fs::directory_iterator(devices)) {
    std::ofstream(entry.path() / "max_link_speed") << "32.0 GT/s PCIe\n";
    std::ofstream(entry.path() / "max_link_width") << "16\n";
  }
}

FakeNode MakeHgx(FakeSysfs& sysfs) {
  FakeMachine machine = MakeDgxH100(sysfs);
  // Not the four for storage.
  std::erase_if(machine.nics, [](const std::string& nic) {
    return nic.starts_with("0000:29:") || nic.starts_with("0000:aa:");
  });
  FakeNode node = FromMachine(sysfs, machine, {.vfs = 4, .taken = 3});
  Finish(sysfs, 2, Processor::kXeon);
  return node;
}

FakeNode MakePartialHgx(FakeSysfs& sysfs) {
  FakeNode node = MakeHgx(sysfs);
  node.pod.nics = {node.pod.nics[5], node.pod.nics[2]};
  return node;
}

FakeNode MakeA100Pcie(FakeSysfs& sysfs) {
  FakeNode node = FromMachine(sysfs, MakePcieA100(sysfs));
  Finish(sysfs, 2, Processor::kEpyc);
  return node;
}

FakeNode MakeDualPortNode(FakeSysfs& sysfs) {
  const FakeMachine machine = MakeDualPort(sysfs);
  FakeNode node;
  node.accelerators = machine.accelerators;
  // mlx5's: the VFs of the first port, then those of the second.
  for (const std::string& pf : machine.nics) {
    GiveVf(sysfs, node, pf, {.vfs = 4, .offset = pf.ends_with(".0") ? 2 : 5});
  }
  Finish(sysfs, 2, Processor::kEpyc);
  return node;
}

FakeNode MakeNextBus(FakeSysfs& sysfs) {
  FakeNode node = FromMachine(sysfs, MakePcieA100(sysfs), {.vfs = 2, .offset = 256 + 4});
  Finish(sysfs, 2, Processor::kXeon);
  return node;
}

FakeNode MakeGuest(FakeSysfs& sysfs) {
  const FakeMachine machine = MakeVirtualMachine(sysfs);
  FakeNode node;
  node.accelerators = machine.accelerators;
  // A host bridge. QEMU has it at 00.0, the address to which NCCL reduces every NIC's address.
  sysfs.AddAccelerator({.address = "0000:00:00.0",
                        .class_code = "0x060000",
                        .driver = "",
                        .vendor = "0x8086",
                        .device = "0x29c0",
                        .bridges = {"pci0000:00"}});
  for (std::size_t i = 0; i < machine.nics.size(); ++i) {
    node.pod.nics.push_back({"mlx5_" + std::to_string(i), AddressOf(machine.nics[i]), std::nullopt});
  }
  Finish(sysfs, 1, Processor::kXeon);
  return node;
}

FakeNode MakeGrace(FakeSysfs& sysfs) {
  FakeNode node;
  for (int socket = 0; socket < 2; ++socket) {
    const std::string gpu = socket == 0 ? "0009" : "0019";
    const std::string nic = socket == 0 ? "0002" : "0012";
    node.accelerators.push_back(gpu + ":01:00.0");
    sysfs.AddAccelerator({.address = gpu + ":01:00.0",
                          .numa_node = socket,
                          .device = "0x2342",
                          .bridges = {gpu + ":00:00.0"}});
    sysfs.AddPf({.address = nic + ":01:00.0",
                 .netdev = "rail" + std::to_string(socket),
                 .numa_node = socket,
                 .bridges = {nic + ":00:00.0"}});
    GiveVf(sysfs, node, nic + ":01:00.0", {.vfs = 2, .offset = 2});
  }
  Finish(sysfs, 2, Processor::kGrace);
  return node;
}

FakeNode MakeRateLimited(FakeSysfs& sysfs) {
  FakeNode node = MakeNextBus(sysfs);
  for (nccl::TopologyFileNic& nic : node.pod.nics) nic.rate_mbps = 100000;
  return node;
}

const std::vector<FakeNodeKind>& AllNodes() {
  static const std::vector<FakeNodeKind> nodes = {
      {"hgx", MakeHgx},
      {"hgx_partial", MakePartialHgx},
      {"a100_pcie", MakeA100Pcie},
      {"dual_port", MakeDualPortNode},
      {"next_bus", MakeNextBus},
      {"guest", MakeGuest},
      {"grace", MakeGrace},
      {"rate_limited", MakeRateLimited},
  };
  return nodes;
}

}  // namespace railhead::testing
