#include "bench/process.h"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "netns/base/unique_fd.h"

namespace railhead::bench {
namespace {

Result<UniqueFd> MemoryFile(const char* name, const std::string& content) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC));
  if (!fd.valid()) return FailSys(errno, "making a memory file");
  if (!content.empty() &&
      ::write(fd.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size())) {
    return FailSys(errno, "filling a memory file");
  }
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

double Milliseconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
}

struct Ended {
  Cost cost;
  int status = 0;
};

Result<Ended> SpawnAndWait(const ProcessCall& call, std::array<int, 3> standard) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (int i = 0; i < 3; ++i) ::posix_spawn_file_actions_adddup2(&actions, standard.at(i), i);
  std::vector<std::string> arguments = {call.path};
  arguments.insert(arguments.end(), call.arguments.begin(), call.arguments.end());
  std::vector<std::string> environment = call.environment;
  const auto argument_pointers = Pointers(arguments);
  const auto environment_pointers = Pointers(environment);

  Ended ended;
  pid_t pid = 0;
  rusage usage{};
  const auto start = std::chrono::steady_clock::now();
  const int error = ::posix_spawn(&pid, call.path.c_str(), &actions, nullptr, argument_pointers.data(),
                                  environment_pointers.data());
  if (error == 0) {
    while (::wait4(pid, &ended.status, 0, &usage) < 0 && errno == EINTR) {
    }
  }
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return FailSys(error, "running " + call.path);
  ended.cost = {took.count(), Milliseconds(usage.ru_utime) + Milliseconds(usage.ru_stime)};
  return ended;
}

}  // namespace

Cost& Cost::operator+=(const Cost& other) {
  wall_ms += other.wall_ms;
  cpu_ms += other.cpu_ms;
  return *this;
}

Result<ProcessResult> RunProcess(const ProcessCall& call) {
  const UniqueFd input = RH_TRY(MemoryFile("input", call.input));
  const UniqueFd output = RH_TRY(MemoryFile("output", ""));
  const UniqueFd errors = RH_TRY(MemoryFile("errors", ""));
  const Ended ended = RH_TRY(SpawnAndWait(call, {input.get(), output.get(), errors.get()}));
  std::string text = ContentOf(output);
  if (!WIFEXITED(ended.status) || WEXITSTATUS(ended.status) != 0) {
    const std::string end = WIFSIGNALED(ended.status)
                                ? "killed by signal " + std::to_string(WTERMSIG(ended.status))
                                : "exit status " + std::to_string(WEXITSTATUS(ended.status));
    return Fail(ErrorCode::kIo, call.path + ": " + end + ": " + text + ContentOf(errors));
  }
  return ProcessResult{ended.cost, std::move(text)};
}

}  // namespace railhead::bench
