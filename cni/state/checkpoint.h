// kubelet's device checkpoint: which devices it gave to which pod.
//
// kubelet writes /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint after
// Allocate and before the pod's sandbox is made, so at ADD it names the pod's
// devices; no daemon and no API server is asked. Only read, never written.
// Source: pkg/kubelet/cm/devicemanager/checkpoint/checkpoint.go; before Kubernetes
// 1.20 DeviceIDs was a list instead of lists by NUMA node: both are read. The
// checksum is kubelet's own business (a Go hash of the Go structure).
// Threads: values.
#pragma once

#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

// What one container was given of one resource.
struct ContainerDevices {
  std::string pod_uid;
  std::string container;
  std::string resource;
  std::vector<std::string> ids;
};

Result<std::vector<ContainerDevices>> ParseCheckpoint(const std::string& text, const std::string& what);
// Empty when there is no checkpoint: kubelet has given no device to anyone yet.
Result<std::vector<ContainerDevices>> ReadCheckpoint(const Root& root);

// Whether kubelet has removed the pod's directory, which it does when all of the pod is gone. Only a
// directory that has other pods proves that: an empty one can be of a kubelet that has its pods elsewhere
// (--root-dir).
bool KubeletForgot(const Root& root, const std::string& pod_uid);

}  // namespace railhead
