#include "tests/system/conformance/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "netns/base/unique_fd.h"

namespace railhead::conformance {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPipesGrace{5};
constexpr std::chrono::milliseconds kSlowPause{15};
constexpr std::size_t kSlowPieces = 24;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Pipe MakePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (auto& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Waits until the child has ended and its pipes are closed.
class Attendance {
 public:
  Attendance(const Execution& execution, pid_t pid, UniqueFd in, UniqueFd out, UniqueFd err)
      : execution_(execution),
        pid_(pid),
        in_(std::move(in)),
        out_(std::move(out)),
        err_(std::move(err)),
        ended_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))),
        deadline_(Clock::now() + execution.limit) {
    if (!ended_.valid()) std::abort();
    (void)::fcntl(in_.get(), F_SETFL, O_NONBLOCK);
  }

  Outcome Run() {
    while (ended_.valid() || out_.valid() || err_.valid()) {
      const auto now = Clock::now();
      if (now >= deadline_ && !Expire()) break;
      Wait(now);
    }
    return std::move(outcome_);
  }

 private:
  // false: the pipes will not be closed.
  bool Expire() {
    if (!ended_.valid()) {
      outcome_.pipes_held = true;
      return false;
    }
    outcome_.timed_out = true;
    ::kill(pid_, SIGKILL);
    deadline_ = Clock::now() + kPipesGrace;
    return true;
  }

  void Wait(Clock::time_point now) {
    const bool may_write = in_.valid() && now >= next_write_;
    std::array<pollfd, 4> waiting{{{may_write ? in_.get() : -1, POLLOUT, 0},
                                   {out_.get(), POLLIN, 0},
                                   {err_.get(), POLLIN, 0},
                                   {ended_.get(), POLLIN, 0}}};
    auto until = deadline_;
    if (in_.valid() && !may_write) until = std::min(until, next_write_);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
    if (::poll(waiting.data(), waiting.size(), static_cast<int>(std::max<decltype(left)>(left, 0))) <= 0)
      return;
    if (waiting[0].revents != 0) Feed();
    if (waiting[1].revents != 0) Drain(out_, outcome_.out);
    if (waiting[2].revents != 0) Drain(err_, outcome_.err);
    if (waiting[3].revents != 0) Reap();
  }

  void Feed() {
    const std::string& input = execution_.input;
    std::size_t size = input.size() - fed_;
    if (execution_.feeding == Feeding::kSlow) {
      size = std::min(size, input.size() / kSlowPieces + 1);
      next_write_ = Clock::now() + kSlowPause;
    }
    const ssize_t n = size == 0 ? 0 : ::write(in_.get(), input.data() + fed_, size);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n > 0) fed_ += static_cast<std::size_t>(n);
    if (n < 0 || fed_ == input.size()) in_.Reset();
  }

  static void Drain(UniqueFd& fd, std::string& text) {
    std::array<char, 4096> buffer{};
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n > 0) text.append(buffer.data(), static_cast<std::size_t>(n));
    if (n == 0 || (n < 0 && errno != EINTR)) fd.Reset();
  }

  void Reap() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    outcome_.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    ended_.Reset();
    in_.Reset();
    deadline_ = Clock::now() + kPipesGrace;
  }

  const Execution& execution_;
  pid_t pid_;
  UniqueFd in_;
  UniqueFd out_;
  UniqueFd err_;
  UniqueFd ended_;
  Clock::time_point deadline_;
  Clock::time_point next_write_{};
  std::size_t fed_ = 0;
  Outcome outcome_;
};

}  // namespace

std::string Outcome::Describe() const {
  constexpr std::size_t kShown = 300;
  std::string text = timed_out    ? "killed after its time limit"
                     : status < 0 ? "killed by signal " + std::to_string(-status)
                                  : "exit status " + std::to_string(status);
  for (const auto& printed : {out, err}) {
    if (printed.empty()) continue;
    std::string line = printed.substr(0, kShown);
    std::replace(line.begin(), line.end(), '\n', ' ');
    text += ": " + line + (printed.size() > kShown ? "..." : "");
  }
  return text;
}

Outcome Execute(const Execution& execution) {
  std::vector<std::string> arguments = execution.arguments;
  std::vector<std::string> variables;
  variables.reserve(execution.environment.size());
  for (const auto& [name, value] : execution.environment) variables.push_back(name + "=" + value);
  const auto argv = Pointers(arguments);
  const auto envp = Pointers(variables);
  Pipe in = MakePipe();
  Pipe out = MakePipe();
  Pipe err = MakePipe();
  const pid_t pid = ::fork();
  if (pid < 0) std::abort();
  if (pid == 0) {
    (void)::signal(SIGPIPE, SIG_DFL);
    (void)::dup2(in.read.get(), STDIN_FILENO);
    (void)::dup2(out.write.get(), STDOUT_FILENO);
    (void)::dup2(err.write.get(), STDERR_FILENO);
    if (execution.feeding == Feeding::kClosed) (void)::close(STDIN_FILENO);
    if (::chdir("/") == 0) ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  in.read.Reset();
  out.write.Reset();
  err.write.Reset();
  if (execution.feeding == Feeding::kClosed) in.write.Reset();
  return Attendance(execution, pid, std::move(in.write), std::move(out.read), std::move(err.read)).Run();
}

}  // namespace railhead::conformance
