#include "cni/attachment/make_ready.h"

#include <optional>
#include <string>
#include <utility>

#include "cni/attachment/require_unused.h"
#include "cni/attachment/reset.h"

namespace railhead::attachment {
namespace {

std::string WhyReset(const Tenant& last) {
  return last.leftover.empty() ? Describe(last) + " had it before" : last.leftover;
}

// For a device that is not reset.
Result<void> RequireFree(const Root& root, Kernel& kernel, const Journal& journal, const DevicePlan& plan,
                         const Tenant& last, const std::string& why) {
  const auto on_host = plan.record.before.user_space ? std::nullopt : std::optional<Link>(plan.link);
  auto unused = RequireUnused(root, kernel, journal, plan.function, on_host);
  if (unused) return {};
  Error error = std::move(unused.error());
  error.hint +=
      (error.hint.empty() ? "" : "; ") + Describe(last) + " had it before, and it was not reset: " + why;
  return Fail(std::move(error));
}

Result<bool> MakeReady(const Root& root, Kernel& kernel, const Journal& journal, const Tenant& tenant,
                       ResetPolicy policy, const DevicePlan& plan) {
  const auto last = RH_TRY(ReadTenant(root, plan.record.device));
  if (!last) return false;
  const bool due = last->pod_namespace != tenant.pod_namespace || !last->leftover.empty();
  if (policy == ResetPolicy::kNever) {
    if (due) RH_TRY(RequireFree(root, kernel, journal, plan, *last, "policy.reset is never"));
    return false;
  }
  if (!due && policy == ResetPolicy::kTenant) return false;
  const ResetOutcome outcome =
      RH_TRY(ResetDevice(root, kernel, journal, plan.record.device, WhyReset(*last)));
  if (outcome.impossible.empty()) return true;
  if (due) RH_TRY(RequireFree(root, kernel, journal, plan, *last, outcome.impossible));
  return false;
}

}  // namespace

Result<bool> MakeReadyFor(const Root& root, Kernel& kernel, const Journal& journal, const Tenant& tenant,
                          ResetPolicy policy, const AttachPlan& plan) {
  bool changed = false;
  for (const DevicePlan& device : plan.devices)
    changed = RH_TRY(MakeReady(root, kernel, journal, tenant, policy, device)) || changed;
  return changed;
}

}  // namespace railhead::attachment
