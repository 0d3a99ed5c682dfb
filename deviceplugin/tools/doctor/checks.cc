#include "deviceplugin/tools/doctor/checks.h"

#include <algorithm>
#include <array>
#include <utility>

namespace railhead::doctor {
namespace {

using enum FactKind;

constexpr std::array kChecks = {
    Check{"fabric.valid",
          "fabric.json is there and right",
          "without it no part of Railhead knows the rails",
          {},
          CheckFabric},
    Check{"fabric.rails",
          "every rail of fabric.json has a PF on this node",
          "a pod that asks for one VF per rail gets two of one rail, or is not scheduled",
          {kPfs},
          CheckRails},
    Check{
        "fabric.cabling",
        "every rail hangs on a switch that fabric.json names for it",
        "a rail in another's place sends through the spines what should stay in its leaf, or reaches nobody",
        {kLeaves},
        CheckCabling},
    Check{"fabric.probes",
          "probes of the rails are signed",
          "else a pod can forge them, and have a healthy rail taken out of use",
          {kProbes},
          CheckProbes},
    Check{"rdma.netns-mode",
          "the RDMA namespace mode is the one that fabric.json states",
          "in shared mode a pod sees the RDMA devices of all others; the two modes cannot be mixed in a "
          "cluster",
          {kRdmaMode, kProcesses, kRecords},
          CheckRdmaMode},
    Check{"rdma.port",
          "the rails' RDMA ports are ACTIVE",
          "NCCL leaves a port that is not ACTIVE out without a word, and trains over TCP",
          {kPorts},
          CheckPorts},
    Check{"rdma.gid-table",
          "the rails' GID tables have RoCE v2 entries, at the same places",
          "NCCL has one GID index for all devices of a process",
          {kGids},
          CheckGids},
    Check{"pci.acs",
          "no bridge between an accelerator and a NIC on one switch redirects peer-to-peer traffic",
          "GPUDirect RDMA then goes up to the root complex and back, or fails",
          {kBridges},
          CheckAcs},
    Check{"pci.iommu",
          "the IOMMU passes the rails' NICs and the accelerators through",
          "translation costs bandwidth, and the kernel switches ACS redirection on with it",
          {kIommu, kAccelerators},
          CheckIommu},
    Check{"gpu.direct",
          "the NICs can read and write GPU memory",
          "without nvidia_peermem or dma-buf NCCL copies through host memory, and has no PXN",
          {kAccelerators, kGpuDriver},
          CheckGpuDirect},
    Check{"net.mtu",
          "the PFs' MTU is enough for their rails, and for RoCE's largest",
          "RoCE uses the largest of 1024, 2048, 4096 bytes that fits into the MTU",
          {kMtu},
          CheckMtu},
    Check{"net.arp",
          "the host answers ARP for a rail on that rail only",
          "with several rails in one host Linux answers on any, and drops what comes back elsewhere",
          {kArp},
          CheckArp},
    Check{"qos.dscp",
          "the ports sort packets by DSCP, and know that of their rail's traffic class",
          "else RoCE travels in the default priority, without PFC",
          {kDcb},
          CheckDscp},
    Check{"qos.pfc",
          "the priority of the rail's traffic class is lossless",
          "RoCE loses much of its bandwidth with few lost packets",
          {kDcb},
          CheckPfc},
    Check{"qos.ets",
          "the priority of the rail's traffic class has bandwidth of its own",
          "a class without bandwidth starves when others send",
          {kDcb},
          CheckEts},
    Check{"qos.ecn",
          "congestion control is on for that priority",
          "without it PFC stops whole links, not the senders that are too fast",
          {kDcb, kEcn},
          CheckEcn},
    Check{"sriov.vfs",
          "the rails' PFs have VFs",
          "a PF without VFs gives nothing to pods",
          {kPfs},
          CheckVfCount},
    Check{"sriov.ari",
          "PFs with more than seven VFs are on ARI-capable ports",
          "else the VFs need further bus numbers, which not every firmware leaves free",
          {kSriovControl},
          CheckAri},
    Check{"sriov.vf-order",
          "RDMA devices are in the order of the VFs",
          "NCCL before 2.29.7 numbers NICs in that order, and ranks of different nodes must agree",
          {kPfs, kRdmaDevices, kRdmaOrder},
          CheckVfOrder},
    Check{"sriov.bandwidth",
          "whether VFs share the bandwidth of their PF",
          "NCCL takes each VF for a whole port",
          {kVfStates},
          CheckBandwidth},
    Check{"node.memlock",
          "container runtimes may lock memory without limit",
          "containers inherit the limit, and ibv_reg_mr fails with ENOMEM beyond it",
          {kProcesses},
          CheckMemlock},
    Check{"node.modules",
          "the kernel modules that RDMA needs are loaded",
          "containers get no device nodes else",
          {kModules, kPfs},
          CheckModules},
    Check{"node.firmware",
          "NICs of one kind have one firmware and driver",
          "ranks wait for the slowest NIC, and faults of one firmware look like faults of one rail",
          {kFirmware},
          CheckFirmware},
    Check{"node.records",
          "what Railhead has on record of this node is whole",
          "a journal entry that cannot be read keeps its devices from all pods, and its pod from ending",
          {kRecords},
          CheckRecords},
    Check{"runtime.cdi",
          "the container runtime reads Railhead's CDI specs",
          "else containers start without device nodes and without nccl.conf, in silence",
          {kCdi},
          CheckCdi},
    Check{"runtime.device-plugins",
          "no other device plugin hands out RDMA or SR-IOV devices",
          "two plugins give one VF to two pods",
          {kSockets},
          CheckPlugins},
    Check{"runtime.cni",
          "no CNI configuration of the node takes the rails' devices",
          "what takes a PF takes its rail from every pod; macvlan shifts the GID indices of all",
          {kCni, kPfs},
          CheckCni},
    Check{"runtime.kubelet",
          "the directory of pods that railheadd looks into is kubelet's",
          "else every pod looks deleted, and nothing of one that is gone comes back",
          {kKubelet},
          CheckKubelet},
    Check{"runtime.netns",
          "namespaces that the host makes later are seen",
          "without mount propagation they look deleted, and railheadd leaves what is in them alone for ever",
          {kNetns},
          CheckNetns},
};

}  // namespace

std::span<const Check> AllChecks() {
  return kChecks;
}

namespace {

constexpr std::array<std::string_view, 5> kNames = {"skipped", "ok", "note", "warning", "failure"};
constexpr std::size_t kShown = 3;

}  // namespace

std::string_view NameOf(Status status) {
  return kNames.at(static_cast<std::size_t>(status));
}

Verdict& Verdict::Add(Status status, std::string text, std::string fix) {
  observations_.push_back({status, std::move(text), std::move(fix)});
  return *this;
}

Status Verdict::status() const {
  Status worst = Status::kSkipped;
  for (const Observation& one : observations_) worst = std::max(worst, one.status);
  return worst;
}

std::string Verdict::Found() const {
  std::vector<std::string> texts;
  for (const Observation& one : observations_) {
    const bool known = std::find(texts.begin(), texts.end(), one.text) != texts.end();
    if (one.status == status() && !known) texts.push_back(one.text);
  }
  std::string found;
  for (std::size_t i = 0; i < texts.size() && i < kShown; ++i) {
    if (i > 0) found += "; ";
    found += texts[i];
  }
  if (texts.size() > kShown) found += "; and " + std::to_string(texts.size() - kShown) + " more";
  return found;
}

std::string Verdict::Fix() const {
  for (const Observation& one : observations_) {
    if (one.status == status() && !one.fix.empty()) return one.fix;
  }
  return {};
}

}  // namespace railhead::doctor
