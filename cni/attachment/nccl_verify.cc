#include "cni/attachment/nccl_verify.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "cni/attachment/rdma.h"
#include "cni/nccl/nccl_conf.h"
#include "cni/nccl/nccl_files.h"
#include "cni/nccl/ucx_conf.h"
#include "cni/state/cdi_spec.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

bool IsTold(const AttachedLink& link) {
  return link.handoff && link.gid_index;
}

// The files that containers have mounted go to `mounted`.
Result<void> CheckCdi(Differences& differences, const Root& root, const AttachedLink& link,
                      std::set<std::string>& mounted) {
  const std::string path = paths::CdiSpec(root, link.KubeletId());
  const auto spec = RH_TRY(ReadCdiSpec(root, link.KubeletId()));
  if (!spec) {
    differences.push_back("the CDI spec " + path + " is missing");
    return {};
  }
  for (const auto& mount : spec->mounts) mounted.insert(mount.host_path);
  if (link.uverbs.empty()) return {};
  const std::string node = "/dev/infiniband/" + link.uverbs;
  const auto& nodes = spec->device_nodes;
  if (std::find(nodes.begin(), nodes.end(), node) == nodes.end())
    differences.push_back("the CDI spec " + path + " does not name " + node);
  return {};
}

std::string InWords(const std::vector<GidEntry>& table, int index) {
  const auto entry =
      std::find_if(table.begin(), table.end(), [&](const GidEntry& one) { return one.index == index; });
  return std::to_string(index) +
         (entry == table.end() ? "" : " (" + AddressOfGid(entry->gid).ToString() + ")");
}

// A GID that has come before the pod's own goes unnoticed until the next connection.
void CheckSearch(Differences& differences, const char* who, const AttachedLink& link,
                 const std::vector<GidEntry>& table, int picked) {
  if (picked == *link.gid_index) return;
  CheckValue(differences, link.rdma_device + ": the GID index that " + who + " finds", InWords(table, picked),
             InWords(table, *link.gid_index));
}

// What the files say of the NICs; "": there is no such file.
struct Told {
  std::string nccl_path;
  std::string nccl;
  std::optional<GidSelection> gids;
  std::string ucx_path;
  std::string ucx;
};

Result<Told> ReadTold(const Root& root, const JournalEntry& entry, const std::set<std::string>& mounted) {
  Told told;
  told.nccl_path = HandoffPath(root, entry.key.container_id);
  told.nccl = RH_TRY(ReadFile(told.nccl_path)).value_or("");
  told.gids = GidsIn(told.nccl);
  told.ucx_path = HandoffPath(root, entry.key.container_id, kUcxConfName);
  if (mounted.contains(told.ucx_path)) told.ucx = RH_TRY(ReadFile(told.ucx_path)).value_or("");
  return told;
}

void CheckNccl(Differences& differences, const Told& told, const AttachedLink& link,
               const std::vector<GidEntry>& table) {
  const auto devices = Split(ValueIn(told.nccl, "NCCL_IB_HCA").value_or(""), ',');
  if (std::find(devices.begin(), devices.end(), link.rdma_device) == devices.end())
    differences.push_back("the handoff file " + told.nccl_path + " does not name " + link.rdma_device);
  if (told.gids && std::holds_alternative<GidSearch>(*told.gids)) {
    CheckSearch(differences, "NCCL", link, table, NcclPicks(table, std::get<GidSearch>(*told.gids)));
  } else {
    CheckValue(differences, told.nccl_path + ": NCCL_IB_GID_INDEX",
               ValueIn(told.nccl, "NCCL_IB_GID_INDEX").value_or("(absent)"), std::to_string(*link.gid_index));
  }
}

void CheckUcx(Differences& differences, const Told& told, const AttachedLink& link,
              const std::vector<GidEntry>& table) {
  const auto devices = Split(ValueIn(told.ucx, "UCX_NET_DEVICES").value_or(""), ',');
  if (std::find(devices.begin(), devices.end(), link.rdma_device + ":1") == devices.end())
    differences.push_back("the handoff file " + told.ucx_path + " does not name " + link.rdma_device);
  if (const auto index = ValueIn(told.ucx, "UCX_IB_GID_INDEX")) {
    CheckValue(differences, told.ucx_path + ": UCX_IB_GID_INDEX", *index, std::to_string(*link.gid_index));
  } else if (const auto picked = UcxPicks(table)) {
    CheckSearch(differences, "UCX", link, table, *picked);
  }
}

Result<void> CheckLinkIsTold(Differences& differences, Kernel& kernel, const NetNs& pod, const Told& told,
                             const AttachedLink& link) {
  const bool searched = told.gids && std::holds_alternative<GidSearch>(*told.gids);
  std::vector<GidEntry> table;
  if (searched) {
    auto now = RH_TRY(kernel.ReadGids(pod, link.rdma_device));
    if (!now) return {};  // CheckRdma() tells
    table = *std::move(now);
  }
  CheckNccl(differences, told, link, table);
  if (!told.ucx.empty()) CheckUcx(differences, told, link, table);
  return {};
}

}  // namespace

Result<void> CheckRdma(Differences& differences, const Root& root, Kernel& kernel, const NetNs& pod,
                       const AttachedLink& link) {
  if (link.rdma_device.empty()) return {};
  if (!link.gid_index) {  // nothing was promised but the device
    const auto rdma = RH_TRY(kernel.OpenRdma(pod));
    const auto devices = RH_TRY(rdma->ListDevices());
    const bool there = std::any_of(devices.begin(), devices.end(),
                                   [&](const RdmaDevice& device) { return device.name == link.rdma_device; });
    if (!there) differences.push_back("RDMA device " + link.rdma_device + ": is not visible in the pod");
    return {};
  }
  const IpAddress* address = GidAddressOf(link);
  if (address == nullptr)
    return Fail(ErrorCode::kMalformed, "the journal has a GID of " + link.device + " without an address");
  const auto ready = WaitRdma(root, kernel, link, pod, *address, std::chrono::steady_clock::now());
  if (!ready) {
    differences.push_back(Describe(ready.error()));
    return {};
  }
  CheckValue(differences, link.rdma_device + ": GID index of " + address->ToString(),
             std::to_string(ready->gid.index), std::to_string(*link.gid_index));
  CheckValue(differences, link.rdma_device + ": uverbs node", ready->uverbs, link.uverbs);
  return {};
}

Result<void> CheckHandoff(Differences& differences, const Root& root, Kernel& kernel, const NetNs& pod,
                          const JournalEntry& entry) {
  std::set<std::string> needed;
  for (const auto& link : entry.links) {
    RH_TRY(CheckCdi(differences, root, link, needed));
    if (IsTold(link)) needed.insert(HandoffPath(root, entry.key.container_id));
  }
  const Told told = RH_TRY(ReadTold(root, entry, needed));
  for (const auto& link : entry.links) {
    if (IsTold(link) && !told.nccl.empty()) RH_TRY(CheckLinkIsTold(differences, kernel, pod, told, link));
  }
  for (const auto& path : needed) {
    if (!Exists(path)) differences.push_back("the handoff file " + path + " is missing");
  }
  return {};
}

}  // namespace railhead
