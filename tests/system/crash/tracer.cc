#include "tests/system/crash/tracer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <set>
#include <thread>

#include "netns/base/files.h"
#include "netns/base/unique_fd.h"
#include "tests/system/crash/traced_tree.h"

namespace railhead::crash {
namespace {

Result<UniqueFd> MemoryFile(const char* name, const std::string& content) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC));
  if (!fd.valid()) return FailSys(errno, "making a memory file");
  if (::write(fd.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()))
    return FailSys(errno, "filling a memory file");
  (void)::lseek(fd.get(), 0, SEEK_SET);
  return fd;
}

std::string ContentOf(const UniqueFd& fd) {
  std::string content;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t size = ::pread(fd.get(), buffer.data(), buffer.size(), static_cast<off_t>(content.size()));
    if (size <= 0) return content;
    content.append(buffer.data(), static_cast<std::size_t>(size));
  }
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (auto& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// A child that waits until the tracer has it, then runs `body`.
Result<TraceResult> TraceForked(const std::function<void()>& body, const Tracing& tracing, bool executes) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return FailSys(errno, "making a pipe");
  const UniqueFd wait_here(pipe[0]);
  const UniqueFd gate(pipe[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return FailSys(errno, "making a process");
  if (pid == 0) {
    char byte = 0;
    while (::read(wait_here.get(), &byte, 1) < 0 && errno == EINTR) {
    }
    body();
    ::_exit(127);
  }
  TracedTree tree(tracing);
  RH_TRY(tree.Seize(pid, executes));
  if (tracing.started) tracing.started(pid);
  if (::write(gate.get(), "", 1) != 1) return FailSys(errno, "starting a process");
  return tree.Follow();
}

// Traces in a thread that has no other children. Orphans become children of the main thread (Adopt()).
// Another thread may still trace them. A waitpid of their real parent takes their stops nevertheless
// (wait_consider_task in kernel/exit.c). Then their tracer would wait for ever.
Result<TraceResult> TraceChild(const std::function<void()>& body, const Tracing& tracing, bool executes) {
  Result<TraceResult> result;
  std::thread([&] { result = TraceForked(body, tracing, executes); }).join();
  return result;
}

}  // namespace

Result<TraceResult> Trace(const Command& command, const Tracing& tracing) {
  std::vector<std::string> arguments = command.arguments;
  std::vector<std::string> environment = command.environment;
  const auto argument_pointers = Pointers(arguments);
  const auto environment_pointers = Pointers(environment);
  const UniqueFd input = RH_TRY(MemoryFile("input", command.input.value_or("")));
  const UniqueFd output = RH_TRY(MemoryFile("output", ""));
  const UniqueFd errors(command.errors.empty() ? -1
                                               : ::open(command.errors.c_str(),
                                                        O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const auto execute = [&] {
    if (command.input) {
      ::dup2(input.get(), STDIN_FILENO);
      ::dup2(output.get(), STDOUT_FILENO);
    }
    if (errors.valid()) ::dup2(errors.get(), STDERR_FILENO);
    ::execve(argument_pointers[0], argument_pointers.data(), environment_pointers.data());
  };
  TraceResult result = RH_TRY(TraceChild(execute, tracing, true));
  if (result.processes.at(0).program.empty()) {
    return Fail(ErrorCode::kIo, "running " + command.arguments.at(0) + ": it could not be executed");
  }
  result.output = ContentOf(output);
  return result;
}

Result<TraceResult> TraceFunction(const std::function<int()>& work, const Tracing& tracing) {
  return TraceChild([&] { ::_exit(work()); }, tracing, false);
}

void Adopt() {
  (void)::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Result<void> AwaitOrphans(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const pid_t pid = ::waitpid(-1, nullptr, __WALL | WNOHANG);
    if (pid < 0 && errno == ECHILD) return {};
    if (pid != 0) continue;
    if (std::chrono::steady_clock::now() >= deadline) {
      return Fail(ErrorCode::kTimeout,
                  "a process is still running " + std::to_string(limit.count()) + " ms after all was done");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace railhead::crash
