// kill_at: runs a program and kills one of its processes before one of its system calls.
//
//   kill_at --count PROGRAM [ARGUMENT...]                      calls of an undisturbed run
//   kill_at [--process P] --call N PROGRAM [ARGUMENT...]       kill process P at its call N
//
// The program gets kill_at's environment, standard input and output; kill_at's own messages go to standard
// error. Exit status: the program's; 128 + signal when a signal killed it.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "tests/system/crash/tracer.h"

namespace railhead::crash {
namespace {

struct Line {
  bool count = false;
  CallPoint at;
  std::vector<std::string> command;
};

void ShowCounts(const TraceResult& result) {
  for (std::size_t i = 0; i < result.processes.size(); ++i) {
    const auto& process = result.processes[i];
    (void)std::fprintf(stderr, "process %zu %s: %zu calls\n", i,
                       process.program.empty() ? "(fork)" : process.program.c_str(), process.calls.size());
  }
}

int Run(const Line& line) {
  Command command;
  command.arguments = line.command;
  for (char** variable = environ; *variable != nullptr; ++variable)
    command.environment.emplace_back(*variable);
  Tracing tracing;
  tracing.count = line.count;
  if (!line.count) tracing.at = line.at;
  const auto result = Trace(command, tracing);
  if (!result) {
    (void)std::fprintf(stderr, "kill_at: %s\n", Describe(result.error()).c_str());
    return 1;
  }
  if (line.count) ShowCounts(*result);
  if (tracing.at) {
    (void)std::fprintf(stderr, "kill_at: process %d %s call %d%s\n", line.at.process,
                       result->reached ? "was killed at" : "has no", line.at.call,
                       result->reached ? (", " + NameOfCall(result->call)).c_str() : "");
  }
  return WIFSIGNALED(result->status) ? 128 + WTERMSIG(result->status) : WEXITSTATUS(result->status);
}

int Main(int argc, char** argv) {
  Line line;
  CLI::App app("Kills a process before one of its system calls");
  auto* count = app.add_flag("--count", line.count, "Print how many calls each process makes");
  app.add_option("--process", line.at.process, "Which process, in the order of their creation")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--call", line.at.call, "Which of its calls, from 1")
      ->check(CLI::PositiveNumber)
      ->excludes(count);
  app.add_option("command", line.command, "Program, by its path, and arguments")->required();
  app.positionals_at_end();
  CLI11_PARSE(app, argc, argv);
  if (!line.count && line.at.call == 0) {
    (void)std::fputs("kill_at: --count or --call is needed; see --help\n", stderr);
    return 2;
  }
  return Run(line);
}

}  // namespace
}  // namespace railhead::crash

int main(int argc, char** argv) {
  return railhead::crash::Main(argc, argv);
}
