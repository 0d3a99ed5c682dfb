#include "cni/attachment/host_state.h"

#include <string>

#include "cni/attachment/host_device.h"
#include "cni/state/displaced_names.h"
#include "netns/base/text.h"

namespace railhead::attachment {
namespace {

// The names to restore. A device that has a substitute name now gets its own one.
Result<void> ReadHostNames(const Root& root, const Link& link, AttachedDevice& record) {
  AttachedDevice::Before& before = record.before;
  before.name = RH_TRY(OwnNameOf(root, record.device, link.name));
  before.alt_names = link.alt_names;
  const auto own = RH_TRY(ReadDisplacedNames(root, record.device));
  if (!own || own->name != before.name) return {};
  for (const std::string& name : own->alt_names) {
    if (!Contains(before.alt_names, name)) before.alt_names.push_back(name);
  }
  return {};
}

}  // namespace

Result<void> ReadHostState(const Root& root, DevicePlan& plan) {
  AttachedDevice::Before& before = plan.record.before;
  before.driver = plan.function.driver.value_or("");
  before.user_space = IsForUserSpace(plan.function);
  if (before.user_space) {
    // A device without netdev has only the MAC that its PF gives it.
    if (before.vf) before.mac = MacOf(*before.vf);
    return {};
  }
  before.parentless = plan.link.parent_device.empty();
  before.mac = plan.link.mac;
  before.up = plan.link.up;
  before.link = SettingsOf(plan.link);
  return ReadHostNames(root, plan.link, plan.record);
}

}  // namespace railhead::attachment
