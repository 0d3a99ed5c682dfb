// Plans and outcomes of provisioning for people and for programs. The JSON's shape is
// documented in docs/reference/kernel-interfaces.md.
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "deviceplugin/services/provision/provisioner.h"

namespace railhead::provision {

// The steps of the plan, to do or done, in their order: "make 8 VFs".
std::vector<std::string> StepsOf(const PfPlan& plan);

std::string PlanAsText(const VfsPlan& plan);
std::string OutcomeAsText(const VfsOutcome& outcome);

}  // namespace railhead::provision
