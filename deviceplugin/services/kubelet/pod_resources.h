// PodResources: the devices that kubelet has allocated to pods, by its pod-resources API.
//
// It includes devices of DRA drivers, which the device manager's checkpoint (cni/state/kubelet_checkpoint.h)
// does not have. Since Kubernetes 1.34 it also includes those of a pod that is being admitted. Every call has
// a limit: kubelet answers from memory, but may be busy.
// Source: k8s.io/kubelet pkg/apis/podresources/v1.
// Ownership: one connection. The first call makes it, and the next call after an error makes a new one.
// Threads: thread-safe. Errors: kTimeout, kIo; kNotFound when kubelet does not serve it.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::kubelet {

inline constexpr const char* kPodResourcesSocket = "/var/lib/kubelet/pod-resources/kubelet.sock";

// The devices that one container has of one resource, or of one DRA driver.
struct AllocatedDevices {
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

  Result<std::vector<AllocatedDevices>> List(std::chrono::milliseconds limit);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace railhead::kubelet
