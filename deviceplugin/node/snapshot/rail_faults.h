// RailFaults: the rails that probes reach nothing on, or not enough, and why, for people. A rail that is not
// in it has no known fault. Threads: a value.
#pragma once

#include <map>
#include <string>

namespace railhead {

using RailFaults = std::map<std::string, std::string>;  // by rail

}  // namespace railhead
