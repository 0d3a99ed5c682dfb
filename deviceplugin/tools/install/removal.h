// The pods that still have Railhead's NICs, as the Kubernetes API lists them.
//
// Their DEL needs the CNI plugins, so these pods have to be deleted before Railhead is. A pod counts if it
// has a node (spec.nodeName) and a limit above 0, and if it has not ended (phase Succeeded or Failed). The
// limit is a container's or init container's, for a resource of Railhead's. kubelet allocates devices by
// limits (pkg/kubelet/cm/devicemanager/manager.go). Ephemeral containers have no resources.
//
// The API server writes quantities in their shortest form, in which zero is "0"
// (apimachinery/pkg/api/resource/quantity.go, CanonicalizeBytes). A list comes in pages. When the API server
// has forgotten the version that its pages are of, it answers 410, and the list begins again.
//
// Threads: one. Errors: those of KubeApi; kUnavailable if lists expire again and again; kMalformed if the
// answer is not a list of pods.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "deviceplugin/support/kubernetes/kube_access.h"
#include "deviceplugin/support/kubernetes/kube_api.h"
#include "netns/base/result.h"
#include "netns/json/record.h"

namespace railhead::install {

struct PodWithNics {
  std::string name_space;
  std::string name;
  std::string node;
  std::vector<std::string> resources;  // in their order, each once

  bool operator==(const PodWithNics&) const = default;
  static void List(auto& f) {
    f("namespace", &PodWithNics::name_space);
    f("name", &PodWithNics::name);
    f("node", &PodWithNics::node);
    f("resources", &PodWithNics::resources);
  }
};

struct RemovalReport {
  std::vector<PodWithNics> pods;

  [[nodiscard]] bool Ok() const { return pods.empty(); }
  static void List(auto& f) {
    f.Output("ok", &RemovalReport::Ok);
    f("pods", &RemovalReport::pods);
  }
};

// May list pods. Every call ends by `timeout`.
KubeApi PodsApi(const KubeAccess& access, std::chrono::milliseconds timeout);

// `resources`: names of Railhead's besides railhead.io/*.
Result<RemovalReport> CheckRemoval(KubeApi& api, const std::vector<std::string>& resources);

// For people: what to do, and a line for each pod.
std::string RemovalAsText(const RemovalReport& report);

}  // namespace railhead::install
