// Sysfs trees of real machines: where GPUs and NICs sit on servers as they are sold.
//
//   FakeSysfs sysfs;
//   const FakeMachine machine = MakeDgxH100(sysfs);
//   sysfs.AddVfs(machine.nics[0], 8);
//
// Bus numbers, bridges and NUMA nodes follow published listings (lspci -t, nvidia-smi topo -m). Tests depend
// on the bridges that two functions share. NICs have no VFs yet. Network devices are called "rail0", "rail1",
// ... by position in `nics`, RDMA devices mlx5_0, ...
// Threads: as FakeSysfs.
#pragma once

#include <string>
#include <vector>

#include "tests/support/sysfs/fake_sysfs.h"

namespace railhead::testing {

struct FakeMachine {
  std::string name;
  int numa_nodes = 1;
  std::vector<std::string> accelerators;  // in PCI order
  std::vector<std::string> nics;          // PFs in PCI order
};

// Two sockets, 8 H100. Each GPU is below a switch with a ConnectX-7, one switch further down;
// each of these trees has a host bridge of its own. Two more NICs, for storage, with two
// ports each. nvidia-smi: a GPU and its NIC PXB, others NODE or SYS.
FakeMachine MakeDgxH100(FakeSysfs& sysfs);
// Two sockets, 8 A100 for PCIe: 4 switches with two GPUs and a ConnectX-6 each; two switches
// on a host bridge. PIX, PHB, SYS.
FakeMachine MakePcieA100(FakeSysfs& sysfs);
// Two sockets, a GPU each, one NIC with two ports on each socket; no switch.
FakeMachine MakeDualPort(FakeSysfs& sysfs);
// One socket, two E810 ports, and a GPU on another host bridge. It also has two graphics controllers that do
// not count as accelerators: Intel's integrated one and the management chip's.
FakeMachine MakeE810(FakeSysfs& sysfs);
// A GPU and a BlueField-3 on one switch; the BlueField has a switch inside. PXB.
FakeMachine MakeBlueField3(FakeSysfs& sysfs);
// ARM: a PCI domain per root port, one NUMA node, which the firmware does not mention (-1).
FakeMachine MakeArm(FakeSysfs& sysfs);
// A virtual machine with GPUs and VFs passed through: everything on the root bus.
FakeMachine MakeVirtualMachine(FakeSysfs& sysfs);

struct MachineKind {
  const char* name;
  FakeMachine (*make)(FakeSysfs&);
};
const std::vector<MachineKind>& AllMachines();

// Processors and memory for programs that want a whole machine (hwloc): four processors on each
// NUMA node, and each PCI function's local ones. Call it last.
void AddProcessors(FakeSysfs& sysfs, int numa_nodes);

}  // namespace railhead::testing
