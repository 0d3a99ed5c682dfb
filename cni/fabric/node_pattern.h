// Patterns of node names: '*' for any characters, '?' for one, and "[001-032]" for a number of that width
// from the first to the last. Everything else stands for itself. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace railhead {

// What is wrong with the pattern; "": nothing.
std::string FaultOfNodePattern(std::string_view pattern);
// A pattern with a fault has no name.
bool MatchesNodePattern(std::string_view pattern, std::string_view name);

}  // namespace railhead
