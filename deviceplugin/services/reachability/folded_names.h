// Many names in few words: gpu-001, gpu-002, gpu-003, gpu-007 are "gpu-[001-003,007]", as hosts are written
// in lists of schedulers. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace railhead::reachability {

// Numbers within names count: gpu-2 is before gpu-10.
bool NaturallyLess(std::string_view a, std::string_view b);

// The number that is folded is the last one before the first dot; order does not matter.
std::string FoldedNames(const std::vector<std::string>& names);

}  // namespace railhead::reachability
