// PodResources: which devices kubelet has given to which pods, by its pod-resources API.
//
// Also of DRA drivers, which the device manager's checkpoint (cni/state/checkpoint.h) does not
// know; since Kubernetes 1.34 also of a pod that is being admitted. kubelet answers from
// memory, but may be busy: every call has a limit.
// Source: k8s.io/kubelet pkg/apis/podresources/v1.
// Ownership: one connection, made at the first call and made anew after an error.
// Threads: thread-safe. Errors: kTimeout, kIo; kNotFound when kubelet does not serve it.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

inline constexpr const char* kPodResourcesSocket = "/var/lib/kubelet/pod-resources/kubelet.sock";

// What one container has of one resource, or of one DRA driver.
struct GivenDevices {
  std::string pod;  // NAMESPACE/NAME
  std::string container;
  std::string resource;  // of DRA: the driver's name
  std::vector<std::string> ids;
};

class PodResources {
 public:
  explicit PodResources(const Root& root);
  ~PodResources();
  PodResources(const PodResources&) = delete;
  PodResources& operator=(const PodResources&) = delete;

  Result<std::vector<GivenDevices>> List(std::chrono::milliseconds limit);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace railhead
