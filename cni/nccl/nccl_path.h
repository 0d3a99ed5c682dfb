// How NCCL reads the PCI paths of a pod's RDMA devices, without a topology file.
//
// NCCL takes realpath(/sys/class/infiniband/DEVICE/device) and writes '0' over the function's digit, so the
// ports of a NIC are one device. With NCCL_IB_MERGE_VFS=1 (the default since 2.18.1) it also writes "00" over
// the device's digits, so a VF shows its PF's address. NCCL does not check that this function exists
// (src/transport/net_ib, ncclIbGetPciPath). If it does not, NCCL puts the NIC on the first CPU: no GPUDirect,
// no PXN (src/graph/xml.cc, ncclTopoFillNet). A process has one value of NCCL_IB_MERGE_VFS, which must be
// right for all NICs of a pod.
//
// A stripped path *holds* if it is a network function in the directory of the NIC itself, so below the same
// bridge. In a guest NCCL takes every NIC of the root bus for 0000:00:00.0, which is the host bridge.
//
// NCCL merges devices that it takes for ports of one NIC into a virtual NIC, whose bandwidth is their sum.
// From 2.20.3 to 2.23 these are devices with the same stripped path. Since 2.24 they are also devices whose
// addresses differ only in the last digit where their paths part (src/graph/topo.cc, ncclTopoGetPath). For
// VFs of one PF the sum is wrong, and two rails of a dual-port NIC become one.
//
// Reads below /sys of `root` at the call. Looks up `address` below /sys/bus/pci, which also shows functions
// whose RDMA device is in a pod. Threads: thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/sys/pci_address.h"

namespace railhead::nccl {

struct NcclNic {
  std::string rdma_device;
  PciAddress address;
  // A soft RoCE device on the function's network device: it has no PCI path.
  bool soft_roce = false;
};

// One stripped path.
struct NcclPath {
  std::string path;  // "/sys/devices/pci0000:15/.../0000:1a:00.0"; empty: NCCL finds none
  bool holds = false;
  std::string why_not;  // a sentence without period; empty when it holds
};

struct NcclNicView {
  std::string rdma_device;
  PciAddress address;
  NcclPath merged;    // with NCCL_IB_MERGE_VFS=1
  NcclPath unmerged;  // with NCCL_IB_MERGE_VFS=0
};

// The value of NCCL_IB_MERGE_VFS with which the paths of all NICs hold.
enum class MergeVfs : std::uint8_t {
  kDefault,  // 1, NCCL's own: no variable is needed
  kOff,      // 0
  kNeither,  // each is wrong for some NIC: only a topology file helps
};

struct NcclView {
  std::vector<NcclNicView> nics;  // in PCI order
  MergeVfs merge_vfs = MergeVfs::kDefault;
  // RDMA devices that NCCL would merge: sorted groups of at least two.
  std::vector<std::vector<std::string>> virtual_nics;

  [[nodiscard]] bool NeedsTopologyFile() const { return merge_vfs == MergeVfs::kNeither; }
  // Variables that nccl.conf needs for these paths: NCCL_IB_MERGE_VFS=0; NCCL_IB_MERGE_NICS=0 and
  // NCCL_NET_MERGE_LEVEL=LOC. Often none.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> Variables() const;
};

// kNotFound when a NIC's function is not in sysfs.
Result<NcclView> NcclViewOf(const Root& root, std::vector<NcclNic> nics);

}  // namespace railhead::nccl
