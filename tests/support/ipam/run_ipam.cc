#include "tests/support/ipam/run_ipam.h"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "netns/base/unique_fd.h"

namespace railhead::testing {
namespace {

// Files in memory instead of pipes: nothing blocks, whatever is read or not.
UniqueFd MemoryFile(const std::string& content) {
  UniqueFd fd(::memfd_create("stdio", MFD_CLOEXEC));
  if (!fd.valid() ||
      ::write(fd.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()) ||
      ::lseek(fd.get(), 0, SEEK_SET) != 0) {
    std::perror("test set-up: memory file");
    std::abort();
  }
  return fd;
}

std::string Content(const UniqueFd& fd) {
  std::string content(static_cast<std::size_t>(::lseek(fd.get(), 0, SEEK_END)), '\0');
  if (::pread(fd.get(), content.data(), content.size(), 0) != static_cast<ssize_t>(content.size()))
    std::abort();
  return content;
}

class Process {
 public:
  Process(std::vector<std::string> arguments, std::vector<std::string> environment, const std::string& input)
      : in_(MemoryFile(input)), out_(MemoryFile("")), err_(MemoryFile("")) {
    arguments.insert(arguments.begin(), RAILHEAD_IPAM);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, in_.get(), STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, out_.get(), STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, err_.get(), STDERR_FILENO);
    if (::posix_spawn(&pid_, RAILHEAD_IPAM, &actions, nullptr, Pointers(arguments).data(),
                      Pointers(environment).data()) != 0) {
      std::perror("test set-up: starting " RAILHEAD_IPAM);
      std::abort();
    }
    ::posix_spawn_file_actions_destroy(&actions);
  }
  Answer Wait() {
    int status = 0;
    if (::waitpid(pid_, &status, 0) != pid_) std::abort();
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status), Content(out_), Content(err_)};
  }

 private:
  static std::vector<char*> Pointers(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    pointers.reserve(texts.size() + 1);
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
  }

  UniqueFd in_;
  UniqueFd out_;
  UniqueFd err_;
  pid_t pid_ = -1;
};

Process Start(const std::string& root, const Call& call) {
  std::vector<std::string> environment{
      "RAILHEAD_ROOT=" + root,     "CNI_COMMAND=" + call.command, "CNI_CONTAINERID=" + call.container,
      "CNI_IFNAME=" + call.ifname, "CNI_NETNS=" + call.netns,     "CNI_PATH=/usr/lib/cni",
      "CNI_ARGS=" + call.args};
  return {{}, std::move(environment), call.config};
}

}  // namespace

nlohmann::json Answer::Json() const {
  auto json = nlohmann::json::parse(out, nullptr, false);
  return json.is_discarded() ? nlohmann::json() : json;
}

std::string Answer::Address() const {
  const auto json = Json();
  if (status == 0 && json.is_object() && json.contains("ips") && json["ips"].size() == 1) {
    return json["ips"][0]["address"].get<std::string>();
  }
  return std::to_string(status) + " " + out + err;
}

std::string Answer::Addresses() const {
  const auto json = Json();
  if (status != 0 || !json.is_object()) return Address();
  std::string text;
  for (const auto& ip : json.value("ips", nlohmann::json::array())) {
    if (!text.empty()) text += ", ";
    if (ip.contains("interface")) text += std::to_string(ip["interface"].get<int>()) + " ";
    text += ip["address"].get<std::string>();
    if (ip.contains("gateway")) text += " via " + ip["gateway"].get<std::string>();
  }
  return text;
}

std::string Answer::Error() const {
  const auto json = Json();
  if (status != 1 || !json.is_object() || !json.contains("code")) return "no CNI error: " + Address();
  return std::to_string(json["code"].get<int>()) + ": " + json["msg"].get<std::string>() +
         (json.contains("details") ? "; " + json["details"].get<std::string>() : "");
}

Answer RunIpam(const std::string& root, const Call& call) {
  return Start(root, call).Wait();
}

std::vector<Answer> RunIpamAtOnce(const std::string& root, const std::vector<Call>& calls) {
  std::vector<Process> processes;
  processes.reserve(calls.size());
  for (const Call& call : calls) processes.push_back(Start(root, call));
  std::vector<Answer> answers;
  answers.reserve(calls.size());
  for (Process& process : processes) answers.push_back(process.Wait());
  return answers;
}

Answer RunIpamWith(const std::vector<std::string>& arguments) {
  return Process(arguments, {}, "").Wait();
}

}  // namespace railhead::testing
