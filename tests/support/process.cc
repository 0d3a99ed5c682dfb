#include "tests/support/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>

#include "netns/base/unique_fd.h"

namespace railhead::testing {
namespace {

// A file without name: unlike a pipe it never makes the program wait.
UniqueFd Temporary() {
  std::string name = "/tmp/railhead-process-XXXXXX";
  UniqueFd fd(::mkostemp(name.data(), O_CLOEXEC));
  (void)::unlink(name.c_str());
  return fd;
}

std::string Content(int fd) {
  std::string text;
  std::array<char, 4096> buffer{};
  (void)::lseek(fd, 0, SEEK_SET);
  for (ssize_t n = 0; (n = ::read(fd, buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return text;
}

[[noreturn]] void Exec(const std::vector<std::string>& arguments,
                       const std::map<std::string, std::string>& environment) {
  std::vector<std::string> variables;
  variables.reserve(environment.size());
  for (const auto& [name, value] : environment) variables.emplace_back(name).append("=").append(value);
  std::vector<char*> envp;
  envp.reserve(variables.size() + 1);
  for (auto& variable : variables) envp.push_back(variable.data());
  envp.push_back(nullptr);
  std::vector<std::string> copies = arguments;
  std::vector<char*> argv;
  argv.reserve(copies.size() + 1);
  for (auto& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  ::execve(argv[0], argv.data(), envp.data());
  ::_exit(127);
}

}  // namespace

ProcessOutput RunProcess(const std::vector<std::string>& arguments,
                         const std::map<std::string, std::string>& environment, const std::string& input,
                         int input_repeat) {
  const UniqueFd out = Temporary();
  const UniqueFd err = Temporary();
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) std::abort();
  const pid_t pid = ::fork();
  if (pid == 0) {
    (void)::dup2(pipe[0], STDIN_FILENO);
    (void)::dup2(out.get(), STDOUT_FILENO);
    (void)::dup2(err.get(), STDERR_FILENO);
    Exec(arguments, environment);
  }
  ::close(pipe[0]);
  const auto old = ::signal(SIGPIPE, SIG_IGN);
  for (int i = 0; i < input_repeat; ++i) {
    std::size_t done = 0;
    while (done < input.size()) {
      const ssize_t n = ::write(pipe[1], input.data() + done, input.size() - done);
      if (n < 0) break;
      done += static_cast<std::size_t>(n);
    }
    if (done < input.size()) break;
  }
  ::close(pipe[1]);
  (void)::signal(SIGPIPE, old);
  int status = 0;
  (void)::waitpid(pid, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), Content(out.get()),
          Content(err.get())};
}

}  // namespace railhead::testing
