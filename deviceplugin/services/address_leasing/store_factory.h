// A cluster's store as it is configured.
//
// `type` is "etcd" or "kubernetes", `settings` the object of that name (see etcd_config.h,
// kube_config.h), as JSON text; "" is taken for {}. `what` names the text in errors.
// Nothing is sent before the store's first call.
// Threads: pure functions over files. Errors: kInvalid, kMalformed, with the JSON pointer.
#pragma once

#include <memory>
#include <string>

#include "deviceplugin/support/kubernetes/kube_config.h"
#include "ipam/lease/cluster_store.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

// `service`: what the environment says of the Kubernetes API.
Result<std::unique_ptr<ClusterStore>> MakeClusterStore(const Root& root, const std::string& type,
                                                       const std::string& settings, const std::string& what,
                                                       const KubeService& service);

// The same check without a store: for who reads a configuration before it is used.
Result<void> CheckStoreSettings(const std::string& type, const std::string& settings,
                                const std::string& what);

}  // namespace railhead
