#include "cni/plugin/pod_network.h"

#include <utility>

namespace railhead {
namespace {

Error NamespaceError(const std::string& path, std::string why) {
  return Error{ErrorCode::kNamespace, "CNI_NETNS " + path + ": " + std::move(why),
               "give the path of the pod's network namespace", 0};
}

}  // namespace

Result<PodNetwork> PodNetwork::Open(Kernel& kernel, const CniRequest& request) {
  NetNs host_ns = RH_TRY(kernel.HostNetns());
  auto pod_ns = kernel.OpenNetns(request.netns);
  if (!pod_ns) return Fail(NamespaceError(request.netns, pod_ns.error().message));
  if (pod_ns->SameAs(host_ns) && !request.netns_override) {
    return Fail(NamespaceError(request.netns, "is the plugin's own namespace"));
  }
  auto host = RH_TRY(kernel.OpenRoute(host_ns));
  auto pod = RH_TRY(kernel.OpenRoute(*pod_ns));
  return PodNetwork{std::move(host_ns), std::move(*pod_ns), std::move(host), std::move(pod)};
}

}  // namespace railhead
