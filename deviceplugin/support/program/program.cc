#include "deviceplugin/support/program/program.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "netns/base/unique_fd.h"

namespace railhead {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxAnswer = 256;
constexpr std::chrono::seconds kDeathWithin{1};

// false: it did not end within `limit`.
bool AwaitEnd(int ended, std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd polled{ended, POLLIN, 0};
    const int ready = left.count() > 0 ? ::poll(&polled, 1, static_cast<int>(left.count())) : 0;
    if (ready < 0 && errno == EINTR) continue;
    return ready > 0;
  }
}

// The present content of the pipe. A program that has filled it has not ended.
std::string ReadAnswer(int fd) {
  (void)::fcntl(fd, F_SETFL, O_NONBLOCK);
  std::array<char, kMaxAnswer> buffer{};
  const ssize_t n = ::read(fd, buffer.data(), buffer.size());
  return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
}

// `texts` with a null pointer behind them, for as long as they live.
std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Standard output goes to `out`.
std::optional<pid_t> Spawn(const ProgramCall& call, int out) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const std::string& path = call.path;
  std::vector<std::string> words{path};
  words.insert(words.end(), call.arguments.begin(), call.arguments.end());
  std::vector<std::string> variables = call.environment;
  const std::vector<char*> arguments = Pointers(words);
  const std::vector<char*> environment = Pointers(variables);
  pid_t pid = 0;
  const int error =
      ::posix_spawn(&pid, path.c_str(), &actions, nullptr, arguments.data(), environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return std::nullopt;
  return pid;
}

// Whether it ended by itself, in time, with exit status 0.
bool EndsWell(pid_t pid, std::chrono::milliseconds limit) {
  const UniqueFd ended(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const bool in_time = ended.valid() && AwaitEnd(ended.get(), limit);
  if (!in_time) (void)::kill(pid, SIGKILL);
  if (!in_time && ended.valid() && !AwaitEnd(ended.get(), kDeathWithin)) return false;
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return in_time && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::optional<std::string> AskProgram(const ProgramCall& call) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  const UniqueFd in(ends[0]);
  UniqueFd out(ends[1]);
  const auto pid = Spawn(call, out.get());
  out.Reset();
  if (!pid || !EndsWell(*pid, call.limit)) return std::nullopt;
  return ReadAnswer(in.get());
}

}  // namespace railhead
