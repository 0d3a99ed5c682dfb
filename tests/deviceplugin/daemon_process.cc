#include "tests/deviceplugin/daemon_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <thread>

#include "netns/base/files.h"
#include "netns/base/unique_fd.h"

namespace railhead::testing {

using Clock = std::chrono::steady_clock;

Clock::time_point Soon() {
  return Clock::now() + std::chrono::seconds(60);
}

bool Eventually(const std::function<bool()>& condition) {
  for (const auto deadline = Soon(); Clock::now() < deadline;) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return condition();
}

Child::Child(const std::string& directory, const std::string& root, const std::vector<std::string>& arguments)
    : out_path_(directory + "/stdout"), err_path_(directory + "/stderr") {
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const std::string variable = "RAILHEAD_ROOT=" + root;
  std::array<char*, 2> environment{const_cast<char*>(variable.c_str()), nullptr};
  const UniqueFd out(::open(out_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const UniqueFd err(::open(err_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(out.get(), STDOUT_FILENO);
    ::dup2(err.get(), STDERR_FILENO);
    ::execve(argv[0], argv.data(), environment.data());
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
  return std::make_unique<Child>(directory, sysfs_.directory(), arguments);
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
