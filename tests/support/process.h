// Runs a program with a given environment and standard input, for tests of binaries.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace railhead::testing {

struct ProcessOutput {
  int status = -1;  // exit status; -signal when killed
  std::string out;
  std::string err;
};

// `environment` is all that the program gets. `input_repeat` > 0: `input` that many
// times, or until the program stops reading.
ProcessOutput RunProcess(const std::vector<std::string>& arguments,
                         const std::map<std::string, std::string>& environment, const std::string& input,
                         int input_repeat = 1);

}  // namespace railhead::testing
