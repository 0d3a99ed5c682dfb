// Differences that CHECK and railheadd report, one sentence each.
// Threads: values.
#pragma once

#include <string>
#include <vector>

namespace railhead::attachment {

using Differences = std::vector<std::string>;

inline void CheckValue(Differences& differences, const std::string& what, const std::string& is,
                       const std::string& should) {
  if (is != should) differences.push_back(what + " is " + is + ", should be " + should);
}

}  // namespace railhead::attachment
