// Reads what the checks judge, once, and quickly: of VFs only which there are.
//
// Everything comes from files below `root` but for what only the kernel's sockets tell; those are
// asked through KernelQuestions. What cannot be had is a Fact that says why.
// Threads: one. Errors: none; they are in the facts.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/tools/doctor/facts.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead::doctor {

struct KernelQuestions {
  std::function<Result<std::optional<DcbState>>(const std::string& netdev)> dcb;
  std::function<Result<std::vector<std::string>>()> rdma_order;
  std::function<Result<std::vector<VfState>>(const std::string& pf)> vfs;
  // devlink's versions of a PCI function
  std::function<Result<std::map<std::string, std::string>>(const std::string& address)> versions;
};

// This machine's, in the calling thread's network namespace; below a root of its own nothing is
// asked, since the devices there are not this machine's.
KernelQuestions QuestionsFor(const Root& root);

NodeFacts ReadFacts(const Root& root, const KernelQuestions& kernel);

// The parts of it.
void ReadPfs(const Root& root, const KernelQuestions& kernel, NodeFacts* facts);
void ReadPci(const Root& root, NodeFacts* facts);
void ReadRdma(const Root& root, const KernelQuestions& kernel, NodeFacts* facts);
void ReadProcesses(const Root& root, NodeFacts* facts);
void ReadGpuDriver(const Root& root, NodeFacts* facts);
void ReadRuntime(const Root& root, NodeFacts* facts);
Fact<KubeletFacts> ReadKubelet(const Root& root);
// What containerd's and CRI-O's configurations say of CDI (containerd's docs/cri/config.md, crio.conf(5)).
// `running`: names of the container runtimes that were seen among the processes.
Fact<CdiSwitch> ReadCdiSwitch(const Root& root, const std::vector<std::string>& running);
Fact<std::vector<std::string>> ReadHiddenDirectories(const Root& root);

// Bridges between two functions, those that they share left out; paths as in PciDevice::path.
std::vector<PciAddress> BridgesBetween(const std::string& a, const std::string& b);

// What the IOMMU does to a function: the type of its group, or "off".
Fact<std::string> IommuOf(const Root& root, const PciAddress& address);

}  // namespace railhead::doctor
