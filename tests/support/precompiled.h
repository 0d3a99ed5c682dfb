// The precompiled header of all test programs. It adds gtest to netns/json/precompiled.h; see
// tests/CMakeLists.txt.
#pragma once

#include <gtest/gtest.h>

#include "netns/json/precompiled.h"
