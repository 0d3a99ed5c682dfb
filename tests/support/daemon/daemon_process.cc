#include "tests/support/daemon/daemon_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "netns/base/files.h"
#include "netns/base/unique_fd.h"

namespace railhead::testing {

using Clock = std::chrono::steady_clock;

Clock::time_point Soon() {
  return Clock::now() + std::chrono::seconds(60);
}

Child::Child(const std::string& directory, const std::string& root, const std::vector<std::string>& arguments,
             std::vector<std::string> environment)
    : out_path_(directory + "/stdout"), err_path_(directory + "/stderr") {
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  environment.push_back("RAILHEAD_ROOT=" + root);
  std::vector<char*> envp;
  for (std::string& variable : environment) envp.push_back(variable.data());
  envp.push_back(nullptr);
  const UniqueFd out(::open(out_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const UniqueFd err(::open(err_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(out.get(), STDOUT_FILENO);
    ::dup2(err.get(), STDERR_FILENO);
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
}

Child::~Child() {
  if (pid_ > 0) Kill();
}

int Child::Wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int Child::Stop() {
  Signal(SIGTERM);
  return Wait();
}

void Child::Kill() {
  Signal(SIGKILL);
  (void)Wait();
}

void Child::Signal(int signal) const {
  (void)::kill(pid_, signal);
}

bool Child::HasEnded() const {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid_;
}

bool Child::HasOpen(const std::string& path) const {
  const std::string directory = "/proc/" + std::to_string(pid_) + "/fd";
  for (const std::string& fd : ListDirectory(directory).value().value_or(std::vector<std::string>{})) {
    const auto target = ReadLink(std::string(directory).append("/").append(fd));  // it may be closed by now
    if (target && *target == path) return true;
  }
  return false;
}

std::size_t Child::PeakBytes() const {
  const std::string status =
      ReadFile("/proc/" + std::to_string(pid_) + "/status").value().value_or(std::string());
  constexpr std::string_view kName = "VmHWM:";
  const auto at = status.find(kName);
  if (at == std::string::npos) return 0;
  return std::strtoull(status.c_str() + at + kName.size(), nullptr, 10) * 1024;
}

std::string Child::out() const {
  return ReadFile(out_path_).value().value_or("");
}

std::string Child::err() const {
  return ReadFile(err_path_).value().value_or("");
}

ProcessTest::ProcessTest() {
  sysfs_.Write("/etc/railhead/fabric.json", TwoRailFabric());
}

std::unique_ptr<Child> ProcessTest::Run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), RAILHEADD);
  const std::string directory = sysfs_.directory() + "/run" + std::to_string(++runs_);
  (void)MakeDirectories(directory);
  return std::make_unique<Child>(directory, sysfs_.directory(), arguments, environment_);
}

KubeletTest::KubeletTest() {
  (void)MakeDirectories(directory_);
}

std::size_t KubeletTest::OurSockets() const {
  std::size_t count = 0;
  const auto names = ListDirectory(sockets_).value().value_or(std::vector<std::string>{});
  for (const std::string& name : names) count += name.rfind("railhead-", 0) == 0 ? 1 : 0;
  return count;
}

std::unique_ptr<Child> KubeletTest::RunDaemon(std::vector<std::string> more) {
  more.insert(more.begin(), {"--kubelet-dir", "/kubelet"});
  return Run(std::move(more));
}

}  // namespace railhead::testing
