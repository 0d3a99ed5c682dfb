#include "deviceplugin/services/discovery/provision_at_start.h"

#include <string>

#include "cni/fabric/fabric.h"
#include "deviceplugin/services/provision/report.h"
#include "deviceplugin/services/provision/vf_control.h"
#include "netns/base/text.h"

namespace railhead::discovery {
namespace {

void LogOutcome(const provision::PfOutcome& pf, Log* log) {
  const provision::PfActual& actual = pf.plan.actual;
  const std::string device = actual.address.ToString();
  const std::string steps = Join(StepsOf(pf.plan), "; ");
  if (pf.error) {
    log->Warning(pf.plan.refused ? "the PF's VFs differ from the fabric, and are not changed"
                                 : "making the PF's VFs as in the fabric failed",
                 *pf.error, {{"pf", device}, {"rail", actual.rail}, {"steps", steps}});
  } else if (pf.Changed()) {
    log->Info("made the PF's VFs as in the fabric",
              {{"pf", device}, {"rail", actual.rail}, {"steps", steps}});
  }
}

}  // namespace

Result<void> ProvisionAtStart(const Root& root, Kernel& kernel, const ConfigSource& source,
                              const provision::ApplyWatch& watch, Log* log) {
  if (source.sriovdp) return {};
  const auto provision = RH_TRY(provision::ReadProvision(root, source.fabric.value_or(kFabricPath)));
  if (!provision || !provision->settings.at_start) return {};
  provision::SysfsControl control(root);
  const auto outcome =
      ApplyVfs(root, kernel, control, *provision, std::nullopt, provision::kProvisionLimit, watch);
  if (!outcome) {
    log->Warning("making VFs as in the fabric failed", outcome.error());
    return {};
  }
  for (const provision::PfOutcome& pf : outcome->pfs) LogOutcome(pf, log);
  return {};
}

}  // namespace railhead::discovery
