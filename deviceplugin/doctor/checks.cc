#include "deviceplugin/doctor/checks.h"

#include <array>

namespace railhead::doctor {
namespace {

constexpr std::array kChecks = {
    Check{"fabric.valid", "fabric.json is there and right", "without it no part of Railhead knows the rails",
          CheckFabric},
    Check{"fabric.rails", "every rail of fabric.json has a PF on this node",
          "a pod that asks for one VF per rail gets two of one rail, or is not scheduled", CheckRails},
    Check{"rdma.netns-mode", "the RDMA namespace mode is the one that fabric.json states",
          "in shared mode a pod sees the RDMA devices of all others; the two modes cannot be mixed in a "
          "cluster",
          CheckRdmaMode},
    Check{"rdma.port", "the rails' RDMA ports are ACTIVE",
          "NCCL leaves a port that is not ACTIVE out without a word, and trains over TCP", CheckPorts},
    Check{"rdma.gid-table", "the rails' GID tables have RoCE v2 entries, at the same places",
          "NCCL has one GID index for all devices of a process", CheckGids},
    Check{"pci.acs",
          "no bridge between an accelerator and a NIC on one switch redirects peer-to-peer traffic",
          "GPUDirect RDMA then goes up to the root complex and back, or fails", CheckAcs},
    Check{"pci.iommu", "the IOMMU passes the rails' NICs and the accelerators through",
          "translation costs bandwidth, and the kernel switches ACS redirection on with it", CheckIommu},
    Check{"gpu.direct", "the NICs can read and write GPU memory",
          "without nvidia_peermem or dma-buf NCCL copies through host memory, and has no PXN",
          CheckGpuDirect},
    Check{"net.mtu", "the PFs' MTU is enough for their rails, and for RoCE's largest",
          "RoCE uses the largest of 1024, 2048, 4096 bytes that fits into the MTU", CheckMtu},
    Check{"net.arp", "the host answers ARP for a rail on that rail only",
          "with several rails in one host Linux answers on any, and drops what comes back elsewhere",
          CheckArp},
    Check{"qos.dscp", "the ports sort packets by DSCP, and know that of their rail's traffic class",
          "else RoCE travels in the default priority, without PFC", CheckDscp},
    Check{"qos.pfc", "the priority of the rail's traffic class is lossless",
          "RoCE loses much of its bandwidth with few lost packets", CheckPfc},
    Check{"qos.ets", "the priority of the rail's traffic class has bandwidth of its own",
          "a class without bandwidth starves when others send", CheckEts},
    Check{"qos.ecn", "congestion control is on for that priority",
          "without it PFC stops whole links, not the senders that are too fast", CheckEcn},
    Check{"sriov.vfs", "the rails' PFs have VFs", "a PF without VFs gives nothing to pods", CheckVfCount},
    Check{"sriov.ari", "PFs with more than seven VFs are on ARI-capable ports",
          "else the VFs need further bus numbers, which not every firmware leaves free", CheckAri},
    Check{"sriov.vf-order", "RDMA devices are in the order of the VFs",
          "NCCL before 2.29.7 numbers NICs in that order, and ranks of different nodes must agree",
          CheckVfOrder},
    Check{"sriov.bandwidth", "whether VFs share the bandwidth of their PF",
          "NCCL takes each VF for a whole port", CheckBandwidth},
    Check{"node.memlock", "container runtimes may lock memory without limit",
          "containers inherit the limit, and ibv_reg_mr fails with ENOMEM beyond it", CheckMemlock},
    Check{"node.modules", "the kernel modules that RDMA needs are loaded",
          "containers get no device nodes else", CheckModules},
    Check{"node.firmware", "NICs of one kind have one firmware and driver",
          "ranks wait for the slowest NIC, and faults of one firmware look like faults of one rail",
          CheckFirmware},
    Check{"runtime.cdi", "the container runtime reads Railhead's CDI specs",
          "else containers start without device nodes and without nccl.conf, in silence", CheckCdi},
    Check{"runtime.device-plugins", "no other device plugin hands out RDMA or SR-IOV devices",
          "two plugins give one VF to two pods", CheckPlugins},
    Check{"runtime.cni", "no CNI configuration of the node takes the rails' devices",
          "what takes a PF takes its rail from every pod; macvlan shifts the GID indices of all", CheckCni},
};

}  // namespace

std::span<const Check> AllChecks() {
  return kChecks;
}

}  // namespace railhead::doctor
