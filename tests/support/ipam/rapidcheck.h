// RapidCheck within GoogleTest. Steps are random each time; how many, and which to repeat after a
// failure, is said by RC_PARAMS in the environment: what fails prints its `reproduce=...`.
// Threads: none.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <rapidcheck/state.h>

#include <utility>

namespace railhead::testing {

// As RC_GTEST_PROP, for a property that a test makes for itself.
template <typename Property>
void ExpectProperty(Property&& property) {
  rc::detail::checkGTest(std::forward<Property>(property));
}

}  // namespace railhead::testing
