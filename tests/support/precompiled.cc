// A precompiled header needs a target that has a source (tests/CMakeLists.txt).
#include "tests/support/precompiled.h"
