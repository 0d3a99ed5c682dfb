#include "deviceplugin/provision/uses.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "cni/plugin/host_device.h"
#include "cni/state/checkpoint.h"
#include "cni/state/journal.h"
#include "cni/state/paths.h"
#include "deviceplugin/pools/drivers.h"
#include "netns/base/files.h"

namespace railhead {
namespace {

std::string PodOf(const JournalEntry& entry) {
  const auto argument = [&](const char* name) {
    const auto found = entry.cni_args.find(name);
    return found == entry.cni_args.end() ? std::string() : found->second;
  };
  std::string container = "container " + entry.key.container_id;
  const std::string pod = argument("K8S_POD_NAME");
  if (pod.empty()) return container;
  return "pod " + argument("K8S_POD_NAMESPACE") + "/" + pod + " (" + container + ")";
}

// The names of the character devices below /dev/vfio that some process has open, with that
// process. vfio's unbinding waits for them to be closed (vfio_unregister_group_dev in
// drivers/vfio/vfio_main.c), for ever if need be. A process that is not shown, in another
// PID namespace than this one's, is not seen.
Result<std::map<std::string, std::string>> OpenVfioDevices(const Root& root) {
  constexpr std::string_view kDirectory = "/dev/vfio/";
  std::map<std::string, std::string> open;
  const std::string proc = root.Path("/proc");
  const auto names = RH_TRY_WRAP(ListDirectory(proc), "looking for processes that use vfio");
  for (const std::string& process : names.value_or(std::vector<std::string>{})) {
    if (process.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string directory = std::string(proc).append("/").append(process).append("/fd");
    const auto descriptors = ListDirectory(directory);  // the process may have ended
    if (!descriptors || !*descriptors) continue;
    for (const std::string& descriptor : **descriptors) {
      const auto target = ReadLink(std::string(directory).append("/").append(descriptor));
      if (!target || !*target || !(*target)->starts_with(kDirectory)) continue;
      open.emplace((*target)->substr(kDirectory.size()), process);
    }
  }
  return open;
}

// Below /dev/vfio: the IOMMU group's number, and "devices/vfioN" (Linux 6.6).
Result<std::vector<std::string>> VfioNamesOf(const Root& root, const std::string& device) {
  const std::string path = root.Path("/sys/bus/pci/devices/") + device;
  std::vector<std::string> names;
  if (const auto group = RH_TRY(ReadLink(path + "/iommu_group")); group)
    names.push_back(group->substr(group->rfind('/') + 1));
  const auto devices = RH_TRY(ListDirectory(path + "/vfio-dev"));
  for (const std::string& name : devices.value_or(std::vector<std::string>{}))
    names.push_back("devices/" + name);
  return names;
}

class Finder {
 public:
  Finder(const Root& root, RouteApi& host) : root_(root), host_(host) {}

  Result<void> Prepare(const PfActual& pf) {
    for (const ContainerDevices& container :
         RH_TRY_WRAP(ReadCheckpoint(root_), "asking which devices kubelet has given out")) {
      if (!PodIs(container.pod_uid)) continue;
      for (const std::string& id : container.ids) given_.emplace(id, container.pod_uid);
    }
    const bool vfio = std::any_of(pf.vfs.begin(), pf.vfs.end(), [](const VfActual& vf) {
      return UserSpaceOf(vf.driver) != UserSpace::kNone;
    });
    if (vfio) open_ = RH_TRY(OpenVfioDevices(root_));
    return {};
  }

  Result<std::optional<VfUse>> Use(const VfActual& vf) {
    const std::string device = vf.address.ToString();
    const auto use = [&](std::string why, std::string hint) {
      return VfUse{vf.index, device, std::move(why), std::move(hint)};
    };
    const auto entry = Journal(root_).FindByDevice(device);
    if (!entry) {
      return use(
          "has an attachment that cannot be read: " + entry.error().message,
          "railheadd --reconcile-once tells what can be mended; a file that is damaged for good has to be "
          "removed, when its pod is gone");
    }
    if (*entry) {
      return use("is in " + PodOf(**entry) + " as " + (*entry)->key.ifname,
                 "delete the pod, or drain the node, and try again");
    }
    if (const auto given = given_.find(device); given != given_.end()) {
      return use("is given to the pod with UID " + given->second + " by kubelet",
                 "delete the pod, or drain the node, and try again");
    }
    if (UserSpaceOf(vf.driver) != UserSpace::kNone) return UseByProcess(vf, device);
    if (vf.link) return UseByHost(vf, device);
    if (vf.driver.empty()) return std::nullopt;
    return use(
        "has driver " + vf.driver + " and no network interface on the host: it is in another namespace",
        "end the pod or container that has it and try again; a driver without network interfaces: "
        "unbind it");
  }

 private:
  // kubelet's checkpoint keeps pods that have ended until its next allocation.
  [[nodiscard]] bool PodIs(const std::string& uid) const {
    const std::string pods = paths::KubeletPods(root_);
    return !Exists(pods) || Exists(std::string(pods).append("/").append(uid));
  }

  Result<std::optional<VfUse>> UseByProcess(const VfActual& vf, const std::string& device) {
    for (const std::string& name : RH_TRY(VfioNamesOf(root_, device))) {
      const auto found = open_.find(name);
      if (found == open_.end()) continue;
      return VfUse{vf.index, device, "is used by process " + found->second + " through /dev/vfio/" + name,
                   "end the process and try again"};
    }
    return std::nullopt;
  }

  Result<std::optional<VfUse>> UseByHost(const VfActual& vf, const std::string& device) {
    const auto refused = RefuseIfHostUses(root_, host_, *vf.link, device);
    if (refused) return std::nullopt;
    if (refused.error().code != ErrorCode::kInvalid) return Fail(refused.error());
    return VfUse{vf.index, device, "is used by the host: " + refused.error().message,
                 "take it from the host's network first"};
  }

  const Root& root_;
  RouteApi& host_;
  std::map<std::string, std::string> given_;  // device -> pod
  std::map<std::string, std::string> open_;   // below /dev/vfio -> process
};

}  // namespace

Result<std::vector<VfUse>> FindVfUses(const Root& root, RouteApi& host, const PfActual& pf) {
  std::vector<VfUse> uses;
  if (pf.vfs.empty()) return uses;
  Finder finder(root, host);
  RH_TRY(finder.Prepare(pf));
  for (const VfActual& vf : pf.vfs) {
    if (auto use = RH_TRY(finder.Use(vf)); use) uses.push_back(*std::move(use));
  }
  return uses;
}

Result<std::optional<Error>> FindPfUse(const Root& root, RouteApi& host, const PfActual& pf) {
  const std::string device = pf.address.ToString();
  const auto entry = Journal(root).FindByDevice(device);
  if (!entry) return std::optional<Error>(entry.error());
  if (*entry) {
    return std::optional<Error>(Error{ErrorCode::kBusy, pf.Name() + " is itself in " + PodOf(**entry),
                                      "delete the pod and try again", 0});
  }
  if (!pf.link) return std::nullopt;
  const auto refused = RefuseIfHostUses(root, host, *pf.link, device);
  if (refused) return std::nullopt;
  if (refused.error().code != ErrorCode::kInvalid) return Fail(refused.error());
  Error error = refused.error();
  error.code = ErrorCode::kBusy;
  error.hint =
      "taking VFs away restarts a PF's link: move the host's network to another NIC first, or set "
      "sriov_numvfs yourself";
  return std::optional<Error>(std::move(error));
}

}  // namespace railhead
