// IndexStore on the Kubernetes API: custom resources NodeIndex of railhead.io/v1alpha1, without a namespace
// (manifests/components/node-index), and the nodes themselves (core/v1), of which it reads metadata.uid and
// status.nodeInfo.systemUUID. A claim's value is the object's `spec`; its revision is the object's uid and
// resourceVersion.
//
// A claim's object is named by its index: "node-17". Objects of other names claim nothing and are skipped.
//
// The API server lists in the order of names, and a "continue" token names the place to go on from. A list
// that begins at a name uses a token made here. The server then reads only what it answers. Source of the
// token: k8s.io/apiserver/pkg/storage/continue.go, where it is "a public API struct and cannot change". A
// negative resource version asks for the latest state.
//
// An update that changes nothing keeps the revision: the API server does so. The answer must equal the value
// that was sent. A server whose custom resource definition drops fields produces an error, not a loss.
// Threads and errors: as IndexStore says; the names are pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "deviceplugin/services/node_index/index_store.h"
#include "deviceplugin/support/kubernetes/kube_access.h"
#include "netns/base/result.h"
#include "netns/json/json_reader.h"

namespace railhead::node_index {

// Of the resource.
inline constexpr const char* kClaimsPath = "/apis/railhead.io/v1alpha1/nodeindices";

std::string KubeNameOf(std::uint64_t index);
// nullopt: not the name of an index.
std::optional<std::uint64_t> ParseKubeName(const std::string& name);

// The token for a list of names from `start` on.
std::string KubeContinueAt(const std::string& start);

// nullopt: an object whose name is no index. It claims none.
Result<std::optional<ClaimEntry>> ParseClaim(JsonReader object);

std::unique_ptr<IndexStore> MakeKubeIndexStore(const KubeAccess& access, std::chrono::milliseconds timeout);

}  // namespace railhead::node_index
