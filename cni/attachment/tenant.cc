#include "cni/attachment/tenant.h"

#include <optional>
#include <string>

#include "cni/attachment/device_use.h"
#include "cni/attachment/reset.h"

namespace railhead {
namespace {

std::string WhyReset(const Tenant& last) {
  return last.left.empty() ? Describe(last) + " had it before" : last.left;
}

// Of a device that stays as it is.
Result<void> RequireFree(const Root& root, Kernel& kernel, const Journal& journal, const LinkPlan& link,
                         const Tenant& last, const std::string& why) {
  const auto on_host = link.user_space ? std::nullopt : std::optional<Link>(link.host_link);
  auto unused = RequireUnused(root, kernel, journal, link.device, on_host);
  if (unused) return {};
  Error error = std::move(unused.error());
  error.hint +=
      (error.hint.empty() ? "" : "; ") + Describe(last) + " had it before, and it was not reset: " + why;
  return Fail(std::move(error));
}

Result<bool> MakeReady(const Root& root, Kernel& kernel, const Journal& journal, const Tenant& tenant,
                       ResetPolicy policy, const LinkPlan& link) {
  const auto last = RH_TRY(ReadTenant(root, link.bdf));
  if (!last) return false;
  const bool due = last->pod_namespace != tenant.pod_namespace || !last->left.empty();
  if (policy == ResetPolicy::kNever) {
    if (due) RH_TRY(RequireFree(root, kernel, journal, link, *last, "policy.reset is never"));
    return false;
  }
  if (!due && policy == ResetPolicy::kTenant) return false;
  const ResetOutcome outcome = RH_TRY(ResetDevice(root, kernel, journal, link.bdf, WhyReset(*last)));
  if (outcome.impossible.empty()) return true;
  if (due) RH_TRY(RequireFree(root, kernel, journal, link, *last, outcome.impossible));
  return false;
}

}  // namespace

Result<bool> MakeReadyFor(const Root& root, Kernel& kernel, const Journal& journal, const Tenant& tenant,
                          ResetPolicy policy, const AttachPlan& plan) {
  bool changed = false;
  for (const LinkPlan& link : plan.links)
    changed = RH_TRY(MakeReady(root, kernel, journal, tenant, policy, link)) || changed;
  return changed;
}

Result<void> RecordTenant(const Root& root, const Tenant& tenant, const AttachPlan& plan) {
  for (const LinkPlan& link : plan.links) {
    const auto last = RH_TRY(ReadTenant(root, link.bdf));
    Tenant now = tenant;
    // What could not be reset is still there.
    if (last) now.left = last->left;
    if (last == now) continue;
    RH_TRY_WRAP(WriteTenant(root, link.bdf, now), "recording who gets device " + link.bdf);
  }
  return {};
}

}  // namespace railhead
