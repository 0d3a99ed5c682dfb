// kubelet's device checkpoint: which devices it allocated to which pod.
//
// kubelet writes /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint after Allocate and before it
// creates the pod's sandbox. So at ADD the file names the pod's devices, without a daemon or an API server.
// Railhead only reads it. Source: pkg/kubelet/cm/devicemanager/checkpoint/checkpoint.go. Before
// Kubernetes 1.20 DeviceIDs was a list instead of lists by NUMA node: both are read. The checksum (a Go hash
// of the Go structure) is not checked.
//
// The file has no limit. Some device plugins register a device for each MiB of a GPU's memory, and kubelet
// lists all of them. So the file is read in pieces, and only what is needed is kept: ids that a network
// device or a slot can have.
// Threads: values. Errors: kMalformed when the file is not JSON; kInvalid when it is not kubelet's.
#pragma once

#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

// The devices of one resource that kubelet allocated to one container.
struct ContainerDevices {
  std::string pod_uid;
  std::string container;
  std::string resource;
  std::vector<std::string> ids;  // without those of other kinds of devices
};

// `all_of`: the UID of a pod whose ids are all kept, also those of accelerators.
Result<std::vector<ContainerDevices>> ParseCheckpoint(const std::string& text, const std::string& what,
                                                      const std::string& all_of = {});
// Empty without a checkpoint: kubelet has allocated no device yet.
Result<std::vector<ContainerDevices>> ReadCheckpoint(const Root& root, const std::string& all_of = {});

// Whether kubelet has removed the pod's directory, which it does after the whole pod has ended. Only a folder
// that has other pods proves that. If the folder is empty, kubelet may keep its pods elsewhere (--root-dir).
bool KubeletForgot(const Root& root, const std::string& pod_uid);

}  // namespace railhead
