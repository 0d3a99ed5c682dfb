// Reads the facts for the checks, once, and quickly: of VFs it reads only which exist.
//
// Facts come from files below `root`. KernelQuestions asks the kernel's sockets for those that no file has. A
// Fact that cannot be read states the reason.
// Threads: one. Errors: none; they are in the facts.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/tools/doctor/facts.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/nl/dcb.h"
#include "netns/sys/pci_address.h"

namespace railhead::doctor {

struct KernelQuestions {
  std::function<Result<std::optional<DcbState>>(const std::string& netdev)> dcb;
  std::function<Result<std::vector<std::string>>()> rdma_order;
  std::function<Result<std::map<int, VfSettings>>(const std::string& pf)> vfs;
  // devlink's versions of a PCI function
  std::function<Result<std::map<std::string, std::string>>(const std::string& address)> versions;
};

// The questions to this machine, in the calling thread's network namespace. Below a test root it asks
// nothing: the devices there are not this machine's.
KernelQuestions QuestionsFor(const Root& root);

NodeFacts ReadFacts(const Root& root, const KernelQuestions& kernel);

// The steps of ReadFacts().
void ReadPfs(const Root& root, const KernelQuestions& kernel, NodeFacts* facts);
void ReadPci(const Root& root, NodeFacts* facts);
void ReadRdma(const Root& root, const KernelQuestions& kernel, NodeFacts* facts);
void ReadProcesses(const Root& root, NodeFacts* facts);
// Among `pods`, as in RecordFacts.
Fact<std::set<std::string>> ReadNetAdmins(const Root& root, const std::map<std::string, std::string>& pods);
void ReadGpuDriver(const Root& root, NodeFacts* facts);
void ReadRuntime(const Root& root, NodeFacts* facts);
Fact<std::vector<CniUse>> ReadCni(const Root& root);
// One error for each file or folder to correct.
Fact<std::vector<Error>> ReadOpenFiles(const Root& root);
// Of the devices of `pfs`.
Fact<std::vector<ManagedDevice>> ReadManaged(const Root& root, const std::vector<PfFacts>& pfs);
Fact<KubeletFacts> ReadKubelet(const Root& root);
void ReadSelinux(const Root& root, NodeFacts* facts);
// Reads the CDI settings of containerd and CRI-O (containerd's docs/cri/config.md, crio.conf(5)). `running`:
// names of the container runtimes that were seen among the processes.
Fact<CdiSwitch> ReadCdiSwitch(const Root& root, const std::vector<std::string>& running);
Fact<std::vector<std::string>> ReadHiddenDirectories(const Root& root);

// The rails' routes that take the traffic of a network of the cluster: the pod's cluster interface has only
// its default route there, which is less specific. `cluster`: the node's CNI configurations. Each error has a
// JSON pointer.
std::vector<Error> RoutesOverCluster(const Fabric& fabric, const std::vector<CniUse>& cluster);

// The bridges between two functions, without those that they share. Paths are as in PciDevice::path.
std::vector<PciAddress> BridgesBetween(const std::string& a, const std::string& b);

// The IOMMU's setting for a function: the type of its group, or "off".
Fact<std::string> IommuOf(const Root& root, const PciAddress& address);

}  // namespace railhead::doctor
