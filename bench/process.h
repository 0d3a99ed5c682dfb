// One child process, timed: the way a container runtime starts a CNI plugin.
//
// Input, output and error output are memory files, prepared before the clock
// starts and read after it has stopped: measured is spawn to wait, and no pipe
// that somebody has to serve.
// Threads: any; one call waits for its own child only.
#pragma once

#include <string>
#include <vector>

#include "netns/base/result.h"

namespace railhead::bench {

struct ProcessCall {
  std::string path;
  std::vector<std::string> arguments;    // without the program's name
  std::vector<std::string> environment;  // "NAME=value"; nothing is inherited
  std::string input;
};

// What a piece of work costs.
struct Cost {
  double wall_ms = 0;
  double cpu_ms = 0;  // user and system time of the process and its children

  Cost& operator+=(const Cost& other);
};

struct Part {  // one process of an ADD or DEL
  std::string name;
  Cost cost;
};

struct ProcessResult {
  Cost cost;
  std::string output;
};

// kIo with the child's own words when it cannot be started or fails.
Result<ProcessResult> RunProcess(const ProcessCall& call);

}  // namespace railhead::bench
