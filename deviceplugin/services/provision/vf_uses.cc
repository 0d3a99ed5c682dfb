#include "deviceplugin/services/provision/vf_uses.h"

#include <map>
#include <utility>

#include "cni/attachment/refuse_host_use.h"
#include "cni/protocol/cni_args.h"
#include "cni/state/journal.h"
#include "cni/state/kubelet_checkpoint.h"
#include "netns/sys/device_nodes.h"
#include "netns/sys/user_space.h"

namespace railhead::provision {
namespace {

std::string PodOf(const JournalEntry& entry) {
  std::string container = "container " + entry.key.container_id;
  const std::string pod = PodName(entry.cni_args);
  if (pod.empty()) return container;
  return "pod " + pod + " (" + container + ")";
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
    open_ = RH_TRY(FindOpenNodes(root_));
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
                 "railctl journal show prints what it holds, railctl journal restore releases it");
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
  // vfio's unbinding waits until its devices are closed (vfio_unregister_group_dev in
  // drivers/vfio/vfio_main.c), if need be for ever.
  Result<std::optional<VfUse>> UseByProcess(const VfActual& vf, const std::string& device) {
    for (const std::string& node : RH_TRY(NodesOf(root_, device))) {
      const auto found = open_.by_path.find(node);
      if (found == open_.by_path.end()) continue;
      return VfUse{vf.index, device, "is used by process " + found->second + " through " + node,
                   "end the process and try again"};
    }
    // Unbinding would wait for a process that has it open. So a process that hides its files counts as a
    // user.
    if (UserSpaceOf(vf.driver) == UserSpace::kNone || open_.hidden.empty()) return std::nullopt;
    return VfUse{
        vf.index, device,
        "has driver " + vf.driver + ", and process " + open_.hidden + " does not show whether it uses it",
        "run railctl vfs apply as root, or give railheadd CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"};
  }

  Result<std::optional<VfUse>> UseByHost(const VfActual& vf, const std::string& device) {
    const auto refused = attachment::RefuseIfHostUses(root_, host_, *vf.link, device);
    if (refused) return std::nullopt;
    if (refused.error().code != ErrorCode::kInvalid) return Fail(refused.error());
    return VfUse{vf.index, device, "is used by the host: " + refused.error().message,
                 "take it from the host's network first"};
  }

  const Root& root_;
  RouteApi& host_;
  std::map<std::string, std::string> given_;  // device -> pod
  OpenNodes open_;
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
  const auto refused = attachment::RefuseIfHostUses(root, host, *pf.link, device);
  if (refused) return std::nullopt;
  if (refused.error().code != ErrorCode::kInvalid) return Fail(refused.error());
  Error error = refused.error();
  error.code = ErrorCode::kBusy;
  error.hint =
      "taking VFs away restarts a PF's link: move the host's network to another NIC first, or set "
      "sriov_numvfs yourself";
  return std::optional<Error>(std::move(error));
}

}  // namespace railhead::provision
