#include "cni/protocol/delegate.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <map>
#include <string_view>
#include <utility>

#include "cni/protocol/cni_result.h"
#include "netns/base/text.h"
#include "netns/base/unique_fd.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): not every libc declares it

namespace railhead {
namespace {

Result<std::string> FindPlugin(const CniRequest& request, const std::string& type) {
  if (type.empty() || type[0] == '.' || type.find('/') != std::string::npos) {
    return Fail(ErrorCode::kInvalid, "'" + type + "' is not a plugin name", "name the plugin without a path");
  }
  for (const auto& directory : request.path) {
    std::string path = directory;
    path.append("/").append(type);
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return Fail(ErrorCode::kNotFound, "plugin '" + type + "' is not in CNI_PATH " + Join(request.path, ":"),
              "install it there");
}

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> MakePipe() {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) return FailSys(errno, "making a pipe");
  return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

std::string ArgsText(const std::map<std::string, std::string>& args) {
  std::string text;
  for (const auto& [name, value] : args) {
    if (!text.empty()) text += ';';
    text.append(name).append("=").append(value);
  }
  return text;
}

std::vector<std::string> EnvironmentFor(const CniRequest& request, const std::string& command) {
  const std::map<std::string, std::string> ours = {{"CNI_COMMAND", command},
                                                   {"CNI_CONTAINERID", request.container_id},
                                                   {"CNI_NETNS", request.netns},
                                                   {"CNI_IFNAME", request.ifname},
                                                   {"CNI_ARGS", ArgsText(request.args)},
                                                   {"CNI_PATH", Join(request.path, ":")}};
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (!ours.contains(std::string(text.substr(0, text.find('='))))) variables.emplace_back(text);
  }
  for (const auto& [name, value] : ours) {
    std::string variable = name;
    if (!value.empty()) variables.push_back(variable.append("=").append(value));
  }
  return variables;
}

Result<pid_t> Spawn(const CniRequest& request, const std::string& path, const DelegateCall& call, int in,
                    int out) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  // dup2 of a descriptor onto itself clears close-on-exec (POSIX posix_spawn).
  for (const int fd : call.inherited_fds) ::posix_spawn_file_actions_adddup2(&actions, fd, fd);
  std::vector<std::string> variables = EnvironmentFor(request, call.command);
  std::vector<char*> environment;
  environment.reserve(variables.size() + 1);
  for (auto& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  std::string name = path;
  std::array<char*, 2> arguments{name.data(), nullptr};
  pid_t pid = 0;
  // This process ignores SIGPIPE. A child that inherited that would not notice that the reader of its output
  // is gone.
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t defaults;
  ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  // A daemon blocks the signals that end it. Its children must not.
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  // A process group of its own, so that the child and its children can be killed together.
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  const int error =
      ::posix_spawn(&pid, path.c_str(), &actions, &attributes, arguments.data(), environment.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return FailSys(error, "running " + path);
  return pid;
}

// A running child and our ends of its pipes.
struct Child {
  pid_t pid = 0;
  UniqueFd ended;  // readable when it has
  UniqueFd to;
  UniqueFd from;
};

// false: the output has ended, or nothing can be read now.
Result<bool> ReadSome(int fd, std::string* output) {
  std::array<char, 4096> buffer{};
  const ssize_t n = ::read(fd, buffer.data(), buffer.size());
  if (n < 0 && errno == EINTR) return true;
  if (n < 0 && errno == EAGAIN) return false;
  if (n < 0) return FailSys(errno, "reading from the delegated plugin");
  output->append(buffer.data(), static_cast<std::size_t>(n));
  if (output->size() > JsonDocument::kMaxSize)
    return Fail(ErrorCode::kIo, "the delegated plugin prints without end");
  return n > 0;
}

// false: all is written, or the child accepts no more input.
bool WriteSome(int fd, std::string_view* input) {
  const ssize_t n = ::write(fd, input->data(), input->size());
  if (n > 0) input->remove_prefix(static_cast<std::size_t>(n));
  return (n >= 0 || errno == EAGAIN || errno == EINTR) && !input->empty();
}

// Writes `input` and collects the output at the same time, since either may be larger than a pipe. A child
// may ignore its input. Ends when the child ends, not when its output ends: a process that it started may
// keep the output open, and the child may close it and live on.
Result<std::string> Converse(std::string_view input, Child& child, std::chrono::seconds limit) {
  (void)::fcntl(child.to.get(), F_SETFL, O_NONBLOCK);
  (void)::fcntl(child.from.get(), F_SETFL, O_NONBLOCK);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  std::string output;
  if (input.empty()) child.to.Reset();
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      return Fail(ErrorCode::kTimeout,
                  "no answer within " + std::to_string(limit.count()) + " s; it was killed",
                  "see what it waits for: its store, or a server that does not answer");
    }
    std::array<pollfd, 3> polled{pollfd{child.from.get(), POLLIN, 0}, pollfd{child.to.get(), POLLOUT, 0},
                                 pollfd{child.ended.get(), POLLIN, 0}};
    if (::poll(polled.data(), polled.size(), static_cast<int>(left.count())) < 0) {
      if (errno == EINTR) continue;
      return FailSys(errno, "waiting for the delegated plugin");
    }
    if (polled[1].revents != 0 && !WriteSome(child.to.get(), &input)) child.to.Reset();
    if ((polled[0].revents & POLLIN) != 0) {
      RH_TRY(ReadSome(child.from.get(), &output));
    } else if (polled[0].revents != 0) {
      child.from.Reset();  // all of its writers have closed it
    }
    if (polled[2].revents == 0) continue;
    while (child.from.valid() && RH_TRY(ReadSome(child.from.get(), &output))) {
    }
    return output;
  }
}

// The child's own error, which sets *refused, or how the child ended.
Error ErrorOf(const std::string& output, int status, bool* refused) {
  const auto document = JsonDocument::Parse(output, "its output");
  std::string reason = WIFSIGNALED(status) ? "killed by signal " + std::to_string(WTERMSIG(status))
                                           : "exit status " + std::to_string(WEXITSTATUS(status));
  if (!document) return {ErrorCode::kIo, reason + " without a CNI error", "", 0};
  JsonReader reader = document->Root();
  const auto code = reader.Int("code", 0, INT32_MAX);
  const auto msg = reader.String("msg");
  *refused = WIFEXITED(status) && code.has_value();
  ErrorCode ours = code ? ErrorCodeOfCni(static_cast<int>(*code)) : ErrorCode::kIo;
  // Callers take kNotFound for a missing plugin. Other plugins use code 101 for errors of their own.
  if (ours == ErrorCode::kNotFound) ours = ErrorCode::kIo;
  return {ours, msg ? *msg : reason, reader.String("details").value_or(""), 0};
}

// Reaps the child. `kill`: kills it first, with all processes that it started.
int End(const Child& child, bool kill) {
  if (kill) (void)::kill(-child.pid, SIGKILL);
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

Result<Child> Start(const CniRequest& request, const std::string& path, const DelegateCall& call) {
  Pipe in = RH_TRY(MakePipe());
  Pipe out = RH_TRY(MakePipe());
  Child child;
  child.pid = RH_TRY(Spawn(request, path, call, in.read.get(), out.write.get()));
  child.to = std::move(in.write);
  child.from = std::move(out.read);
  child.ended.Reset(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
  if (child.ended.valid()) return child;
  const int error = errno;
  (void)End(child, true);
  return FailSys(error, "watching " + path);
}

}  // namespace

Result<std::string> RunDelegate(const CniRequest& request, const DelegateCall& call, bool* refused) {
  const std::string path = RH_TRY(FindPlugin(request, call.type));
  const std::string what = call.type + " " + call.command;
  // A child that exits early must cost us a write error, not the process.
  const auto old_handler = ::signal(SIGPIPE, SIG_IGN);
  auto child = Start(request, path, call);
  Result<std::string> output;
  int status = 0;
  if (child) {
    output = Converse(call.config, *child, call.limit);
    status = End(*child, !output);
  }
  (void)::signal(SIGPIPE, old_handler);
  if (!child) return Fail(child.error());
  if (!output || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) return WithContext(std::move(output), what);
  bool answered = false;
  const Error error = ErrorOf(*output, status, &answered);
  if (refused != nullptr) *refused = answered;
  return Fail(Wrap(error, what));
}

}  // namespace railhead
