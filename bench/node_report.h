// The table of railheadd with many VFs.
// Threads: pure.
#pragma once

#include <string>

#include "bench/record.h"

namespace railhead::bench {

// "" when it was not measured.
std::string NodeTable(const Record& record);

}  // namespace railhead::bench
