#include "deviceplugin/provision/uses.h"

#include <cerrno>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "cni/plugin/host_device.h"
#include "cni/skel/pod_args.h"
#include "cni/state/checkpoint.h"
#include "cni/state/journal.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/sys/user_space.h"

namespace railhead {
namespace {

std::string PodOf(const JournalEntry& entry) {
  std::string container = "container " + entry.key.container_id;
  const std::string pod = PodName(entry.cni_args);
  if (pod.empty()) return container;
  return "pod " + pod + " (" + container + ")";
}

// Character devices that some process has open, with that process.
struct OpenDevices {
  std::map<std::string, std::string> by_path;  // "/dev/vfio/42" -> process
  std::string hidden;                          // a process that does not show what it has open
};

bool IsDenied(const Error& error) {
  return error.sys_errno == EACCES || error.sys_errno == EPERM;
}

// vfio's unbinding waits for its devices to be closed (vfio_unregister_group_dev in
// drivers/vfio/vfio_main.c), for ever if need be. What a process has open is shown to who may trace
// it (proc_pid_readlink in fs/proc/base.c). One in another PID namespace than this one's is not
// seen.
Result<OpenDevices> FindOpenDevices(const Root& root) {
  OpenDevices open;
  const std::string proc = root.Path("/proc");
  const auto names = RH_TRY_WRAP(ListDirectory(proc), "looking for processes that use VFs");
  for (const std::string& process : names.value_or(std::vector<std::string>{})) {
    if (process.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string directory = std::string(proc).append("/").append(process).append("/fd");
    const auto descriptors = ListDirectory(directory);  // the process may have ended
    if (!descriptors && IsDenied(descriptors.error())) open.hidden = process;
    if (!descriptors || !*descriptors) continue;
    for (const std::string& descriptor : **descriptors) {
      const auto target = ReadLink(std::string(directory).append("/").append(descriptor));
      if (!target && IsDenied(target.error())) open.hidden = process;
      if (target && *target && (*target)->starts_with("/dev/")) open.by_path.emplace(**target, process);
    }
  }
  return open;
}

// Of user space with the device: its VFIO group's, its own VFIO device's (Linux 6.6), its UIO
// device's, its RDMA device's.
Result<std::vector<std::string>> NodesOf(const Root& root, const std::string& device) {
  const std::string path = root.Path("/sys/bus/pci/devices/") + device;
  std::vector<std::string> nodes;
  if (const auto group = RH_TRY(ReadLink(path + "/iommu_group")); group) {
    const std::string number = group->substr(group->rfind('/') + 1);
    nodes.push_back("/dev/vfio/" + number);
    nodes.push_back("/dev/vfio/noiommu-" + number);
  }
  const auto add = [&](const char* directory, const std::string& prefix) -> Result<void> {
    const auto names = RH_TRY(ListDirectory(path + directory));
    for (const std::string& name : names.value_or(std::vector<std::string>{})) nodes.push_back(prefix + name);
    return {};
  };
  RH_TRY(add("/vfio-dev", "/dev/vfio/devices/"));
  RH_TRY(add("/uio", "/dev/"));
  RH_TRY(add("/infiniband_verbs", "/dev/infiniband/"));
  return nodes;
}

class Finder {
 public:
  Finder(const Root& root, RouteApi& host) : root_(root), host_(host) {}

  Result<void> Prepare() {
    for (const ContainerDevices& container :
         RH_TRY_WRAP(ReadCheckpoint(root_), "asking which devices kubelet has given out")) {
      if (KubeletForgot(root_, container.pod_uid)) continue;
      for (const std::string& id : container.ids) given_.emplace(id, container.pod_uid);
    }
    open_ = RH_TRY(FindOpenDevices(root_));
    return {};
  }

  Result<std::optional<VfUse>> Use(const VfActual& vf) {
    const std::string device = vf.address.ToString();
    const auto use = [&](std::string why, std::string hint) {
      return VfUse{vf.index, device, std::move(why), std::move(hint)};
    };
    const auto entry = Journal(root_).FindByDevice(device);
    if (!entry) {
      return use("has an attachment that cannot be read: " + entry.error().message,
                 "railctl journal show tells what it holds, railctl journal restore ends it");
    }
    if (*entry) {
      return use("is in " + PodOf(**entry) + " as " + (*entry)->key.ifname,
                 "delete the pod, or drain the node, and try again");
    }
    if (const auto given = given_.find(device); given != given_.end()) {
      return use("is given to the pod with UID " + given->second + " by kubelet",
                 "delete the pod, or drain the node, and try again");
    }
    if (auto process = RH_TRY(UseByProcess(vf, device)); process) return process;
    if (UserSpaceOf(vf.driver) != UserSpace::kNone) return std::nullopt;
    if (vf.link) return UseByHost(vf, device);
    if (vf.driver.empty()) return std::nullopt;
    return use(
        "has driver " + vf.driver + " and no network interface on the host: it is in another namespace",
        "end the pod or container that has it and try again; a driver without network interfaces: "
        "unbind it");
  }

 private:
  Result<std::optional<VfUse>> UseByProcess(const VfActual& vf, const std::string& device) {
    for (const std::string& node : RH_TRY(NodesOf(root_, device))) {
      const auto found = open_.by_path.find(node);
      if (found == open_.by_path.end()) continue;
      return VfUse{vf.index, device, "is used by process " + found->second + " through " + node,
                   "end the process and try again"};
    }
    // The kernel would wait for whoever has it, so not knowing is too little there.
    if (UserSpaceOf(vf.driver) == UserSpace::kNone || open_.hidden.empty()) return std::nullopt;
    return VfUse{
        vf.index, device,
        "has driver " + vf.driver + ", and process " + open_.hidden + " does not show whether it uses it",
        "run railctl vfs apply as root, or give railheadd CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"};
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
  OpenDevices open_;
};

}  // namespace

Result<std::vector<VfUse>> FindVfUses(const Root& root, RouteApi& host, const PfActual& pf) {
  std::vector<VfUse> uses;
  if (pf.vfs.empty()) return uses;
  Finder finder(root, host);
  RH_TRY(finder.Prepare());
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
