// A program as a child of the test: its input, its end, and its output.
//
// Threads: only the thread that made it. A failure to start it ends the test program.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "netns/base/unique_fd.h"

namespace railhead::testing {

struct ProcessSpec {
  std::vector<std::string> arguments;  // the program is found along PATH
  // "NAME=VALUE": its whole environment. nullopt: the test's environment.
  std::optional<std::vector<std::string>> environment = std::nullopt;
  std::string input = {};  // a file, so that neither side ever waits
  // Files to which output is appended. "": kept in memory.
  std::string out = {};
  std::string err = {};
  // Kills it when this thread ends for any reason.
  bool ends_with_test = false;
  // Runs before the program does; it may only make system calls.
  std::function<void()> in_child = {};
};

class Process {
 public:
  explicit Process(const ProcessSpec& spec);
  ~Process();  // SIGKILL, if it is still there
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Exit status; -signal when killed. A further call returns the same status.
  int Wait();
  int Stop();  // SIGTERM
  void Kill();
  void Signal(int signal) const;
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool HasEnded() const;
  // Whether the process has this path open. A path is also open while a read waits.
  [[nodiscard]] bool HasOpen(const std::string& path) const;
  // The most memory that it has had so far.
  [[nodiscard]] std::size_t PeakBytes() const;
  [[nodiscard]] std::string out() const;
  [[nodiscard]] std::string err() const;
  // How much of its input it has read.
  [[nodiscard]] std::size_t taken() const;

 private:
  UniqueFd in_;
  UniqueFd out_;
  UniqueFd err_;
  pid_t pid_ = -1;
  int status_ = 0;
};

struct ProcessOutput {
  int status = -1;  // exit status; -signal when killed
  std::string out;
  std::string err;
  std::size_t taken = 0;  // how much of its input it has read
};

// Runs it to its end. `environment` is the program's whole environment.
ProcessOutput RunProcess(const std::vector<std::string>& arguments,
                         const std::map<std::string, std::string>& environment, const std::string& input);

}  // namespace railhead::testing
