// RapidCheck within GoogleTest. Its seed is Seed() (tests/support/seed.h). RC_PARAMS in the environment sets
// the number of steps, or another seed. A failing test prints its `reproduce=...` for RC_PARAMS.
// Threads: none.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <rapidcheck/state.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "tests/support/seed.h"

namespace railhead::testing {

// RapidCheck reads its parameters from the environment only, before the first property.
inline const bool kRapidcheckIsSeeded = [] {
  const char* given = std::getenv("RC_PARAMS");
  const std::string params = given != nullptr ? given : "";
  if (params.find("seed=") != std::string::npos) return true;
  return ::setenv("RC_PARAMS", (params + " seed=" + std::to_string(Seed())).c_str(), 1) == 0;
}();

// Like RC_GTEST_PROP, for a property that a test makes itself.
template <typename Property>
void ExpectProperty(Property&& property) {
  rc::detail::checkGTest(std::forward<Property>(property));
}

}  // namespace railhead::testing
