// Nodes for tests of NCCL's topology file: machines of tests/support/sysfs/machines.h with processors and
// link speeds. A few more have properties that only NCCL has trouble with.
// Threads: as FakeSysfs.
#pragma once

#include <string>
#include <vector>

#include "cni/nccl/topology_file.h"
#include "tests/support/sysfs/fake_sysfs.h"
#include "tests/support/sysfs/machines.h"

namespace railhead::testing {

// The processors whose /proc/cpuinfo can be written.
enum class Processor { kXeon, kEpyc, kGrace };

// Writes the kernel's files about processors and about the links of all functions. Call it last.
void Finish(FakeSysfs& sysfs, int numa_nodes, Processor processor);

PciAddress AddressOf(const std::string& text);

// A node and a pod on it.
struct FakeNode {
  std::vector<std::string> accelerators;
  nccl::TopologyRequest pod;
};

// Each with VFs on all NICs; the pod has one of each PF, unless the name says otherwise.
FakeNode MakeHgx(FakeSysfs& sysfs);         // 8 GPUs, 8 rails; the last of 4 VFs
FakeNode MakePartialHgx(FakeSysfs& sysfs);  // the pod has rails 2 and 5
FakeNode MakeA100Pcie(FakeSysfs& sysfs);
FakeNode MakeDualPortNode(FakeSysfs& sysfs);  // VFs of both PFs of each NIC
FakeNode MakeNextBus(FakeSysfs& sysfs);       // VFs are on the bus after their PF's
FakeNode MakeGuest(FakeSysfs& sysfs);         // all on the root bus, no NUMA nodes
FakeNode MakeGrace(FakeSysfs& sysfs);         // ARM; each GPU and NIC in a domain of its own
FakeNode MakeRateLimited(FakeSysfs& sysfs);   // as MakeNextBus, 100 Gbit/s each

struct FakeNodeKind {
  const char* name;
  FakeNode (*make)(FakeSysfs&);
};
const std::vector<FakeNodeKind>& AllNodes();

}  // namespace railhead::testing
