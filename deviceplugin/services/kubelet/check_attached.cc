#include "deviceplugin/services/kubelet/check_attached.h"

#include <cstddef>
#include <set>

#include "cni/state/allocation.h"
#include "cni/state/journal.h"

namespace railhead::kubelet {
namespace {

tl::unexpected<Error> NotAttached(const resources::ResourcePool& pool, const std::string& id,
                                  std::size_t count, const std::string& why) {
  const std::string networks = count == 1 ? "one network" : std::to_string(count) + " networks";
  return Fail(ErrorCode::kConflict, "device " + id + " of " + pool.spec.resource + " " + why,
              "the pod was given " + std::to_string(count) + " of " + pool.spec.resource +
                  ", so its annotation " + "k8s.v1.cni.cncf.io/networks must name " + networks +
                  " of type railhead that are annotated " + "k8s.v1.cni.cncf.io/resourceName: " +
                  pool.spec.resource + " (or the cluster network must be chained with railhead)" +
                  (pool.spec.late ? "; a pod with hostNetwork gets no device of a pool with late binding, "
                                    "since no CNI plugin runs for it"
                                  : ""));
}

// All devices of the container requests that `ids` belong to.
Result<std::set<std::string>> WithSiblings(const Root& root, const resources::ResourcePool& pool,
                                           const std::vector<std::string>& ids) {
  std::set<std::string> all(ids.begin(), ids.end());
  for (const std::string& id : ids) {
    const auto record = RH_TRY_WRAP(ReadAllocation(root, id), "reading the allocation record of " + id);
    // A record of another resource means that the device has changed its pool since. Its siblings of that
    // time do not count now.
    if (record && record->resource == pool.spec.resource) {
      all.insert(record->siblings.begin(), record->siblings.end());
    }
  }
  return all;
}

}  // namespace

Result<void> CheckAttached(const Root& root, const resources::ResourcePool& pool,
                           const std::vector<std::string>& ids) {
  if (pool.spec.nccl_config != NcclConfigPolicy::kRequired) return {};
  if (ids.empty()) return Fail(ErrorCode::kInvalid, "PreStartContainer without device ids");
  const auto devices = RH_TRY(WithSiblings(root, pool, ids));
  const Journal journal(root);
  std::string sandbox;
  std::string sandbox_of;
  for (const std::string& id : devices) {
    const auto entry = RH_TRY_WRAP(journal.FindByDevice(id), "looking for the attachment of " + id);
    if (!entry) return NotAttached(pool, id, devices.size(), "is attached to no pod");
    if (entry->phase != Phase::kDone) {
      return NotAttached(pool, id, devices.size(),
                         "has an attachment that is not finished (sandbox " + entry->key.container_id + ")");
    }
    if (sandbox.empty()) {
      sandbox = entry->key.container_id;
      sandbox_of = id;
    } else if (entry->key.container_id != sandbox) {
      std::string why = "is attached to sandbox ";
      why.append(entry->key.container_id).append(", but ").append(sandbox_of);
      why.append(" of the same container to ").append(sandbox);
      return NotAttached(pool, id, devices.size(), why);
    }
  }
  return {};
}

}  // namespace railhead::kubelet
