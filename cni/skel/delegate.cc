#include "cni/skel/delegate.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <map>
#include <string_view>
#include <utility>

#include "cni/skel/cni_error.h"
#include "netns/base/text.h"
#include "netns/base/unique_fd.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): not every libc declares it

namespace railhead {
namespace {

Result<std::string> FindPlugin(const CniRequest& request, const std::string& type) {
  if (type.empty() || type.find('/') != std::string::npos) {
    return Fail(ErrorCode::kInvalid, "'" + type + "' is no plugin name", "name the plugin without a path");
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
  // We ignore SIGPIPE, and a child would inherit that: one that prints without
  // end would never notice that nobody listens.
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t defaults;
  ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  // A daemon blocks the signals that end it, and its children must not.
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  const int error =
      ::posix_spawn(&pid, path.c_str(), &actions, &attributes, arguments.data(), environment.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return FailSys(error, "running " + path);
  return pid;
}

// Feeds `input` and collects the output at the same time: either side may be
// larger than a pipe. A child that does not read its input is no error.
Result<std::string> Converse(std::string_view input, UniqueFd to, UniqueFd from) {
  (void)::fcntl(to.get(), F_SETFL, O_NONBLOCK);
  std::string output;
  std::array<char, 4096> buffer{};
  for (;;) {
    if (input.empty()) to.Reset();
    std::array<pollfd, 2> polled{pollfd{from.get(), POLLIN, 0}, pollfd{to.get(), POLLOUT, 0}};
    if (::poll(polled.data(), polled.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return FailSys(errno, "waiting for the delegated plugin");
    }
    if (polled[1].revents != 0) {
      const ssize_t n = ::write(to.get(), input.data(), input.size());
      if (n > 0) input.remove_prefix(static_cast<std::size_t>(n));
      if (n < 0 && errno != EAGAIN && errno != EINTR) input = {};
    }
    if (polled[0].revents != 0) {
      const ssize_t n = ::read(from.get(), buffer.data(), buffer.size());
      if (n == 0) return output;
      if (n < 0 && errno != EINTR) return FailSys(errno, "reading from the delegated plugin");
      if (n > 0) output.append(buffer.data(), static_cast<std::size_t>(n));
      if (output.size() > JsonDocument::kMaxSize)
        return Fail(ErrorCode::kIo, "the delegated plugin prints without end");
    }
  }
}

Result<void> ErrorOf(const std::string& output, int status) {
  const auto document = JsonDocument::Parse(output, "its output");
  std::string reason = WIFSIGNALED(status) ? "killed by signal " + std::to_string(WTERMSIG(status))
                                           : "exit status " + std::to_string(WEXITSTATUS(status));
  if (!document) return Fail(ErrorCode::kIo, reason + " without a CNI error");
  JsonReader reader = document->Root();
  const auto code = reader.Int("code", 0, INT32_MAX);
  const auto msg = reader.String("msg");
  ErrorCode ours = code ? ErrorCodeOfCni(static_cast<int>(*code)) : ErrorCode::kIo;
  // 101 means something else to every plugin; here it means that there is no plugin.
  if (ours == ErrorCode::kNotFound) ours = ErrorCode::kIo;
  return Fail(ours, msg ? *msg : reason, reader.String("details").value_or(""));
}

}  // namespace

Result<std::string> RunDelegate(const CniRequest& request, const DelegateCall& call) {
  const std::string path = RH_TRY(FindPlugin(request, call.type));
  Pipe in = RH_TRY(MakePipe());
  Pipe out = RH_TRY(MakePipe());
  // A child that exits early must cost us a write error, not the process.
  const auto old_handler = ::signal(SIGPIPE, SIG_IGN);
  const auto pid = Spawn(request, path, call, in.read.get(), out.write.get());
  in.read.Reset();
  out.write.Reset();
  Result<std::string> output;
  int status = 0;
  if (pid) {
    output = Converse(call.config, std::move(in.write), std::move(out.read));
    if (!output) (void)::kill(*pid, SIGKILL);  // it may never end by itself
    while (::waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
    }
  }
  (void)::signal(SIGPIPE, old_handler);
  RH_TRY(pid);
  const std::string what = call.type + " " + call.command;
  if (output && !(WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
    RH_TRY_WRAP(ErrorOf(*output, status), what);
  }
  return WithContext(std::move(output), what);
}

}  // namespace railhead
