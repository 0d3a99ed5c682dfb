// The names of the leasing records in the Kubernetes API, and how they are listed there.
//
// A block's object is named by its pool and number: "v4-10-100-0-0-16-000000000000002a". An IPv6 subnet has
// 32 hex digits. So a block can have only one object, and the names of one pool sort as its numbers. A node's
// object has the node's name. The claim of a node's index is named by the index: "node-17".
//
// The API server lists in the order of names, and a "continue" token names the place to go on from. It
// selects by labels only after it has read everything, so labels are for people. A list that begins at a name
// uses a token made here. The server then reads only what it answers, even with 80,000 blocks. Source of the
// token: k8s.io/apiserver/pkg/storage/continue.go, where it is "a public API struct and cannot change". A
// negative resource version asks for the latest state.
// Threads: pure functions. Errors: kInvalid for names that cannot be part of an object's name.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "deviceplugin/services/address_leasing/index_store.h"
#include "deviceplugin/support/kubernetes/kube_api.h"
#include "ipam/lease/cluster_store.h"
#include "netns/base/result.h"

namespace railhead::address_leasing {

Result<std::string> KubeNameOf(const ipam::LeaseKey& key);
// nullopt: not a name that Railhead gives.
std::optional<ipam::LeaseKey> ParseKubeName(ipam::LeaseKey::Kind kind, const std::string& name);

// For people: kubectl get addressblocks -l railhead.io/pool=NAME.
inline constexpr const char* kKubePoolLabel = "railhead.io/pool";
Result<std::string> KubePoolName(const std::string& pool);

// The token for a list of names from `start` on.
std::string KubeContinueAt(const std::string& start);

// ClusterStore on the Kubernetes API: custom resources of railhead.io/v1alpha1, AddressBlock and
// NodeAddresses, both without a namespace (manifests/components/kubernetes-store). An entry's value is the
// object's `spec`; its revision is the object's uid and resourceVersion.
//
// An update that changes nothing keeps the revision: the API server does so. The answer must equal the value
// that was sent. A server whose custom resource definition drops fields produces an error, not a loss.
// Threads and errors: as ClusterStore says.

std::unique_ptr<ipam::ClusterStore> MakeKubeStore(const KubeAccess& access,
                                                  std::chrono::milliseconds timeout);

// IndexStore on the same API: custom resources NodeIndex, and the nodes themselves (core/v1), of which it
// reads metadata.uid and status.nodeInfo.systemUUID.

std::unique_ptr<IndexStore> MakeKubeIndexStore(const KubeAccess& access, std::chrono::milliseconds timeout);

}  // namespace railhead::address_leasing
