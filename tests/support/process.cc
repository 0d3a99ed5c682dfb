#include "tests/support/process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "netns/base/files.h"

namespace railhead::testing {
namespace {

[[noreturn]] void Die(const char* what) {
  std::perror(what);
  std::abort();
}

UniqueFd OpenOutput(const std::string& path) {
  UniqueFd fd(path.empty() ? ::memfd_create("output", MFD_CLOEXEC)
                           : ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!fd.valid()) Die("test set-up: a file for output");
  return fd;
}

UniqueFd InputOf(std::string_view content) {
  UniqueFd fd(::memfd_create("input", MFD_CLOEXEC));
  while (!content.empty()) {
    const ssize_t size = ::write(fd.get(), content.data(), content.size());
    if (size < 0) Die("test set-up: a file for input");
    content.remove_prefix(static_cast<std::size_t>(size));
  }
  if (::lseek(fd.get(), 0, SEEK_SET) != 0) Die("test set-up: a file for input");
  return fd;
}

std::string Content(const UniqueFd& fd) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t n = 0;
       (n = ::pread(fd.get(), buffer.data(), buffer.size(), static_cast<off_t>(text.size()))) > 0;)
    text.append(buffer.data(), static_cast<std::size_t>(n));
  return text;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Process::Process(const ProcessSpec& spec)
    : in_(InputOf(spec.input)), out_(OpenOutput(spec.out)), err_(OpenOutput(spec.err)) {
  std::vector<std::string> arguments = spec.arguments;
  std::vector<std::string> environment = spec.environment.value_or(std::vector<std::string>());
  const auto argv = Pointers(arguments);
  const auto envp = Pointers(environment);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) Die("test set-up: fork");
  if (pid_ > 0) return;
  if (spec.ends_with_test && (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent)) ::_exit(1);
  (void)::dup2(in_.get(), STDIN_FILENO);
  (void)::dup2(out_.get(), STDOUT_FILENO);
  (void)::dup2(err_.get(), STDERR_FILENO);
  if (spec.in_child) spec.in_child();
  (void)::execvpe(argv[0], argv.data(), spec.environment ? envp.data() : environ);
  ::_exit(127);
}

Process::~Process() {
  Kill();
}

int Process::Wait() {
  if (pid_ <= 0) return status_;
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int Process::Stop() {
  Signal(SIGTERM);
  return Wait();
}

void Process::Kill() {
  Signal(SIGKILL);
  (void)Wait();
}

void Process::Signal(int signal) const {
  if (pid_ > 0) (void)::kill(pid_, signal);
}

bool Process::HasEnded() const {
  siginfo_t info{};
  return pid_ <= 0 || (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
                       info.si_pid == pid_);
}

bool Process::HasOpen(const std::string& path) const {
  const std::string directory = "/proc/" + std::to_string(pid_) + "/fd";
  for (const std::string& fd : ListDirectory(directory).value().value_or(std::vector<std::string>{})) {
    const auto target = ReadLink(std::string(directory).append("/").append(fd));  // it may be closed by now
    if (target && *target == path) return true;
  }
  return false;
}

std::size_t Process::PeakBytes() const {
  const std::string status =
      ReadFile("/proc/" + std::to_string(pid_) + "/status").value().value_or(std::string());
  constexpr std::string_view kName = "VmHWM:";
  const auto at = status.find(kName);
  if (at == std::string::npos) return 0;
  return std::strtoull(status.c_str() + at + kName.size(), nullptr, 10) * 1024;
}

std::string Process::out() const {
  return Content(out_);
}

std::string Process::err() const {
  return Content(err_);
}

std::size_t Process::taken() const {
  return static_cast<std::size_t>(::lseek(in_.get(), 0, SEEK_CUR));
}

ProcessOutput RunProcess(const std::vector<std::string>& arguments,
                         const std::map<std::string, std::string>& environment, const std::string& input) {
  std::vector<std::string> variables;
  variables.reserve(environment.size());
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  Process process({.arguments = arguments, .environment = variables, .input = input});
  const int status = process.Wait();
  return {status, process.out(), process.err(), process.taken()};
}

}  // namespace railhead::testing
