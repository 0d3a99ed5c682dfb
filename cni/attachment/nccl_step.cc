#include "cni/attachment/nccl_step.h"

#include <algorithm>
#include <map>

#include "cni/attachment/nccl_content.h"
#include "cni/nccl/nccl_files.h"
#include "cni/state/allocation.h"
#include "cni/state/cdi_spec.h"
#include "cni/state/paths.h"
#include "netns/base/file_lock.h"
#include "netns/base/files.h"
#include "netns/base/hash.h"
#include "netns/base/text.h"
#include "netns/sys/user_space.h"

namespace railhead {
namespace {

constexpr auto kSandboxLockLimit = std::chrono::seconds(30);
constexpr std::size_t kSandboxLocks = 64;
constexpr const char* kRdmaCm = "/dev/infiniband/rdma_cm";

// In the order of the devices: this attachment's and those of the sandbox's others that are finished.
Result<std::vector<AttachedLink>> LinksOfSandbox(const Journal& journal, const JournalEntry& entry) {
  std::vector<AttachedLink> links = entry.links;
  for (const auto& sibling : RH_TRY(journal.SiblingsOf(entry.key))) {
    if (sibling.phase != Phase::kDone) continue;
    links.insert(links.end(), sibling.links.begin(), sibling.links.end());
  }
  std::sort(links.begin(), links.end(), [](const auto& a, const auto& b) { return a.device < b.device; });
  return links;
}

// What a container needs to use the device.
Result<void> AddDeviceNodes(const Root& root, const AttachedLink& link, CdiDevice* device) {
  if (link.user_space) {
    for (const auto& [host, inside] : RH_TRY(UserSpaceNodesOf(root, link.device, UserSpaceOf(link.driver)))) {
      if (host == inside) device->device_nodes.push_back(inside);
      if (host != inside) device->renamed_nodes.push_back({host, inside});
    }
    return {};
  }
  if (link.uverbs.empty()) return {};
  device->device_nodes.push_back("/dev/infiniband/" + link.uverbs);
  if (Exists(root.Path(kRdmaCm))) device->device_nodes.emplace_back(kRdmaCm);
  return {};
}

// What Allocate could not say of slots: by resource, the devices that the pod has. Of several
// devices of a container one value of a variable wins, so it is the same in all of them.
std::vector<std::string> LateVariables(const std::vector<AttachedLink>& links) {
  std::map<std::string, std::vector<std::string>> devices;
  for (const auto& link : links) {
    if (!link.resource.empty()) devices[link.resource].push_back(link.device);
  }
  std::vector<std::string> variables;
  variables.reserve(devices.size());
  for (auto& [resource, all] : devices) {
    std::sort(all.begin(), all.end());
    variables.push_back(PcideviceVariable(resource) + "=" + Join(all, ","));
  }
  return variables;
}

// The specs of earlier attachments, too, where what all containers share is another now.
Result<void> WriteCdi(const Root& root, const std::string& container, const std::vector<AttachedLink>& links,
                      const HandoffContent& content) {
  std::vector<CdiMount> mounts;
  for (const auto& file : content.files) {
    for (const auto& inside : file.in_container)
      mounts.push_back({HandoffPath(root, container, file.name), inside});
  }
  const auto late = LateVariables(links);
  for (const auto& link : links) {
    CdiDevice device;
    device.name = link.KubeletId();
    RH_TRY(AddDeviceNodes(root, link, &device));
    if (!link.slot.empty()) device.env = late;
    if (link.handoff && link.gid_index) {
      device.mounts = mounts;
      device.env.insert(device.env.end(), content.env.begin(), content.env.end());
    }
    RH_TRY(WriteCdiSpec(root, device));
  }
  return {};
}

Result<void> WriteFiles(const Root& root, const AttachPlan& plan, const std::string& container,
                        const HandoffContent& content, const std::vector<AttachedLink>& links) {
  if (content.files.empty()) return {};
  RH_TRY(WriteHandoff(root, container, content.files));
  const bool mounted = std::any_of(plan.links.begin(), plan.links.end(), [](const LinkPlan& link) {
    return link.allocation && link.allocation->delivery == Delivery::kMount;
  });
  if (!mounted) return {};
  for (const auto& link : links) {
    if (link.handoff) RH_TRY(WriteDeviceHandoff(root, link.device, content.files.front().text));
  }
  return {};
}

Result<void> Finish(const Journal& journal, JournalEntry& entry) {
  entry.phase = Phase::kDone;
  return journal.Write(entry);
}

}  // namespace

// Lock files are never removed, so sandboxes share a fixed number of them. The plugin and railheadd, built by
// different compilers, have to agree on the number.
Result<FileLock> LockSandbox(const Root& root, const std::string& container,
                             std::chrono::milliseconds limit) {
  const std::size_t number = Fnv1a64(container) % kSandboxLocks;
  return WithContext(FileLock::Acquire(paths::Lock(root, "sandbox-" + std::to_string(number)), limit),
                     "waiting for other attachments of sandbox " + container);
}

Result<void> FinishWithHandoff(const Root& root, const Journal& journal, Kernel& kernel, PodNetwork& network,
                               const AttachPlan& plan, JournalEntry& entry) {
  const std::string& container = entry.key.container_id;
  const FileLock lock = RH_TRY(LockSandbox(root, container, kSandboxLockLimit));
  const auto links = RH_TRY(LinksOfSandbox(journal, entry));
  const auto content =
      RH_TRY_WRAP(HandoffContentOf(root, kernel, network, plan, links), "making the handoff");
  // The shared files last: a NIC that fails on the way is not left in them.
  RH_TRY_WRAP(WriteCdi(root, container, links, content), "writing the CDI spec");
  RH_TRY_WRAP(WriteFiles(root, plan, container, content, links), "writing the handoff");
  return Finish(journal, entry);
}

Result<void> RemoveHandoffOf(const Root& root, const Journal& journal, const JournalEntry& entry) {
  const FileLock lock = RH_TRY(LockSandbox(root, entry.key.container_id, kSandboxLockLimit));
  for (const auto& link : entry.links) {
    RH_TRY(RemoveCdiSpec(root, link.KubeletId()));
    RH_TRY(ClearDeviceHandoff(root, link.device));
  }
  const bool last = !RH_TRY(journal.HasSiblings(entry.key));
  return last ? RemoveHandoff(root, entry.key.container_id) : Result<void>();
}

}  // namespace railhead
