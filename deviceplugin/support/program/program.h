// Asks a program of ours: runs it by its path, and returns the beginning of what it prints.
//
// No shell and no search in PATH is involved. Its input is empty, and its standard error is discarded. A
// program that has not ended within the limit is killed. If the kernel cannot end it, as in a call of a
// driver, it is left to itself a second later. Threads: thread-safe; waits for the child.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace railhead {

struct ProgramCall {
  std::string path;
  std::vector<std::string> arguments;    // without its name
  std::vector<std::string> environment;  // the whole, as "NAME=VALUE"
  std::chrono::milliseconds limit{0};
};

// What it has printed, up to 256 bytes, if it ended in time with exit status 0. Else nullopt, also when it
// could not be started.
std::optional<std::string> AskProgram(const ProgramCall& call);

}  // namespace railhead
