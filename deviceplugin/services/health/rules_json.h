// Rules of health as settings: what ReadHealthRules() makes the same rules of.
//
// Everything is told, what is as by default too, so that it means the same under another version's defaults.
// Threads: pure function.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "deviceplugin/services/health/rules.h"

namespace railhead {

nlohmann::ordered_json HealthRulesAsJson(const HealthRules& rules);

}  // namespace railhead
