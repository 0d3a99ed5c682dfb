#include "cni/attachment/verify_nccl_config.h"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cni/attachment/rdma.h"
#include "cni/nccl/gid_selection.h"
#include "cni/nccl/nccl_conf.h"
#include "cni/nccl/nccl_config_files.h"
#include "cni/nccl/ucx_conf.h"
#include "cni/state/cdi_spec.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/sys/selinux.h"

namespace railhead::attachment {
namespace {

// Adds the files that containers mount to `mounted`.
Result<void> CheckCdi(Differences& differences, const Root& root, const AttachedDevice& device,
                      std::set<std::string>& mounted) {
  const std::string path = paths::CdiSpec(root, device.KubeletId());
  const auto spec = RH_TRY(ReadCdiSpec(root, device.KubeletId()));
  if (!spec) {
    differences.push_back("the CDI spec " + path + " is missing");
    return {};
  }
  for (const auto& mount : spec->mounts) mounted.insert(mount.host_path);
  if (device.rdma.uverbs.empty()) return {};
  const std::string node = "/dev/infiniband/" + device.rdma.uverbs;
  const auto& nodes = spec->device_nodes;
  if (!Contains(nodes, node)) differences.push_back("the CDI spec " + path + " does not name " + node);
  return {};
}

std::string InWords(const std::vector<GidEntry>& table, int index) {
  const auto entry = std::ranges::find(table, index, &GidEntry::index);
  return std::to_string(index) +
         (entry == table.end() ? "" : " (" + AddressOfGid(entry->gid).ToString() + ")");
}

// A new GID before the pod's own has no effect until the next connection.
void CheckSearch(Differences& differences, const char* who, const AttachedDevice::Rdma& rdma,
                 const std::vector<GidEntry>& table, std::optional<int> picked) {
  if (picked == rdma.gid_index) return;
  CheckValue(differences, rdma.device + ": the GID index that " + who + " finds",
             picked ? InWords(table, *picked) : "not the same with every release",
             InWords(table, *rdma.gid_index));
}

// The texts of the sandbox's files; "": the file does not exist.
struct NcclFiles {
  std::string nccl_path;
  std::string nccl;
  std::optional<nccl::GidSelection> gids;
  std::string ucx_path;
  std::string ucx;
};

Result<NcclFiles> ReadNcclFiles(const Root& root, const JournalEntry& entry,
                                const std::set<std::string>& mounted) {
  NcclFiles files;
  files.nccl_path = nccl::NcclConfigPath(root, entry.key.container_id);
  files.nccl = RH_TRY(ReadFile(files.nccl_path)).value_or("");
  files.gids = nccl::GidsIn(files.nccl);
  files.ucx_path = nccl::NcclConfigPath(root, entry.key.container_id, nccl::kUcxConfName);
  if (mounted.contains(files.ucx_path)) files.ucx = RH_TRY(ReadFile(files.ucx_path)).value_or("");
  return files;
}

void CheckNcclConf(Differences& differences, const NcclFiles& files, const AttachedDevice::Rdma& rdma,
                   const std::vector<GidEntry>& table) {
  const auto devices = Split(nccl::ValueIn(files.nccl, "NCCL_IB_HCA").value_or(""), ',');
  if (!Contains(devices, rdma.device))
    differences.push_back("the NCCL configuration file " + files.nccl_path + " does not name " + rdma.device);
  if (files.gids && std::holds_alternative<nccl::GidSearch>(*files.gids)) {
    CheckSearch(differences, "NCCL", rdma, table, NcclPicks(table, std::get<nccl::GidSearch>(*files.gids)));
  } else {
    CheckValue(differences, files.nccl_path + ": NCCL_IB_GID_INDEX",
               nccl::ValueIn(files.nccl, "NCCL_IB_GID_INDEX").value_or("(absent)"),
               std::to_string(*rdma.gid_index));
  }
}

void CheckUcxConf(Differences& differences, const NcclFiles& files, const AttachedDevice::Rdma& rdma,
                  const std::vector<GidEntry>& table) {
  const auto devices = Split(nccl::ValueIn(files.ucx, "UCX_NET_DEVICES").value_or(""), ',');
  if (!Contains(devices, rdma.device + ":1"))
    differences.push_back("the NCCL configuration file " + files.ucx_path + " does not name " + rdma.device);
  if (const auto index = nccl::ValueIn(files.ucx, "UCX_IB_GID_INDEX")) {
    CheckValue(differences, files.ucx_path + ": UCX_IB_GID_INDEX", *index, std::to_string(*rdma.gid_index));
  } else {
    CheckSearch(differences, "UCX", rdma, table, nccl::UcxPicks(table));
  }
}

Result<void> CheckNcclFiles(Differences& differences, Kernel& kernel, const NetNs& pod,
                            const NcclFiles& files, const AttachedDevice::Rdma& rdma) {
  const bool searched = files.gids && std::holds_alternative<nccl::GidSearch>(*files.gids);
  std::vector<GidEntry> table;
  if (searched) {
    auto now = RH_TRY(kernel.ReadGids(pod, rdma.device));
    if (!now) return {};  // CheckRdma() reports it
    table = *std::move(now);
  }
  CheckNcclConf(differences, files, rdma, table);
  if (!files.ucx.empty()) CheckUcxConf(differences, files, rdma, table);
  return {};
}

}  // namespace

Result<void> CheckRdma(Differences& differences, const Root& root, Kernel& kernel, const NetNs& pod,
                       const AttachedDevice& device) {
  const AttachedDevice::Rdma& expected = device.rdma;
  if (expected.device.empty()) return {};
  if (!expected.gid_index) {  // only the device is expected
    const auto rdma = RH_TRY(kernel.OpenRdma(pod));
    const auto devices = RH_TRY(rdma->ListDevices());
    const bool there = Contains(devices, expected.device, &RdmaDevice::name);
    if (!there) differences.push_back("RDMA device " + expected.device + ": is not visible in the pod");
    return {};
  }
  const IpAddress* address = GidAddressOf(device);
  if (address == nullptr)
    return Fail(ErrorCode::kMalformed, "the journal has a GID of " + device.device + " without an address");
  const auto ready = WaitRdma(root, kernel, device, pod, *address, std::chrono::steady_clock::now());
  if (!ready) {
    differences.push_back(Describe(ready.error()));
    return {};
  }
  CheckValue(differences, expected.device + ": GID index of " + address->ToString(),
             std::to_string(ready->gid.index), std::to_string(*expected.gid_index));
  CheckValue(differences, expected.device + ": uverbs node", ready->uverbs, expected.uverbs);
  return {};
}

Result<void> CheckNcclConfig(Differences& differences, const Root& root, Kernel& kernel, const NetNs& pod,
                             const JournalEntry& entry) {
  std::set<std::string> needed;
  for (const AttachedDevice& device : entry.devices) {
    RH_TRY(CheckCdi(differences, root, device, needed));
    if (device.InNcclConf()) needed.insert(nccl::NcclConfigPath(root, entry.key.container_id));
  }
  const NcclFiles files = RH_TRY(ReadNcclFiles(root, entry, needed));
  for (const AttachedDevice& device : entry.devices) {
    if (device.InNcclConf() && !files.nccl.empty())
      RH_TRY(CheckNcclFiles(differences, kernel, pod, files, device.rdma));
  }
  for (const auto& path : needed) {
    if (!Exists(path)) differences.push_back("the NCCL configuration file " + path + " is missing");
    if (const auto label = LabelAgainstContainers(root, path); !label.empty()) {
      differences.push_back(std::string("SELinux keeps containers from reading ")
                                .append(path)
                                .append(": it is labelled ")
                                .append(label));
    }
  }
  return {};
}

}  // namespace railhead::attachment
