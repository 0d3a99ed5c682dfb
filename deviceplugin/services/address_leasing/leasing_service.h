// Leasing of addresses as railheadd runs it: from configuration to thread, log and metrics.
// Threads: as LeasingLoop, Log and Exposition.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "cni/fabric/fabric.h"
#include "deviceplugin/services/address_leasing/leasing_loop.h"
#include "deviceplugin/support/kubernetes/kube_config.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "ipam/lease/cluster_store.h"
#include "ipam/lease/context.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead {

// nullptr: the fabric leases nothing, or there is none.
Result<std::unique_ptr<LeasingLoop>> StartLeasing(const Root& root, const std::string& fabric_path,
                                                  const KubeService& service, Log* log);

// What a step changed. A failure that stays the same is a warning only once.
class LeasingLog {
 public:
  explicit LeasingLog(Log* log) : log_(log) {}
  void Write(const Leaser::Outcome& outcome);

 private:
  Log* log_;
  std::string known_problem_;
};

// `leasing` may be null: the families are there, without samples.
void AppendLeasing(Exposition* page, const LeasingLoop* leasing);

// Whether what the fabric says of leasing can be carried out: plan and store together.
// Threads: pure functions over files. Errors: kInvalid, kMalformed, with the JSON pointer.

// The kind of store, as MakeClusterStore() knows it, and its own settings.
std::pair<std::string, std::string> StoreOf(const LeaseStoreConfig& store);

// Asks nobody. Well with a fabric that leases nothing. `what` names its file in messages.
Result<void> CheckLeasing(const Fabric& fabric, const std::string& what);
// The same of a file; well without one, too.
Result<void> CheckLeasing(const Root& root, const std::string& fabric_path);

// A cluster's store as it is configured.
//
// `type` is "etcd" or "kubernetes", `settings` the object of that name (see etcd_config.h,
// kube_config.h), as JSON text; "" is taken for {}. `what` names the text in errors.
// Nothing is sent before the store's first call.
// Threads: pure functions over files. Errors: kInvalid, kMalformed, with the JSON pointer.

// `service`: what the environment says of the Kubernetes API.
Result<std::unique_ptr<ClusterStore>> MakeClusterStore(const Root& root, const std::string& type,
                                                       const std::string& settings, const std::string& what,
                                                       const KubeService& service);

// The same check without a store: for who reads a configuration before it is used.
Result<void> CheckStoreSettings(const std::string& type, const std::string& settings,
                                const std::string& what);

}  // namespace railhead
