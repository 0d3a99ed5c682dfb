// What is read once for all test programs instead of once for each of their files; see tests/CMakeLists.txt
// and netns/json/precompiled.h, which it adds gtest to.
#pragma once

#include <gtest/gtest.h>

#include "netns/json/precompiled.h"
