#include "cni/attachment/nccl_step.h"

#include <sys/socket.h>

#include <algorithm>
#include <map>

#include "cni/attachment/nccl_config_content.h"
#include "cni/nccl/nccl_config_files.h"
#include "cni/state/cdi_spec.h"
#include "cni/state/paths.h"
#include "cni/state/resource_variable.h"
#include "netns/base/fnv.h"
#include "netns/base/text.h"
#include "netns/sys/user_space.h"

namespace railhead::attachment {
namespace {

constexpr auto kSandboxLockLimit = std::chrono::seconds(30);
constexpr std::size_t kSandboxLocks = 64;
constexpr const char* kRdmaCm = "/dev/infiniband/rdma_cm";

// Devices of this attachment and of the sandbox's other finished ones, sorted by address.
Result<std::vector<AttachedDevice>> DevicesOfSandbox(const Journal& journal, const JournalEntry& entry) {
  std::vector<AttachedDevice> devices = entry.devices;
  for (const auto& sibling : RH_TRY(journal.SiblingsOf(entry.key))) {
    if (sibling.phase != Phase::kDone) continue;
    devices.insert(devices.end(), sibling.devices.begin(), sibling.devices.end());
  }
  std::ranges::sort(devices, {}, &AttachedDevice::device);
  return devices;
}

// Adds the device nodes that a container needs to use the device.
Result<void> AddDeviceNodes(const Root& root, const AttachedDevice& device, CdiDevice* spec) {
  if (device.before.user_space) {
    const UserSpace kind = UserSpaceOf(device.before.driver);
    for (const auto& [host, inside] : RH_TRY(UserSpaceNodesOf(root, device.device, kind))) {
      if (host == inside) spec->device_nodes.push_back(inside);
      if (host != inside) spec->renamed_nodes.push_back({host, inside});
    }
    return {};
  }
  if (device.rdma.uverbs.empty()) return {};
  spec->device_nodes.push_back("/dev/infiniband/" + device.rdma.uverbs);
  if (Exists(root.Path(kRdmaCm))) spec->device_nodes.emplace_back(kRdmaCm);
  return {};
}

// The variables that Allocate could not set for slots: the pod's devices by resource. A container with
// several devices gets one of their values, so all devices have the same.
std::vector<std::string> LateVariables(const std::vector<AttachedDevice>& devices) {
  std::map<std::string, std::vector<std::string>> by_resource;
  for (const auto& device : devices) {
    if (!device.resource.empty()) by_resource[device.resource].push_back(device.device);
  }
  std::vector<std::string> variables;
  variables.reserve(by_resource.size());
  for (auto& [resource, all] : by_resource) {
    std::ranges::sort(all);
    variables.push_back(PcideviceVariable(resource) + "=" + Join(all, ","));
  }
  return variables;
}

// Writes the specs of earlier attachments again, too: what all containers share may have changed.
Result<void> WriteCdi(const Root& root, const std::string& container,
                      const std::vector<AttachedDevice>& devices, const NcclConfigContent& content) {
  std::vector<CdiMount> mounts;
  for (const auto& file : content.files) {
    for (const auto& inside : file.in_container)
      mounts.push_back({nccl::NcclConfigPath(root, container, file.name), inside});
  }
  const auto late = LateVariables(devices);
  for (const auto& device : devices) {
    CdiDevice spec;
    spec.name = device.KubeletId();
    RH_TRY(AddDeviceNodes(root, device, &spec));
    if (!device.slot.empty()) spec.env = late;
    if (device.InNcclConf()) {
      spec.mounts = mounts;
      spec.env.insert(spec.env.end(), content.env.begin(), content.env.end());
    }
    RH_TRY(WriteCdiSpec(root, spec));
  }
  return {};
}

Result<void> WriteFiles(const Root& root, const AttachPlan& plan, const std::string& container,
                        const NcclConfigContent& content, const std::vector<AttachedDevice>& devices) {
  if (content.files.empty()) return {};
  RH_TRY(WriteNcclConfig(root, container, content.files));
  const bool mounted = std::ranges::any_of(plan.devices, [](const DevicePlan& device) {
    return device.allocation && device.allocation->device_nodes == DeviceNodeMode::kMount;
  });
  if (!mounted) return {};
  for (const auto& device : devices) {
    if (device.nccl.enabled)
      RH_TRY(nccl::WriteDeviceNcclConfig(root, device.device, content.files.front().text));
  }
  return {};
}

Result<void> Finish(const Journal& journal, JournalEntry& entry) {
  entry.phase = Phase::kDone;
  return journal.Write(entry);
}

}  // namespace

// Lock files are never removed, so sandboxes share a fixed number of them. The plugin and railheadd must
// compute the same number, also when different compilers built them.
Result<FileLock> LockSandbox(const Root& root, const std::string& container,
                             std::chrono::milliseconds limit) {
  const std::size_t number = Fnv1a64(container) % kSandboxLocks;
  return WithContext(FileLock::Acquire(paths::Lock(root, "sandbox-" + std::to_string(number)), limit),
                     "waiting for other attachments of sandbox " + container);
}

Result<void> FinishWithNcclConfig(const Root& root, const Journal& journal, Kernel& kernel,
                                  PodNetwork& network, const AttachPlan& plan, JournalEntry& entry) {
  const std::string& container = entry.key.container_id;
  const FileLock lock = RH_TRY(LockSandbox(root, container, kSandboxLockLimit));
  const auto devices = RH_TRY(DevicesOfSandbox(journal, entry));
  const auto content =
      RH_TRY_WRAP(BuildNcclConfig(root, kernel, network, plan, devices), "making the NCCL configuration");
  // The shared files last: then they do not name a NIC whose step failed.
  RH_TRY_WRAP(WriteCdi(root, container, devices, content), "writing the CDI spec");
  RH_TRY_WRAP(WriteFiles(root, plan, container, content, devices), "writing the NCCL configuration");
  return Finish(journal, entry);
}

Result<void> RemoveNcclConfigOf(const Root& root, const Journal& journal, const JournalEntry& entry) {
  const FileLock lock = RH_TRY(LockSandbox(root, entry.key.container_id, kSandboxLockLimit));
  for (const auto& device : entry.devices) {
    RH_TRY(RemoveCdiSpec(root, device.KubeletId()));
    RH_TRY(nccl::ClearDeviceNcclConfig(root, device.device));
  }
  const bool last = !RH_TRY(journal.HasSiblings(entry.key));
  return last ? nccl::RemoveNcclConfig(root, entry.key.container_id) : Result<void>();
}

}  // namespace railhead::attachment
