#include "deviceplugin/daemon/provision_at_start.h"

#include <optional>
#include <string>

#include "deviceplugin/services/provision/provisioner.h"
#include "deviceplugin/services/provision/report.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

void LogOutcome(const PfOutcome& pf, Log* log) {
  const PfActual& actual = pf.plan.actual;
  const std::string device = actual.address.ToString();
  const std::string steps = Join(StepsOf(pf.plan), "; ");
  if (pf.error) {
    log->Warning(pf.plan.refused ? "the PF's VFs are not as the fabric states, and are not changed"
                                 : "the PF's VFs could not be made as the fabric states",
                 *pf.error, {{"pf", device}, {"rail", actual.rail}, {"steps", steps}});
  } else if (pf.Changed()) {
    log->Info("made the PF's VFs as the fabric states",
              {{"pf", device}, {"rail", actual.rail}, {"steps", steps}});
  }
}

}  // namespace

Result<void> ProvisionAtStart(const Root& root, Kernel& kernel, const ConfigSource& source,
                              const ApplyWatch& watch, Log* log) {
  if (source.sriovdp) return {};
  const auto provision = RH_TRY(ReadProvision(root, source.fabric.value_or(kFabricPath)));
  if (!provision || !provision->settings.at_start) return {};
  SysfsControl control(root);
  const auto outcome = ApplyVfs(root, kernel, control, *provision, std::nullopt, kProvisionLimit, watch);
  if (!outcome) {
    log->Warning("cannot make VFs as the fabric states", outcome.error());
    return {};
  }
  for (const PfOutcome& pf : outcome->pfs) LogOutcome(pf, log);
  return {};
}

}  // namespace railhead
