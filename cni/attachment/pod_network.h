// The two namespaces of one call, host and pod, and rtnetlink in each.
//
// Ownership: holds the namespaces' descriptors, so keep it for one call only. Threads: as RouteApi. Errors:
// kNamespace if the pod's path is gone, is not a namespace, or is the host's namespace.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cni/protocol/cni_request.h"
#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead::attachment {

struct PodNetwork {
  NetNs host_ns;
  NetNs pod_ns;
  std::unique_ptr<RouteApi> host;
  std::unique_ptr<RouteApi> pod;

  static Result<PodNetwork> Open(Kernel& kernel, const CniRequest& request);
  // The network of an attachment, for any caller. nullopt: as OpenPodOf().
  static Result<std::optional<PodNetwork>> OpenOf(Kernel& kernel, const JournalEntry& entry);
};

// The namespace of an attachment's pod, by the entry's path or by `other_path`. nullopt: it is gone, or its
// path is that of another namespace.
Result<std::optional<NetNs>> OpenPodOf(Kernel& kernel, const JournalEntry& entry,
                                       const std::string& other_path = {});

}  // namespace railhead::attachment
