// One execution of a program, as a container runtime does it. It has pipes for standard input, output and
// error output, and its own environment. The caller waits for the program and its pipes.
//
// A runtime waits for the process and until its pipes are closed, so a child that keeps them open blocks it.
// So this code watches the pipes after the exit.
// Threads: any; each call waits for its own child only. SIGPIPE must be ignored.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace railhead::conformance {

enum class Feeding : std::uint8_t {
  kWhole,   // as fast as it is read
  kSlow,    // in pieces, with pauses
  kClosed,  // descriptor 0 is not open at all
};

struct Execution {
  std::vector<std::string> arguments;  // the program's path first
  std::map<std::string, std::string> environment;
  std::string input;
  Feeding feeding = Feeding::kWhole;
  std::chrono::seconds limit{120};
};

struct Outcome {
  int status = -1;          // exit status; -signal when killed by one
  bool timed_out = false;   // killed by us
  bool pipes_held = false;  // open for seconds after the process had ended
  std::string out;
  std::string err;

  [[nodiscard]] bool Succeeded() const { return status == 0 && !timed_out; }
  // "exit status 1: ..." with the shortened output.
  [[nodiscard]] std::string Describe() const;
};

Outcome Execute(const Execution& execution);

}  // namespace railhead::conformance
