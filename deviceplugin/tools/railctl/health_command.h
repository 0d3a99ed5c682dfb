// Health in words, as the commands print it.
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "deviceplugin/services/health/observation.h"
#include "deviceplugin/services/health/state_file.h"

namespace railhead::railctl {

// "link: PF pf0 has no carrier; rdmaPort: ..."
std::string TextOf(const std::vector<HealthReason>& reasons);
// "0000:43:00.0 and 8 VFs"
std::string WhoOf(const HealthRecord& record);
// What began, and what is over.
std::string WhatOf(const HealthRecord& record);

}  // namespace railhead::railctl
