// RapidCheck within GoogleTest. Steps are random each time. RC_PARAMS in the environment sets their number,
// and repeats a failure: a failing test prints its `reproduce=...`.
// Threads: none.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <rapidcheck/state.h>

#include <utility>

namespace railhead::testing {

// Like RC_GTEST_PROP, for a property that a test makes itself.
template <typename Property>
void ExpectProperty(Property&& property) {
  rc::detail::checkGTest(std::forward<Property>(property));
}

}  // namespace railhead::testing
