// Random values of device settings, in the kernel's form.
// Threads: those of the generator.
#pragma once

#include <random>
#include <string>

#include "netns/nl/device_state.h"
#include "tests/support/seed.h"

namespace railhead::testing {

// Of Seed() (tests/support/seed.h).
std::mt19937 SeededGenerator();

std::string RandomValue(const DeviceField& field, std::mt19937& random);
// A value other than `present`.
std::string AnotherValue(const DeviceField& field, const std::string& present, std::mt19937& random);

}  // namespace railhead::testing
