// ClusterStore on the Kubernetes API: custom resources of railhead.io/v1alpha1, AddressBlock and
// NodeAddresses, both without a namespace (manifests/components/kubernetes-store). An entry's value is the
// object's `spec`; its revision is the object's uid and resourceVersion.
//
// An update that changes nothing leaves the revision, as the API has it.
// What comes back has to say the same as what was sent: a server that drops fields (its custom
// resource definition is another one) is an error and not a loss.
// Threads and errors: as ClusterStore says.
#pragma once

#include <chrono>
#include <memory>

#include "deviceplugin/support/kubernetes/kube_config.h"
#include "ipam/lease/cluster_store.h"

namespace railhead {

std::unique_ptr<ClusterStore> MakeKubeStore(const KubeAccess& access, std::chrono::milliseconds timeout);

}  // namespace railhead
