#include "cni/attachment/pod_network.h"

#include <utility>

namespace railhead::attachment {
namespace {

Error NamespaceError(const std::string& path, std::string why) {
  return Error{ErrorCode::kNamespace, "CNI_NETNS " + path + ": " + std::move(why),
               "give the path of the pod's network namespace", 0};
}

Result<PodNetwork> Both(Kernel& kernel, NetNs host_ns, NetNs pod_ns) {
  auto host = RH_TRY(kernel.OpenRoute(host_ns));
  auto pod = RH_TRY(kernel.OpenRoute(pod_ns));
  return PodNetwork{std::move(host_ns), std::move(pod_ns), std::move(host), std::move(pod)};
}

}  // namespace

Result<PodNetwork> PodNetwork::Open(Kernel& kernel, const CniRequest& request) {
  NetNs host_ns = RH_TRY(kernel.HostNetns());
  auto pod_ns = kernel.OpenNetns(request.netns);
  if (!pod_ns) return Fail(NamespaceError(request.netns, pod_ns.error().message));
  if (pod_ns->SameAs(host_ns) && !request.netns_override) {
    return Fail(NamespaceError(request.netns, "is the plugin's own namespace"));
  }
  return Both(kernel, std::move(host_ns), std::move(*pod_ns));
}

Result<std::optional<PodNetwork>> PodNetwork::OpenOf(Kernel& kernel, const JournalEntry& entry) {
  auto pod_ns = RH_TRY(OpenPodOf(kernel, entry));
  if (!pod_ns) return std::nullopt;
  NetNs host_ns = RH_TRY(kernel.HostNetns());
  return RH_TRY(Both(kernel, std::move(host_ns), *std::move(pod_ns)));
}

Result<std::optional<NetNs>> OpenPodOf(Kernel& kernel, const JournalEntry& entry,
                                       const std::string& other_path) {
  for (const auto& path : {entry.netns, other_path}) {
    if (path.empty()) continue;
    auto ns = kernel.OpenNetns(path);
    if (ns && ns->inode() == entry.netns_inode) return std::move(*ns);
    if (!ns && ns.error().code != ErrorCode::kNotFound && ns.error().code != ErrorCode::kInvalid) {
      return Fail(std::move(ns.error()));
    }
  }
  return std::nullopt;
}

}  // namespace railhead::attachment
