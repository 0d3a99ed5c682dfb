#include "tests/system/soak/processes.h"

#include <unistd.h>

#include <csignal>
#include <map>
#include <sstream>
#include <vector>

#include "netns/base/files.h"
#include "netns/base/text.h"
#include "tests/system/soak/node.h"

namespace railhead::soak {
namespace {

// "" for a file that cannot be read: the process may have ended.
std::string Content(const std::string& path) {
  const auto content = ReadFile(path);
  return content && *content ? **content : "";
}

std::vector<std::string> Numbers(const std::string& directory) {
  std::vector<std::string> numbers;
  const auto names = ListDirectory(directory);
  if (!names || !*names) return numbers;
  for (const auto& name : **names) {
    if (ParseInt(name)) numbers.push_back(name);
  }
  return numbers;
}

// "S" of "State:\tS (sleeping)".
char StateOf(const std::string& status) {
  const auto at = status.find("\nState:\t");
  return at == std::string::npos ? 'X' : status[at + 8];
}

// The first thread of a process is a zombie before its other threads have ended, which still hold its files.
bool HasEnded(const std::string& status) {
  const char state = StateOf(status);
  return (state == 'Z' || state == 'X') && FieldOf(status, "Threads") <= 1;
}

// Each process's status, by number, of all descendants.
std::map<pid_t, std::string> Descendants() {
  std::multimap<pid_t, std::pair<pid_t, std::string>> by_parent;
  for (const auto& number : Numbers("/proc")) {
    std::string status = Content("/proc/" + number + "/status");
    const auto parent = static_cast<pid_t>(FieldOf(status, "PPid"));
    by_parent.emplace(parent, std::make_pair(static_cast<pid_t>(*ParseInt(number)), std::move(status)));
  }
  std::map<pid_t, std::string> found;
  std::vector<pid_t> parents{::getpid()};
  while (!parents.empty()) {
    const auto [first, last] = by_parent.equal_range(parents.back());
    parents.pop_back();
    for (auto at = first; at != last; ++at) {
      parents.push_back(at->second.first);
      found.insert(at->second);
    }
  }
  return found;
}

void DescribeThread(const std::string& directory, std::ostringstream& text) {
  const std::string status = Content(directory + "/status");
  std::string name = Content(directory + "/comm");
  if (!name.empty()) name.pop_back();
  text << "  thread " << directory.substr(directory.rfind('/') + 1) << " " << name << ": state "
       << StateOf(status) << ", tracer " << FieldOf(status, "TracerPid") << ", in "
       << Content(directory + "/wchan") << ", system call " << Content(directory + "/syscall");
  if (status.empty()) text << "\n";
  std::istringstream stack(Content(directory + "/stack"));
  for (std::string line; std::getline(stack, line);) text << "    " << line << "\n";
}

void DescribeProcess(pid_t pid, long parent, std::ostringstream& text) {
  const std::string directory = "/proc/" + std::to_string(pid) + "/task";
  text << "process " << pid << ", parent " << parent << "\n";
  for (const auto& thread : Numbers(directory))
    DescribeThread(std::string(directory).append("/").append(thread), text);
}

}  // namespace

std::string DescribeProcesses() {
  std::ostringstream text;
  DescribeProcess(::getpid(), ::getppid(), text);
  for (const auto& [pid, status] : Descendants()) {
    if (!HasEnded(status) || FieldOf(status, "TracerPid") != 0)
      DescribeProcess(pid, FieldOf(status, "PPid"), text);
  }
  return text.str();
}

bool KillDescendants(std::chrono::milliseconds limit) {
  return Await(
      [] {
        bool all_dead = true;
        for (const auto& [pid, status] : Descendants()) {
          if (HasEnded(status)) continue;
          all_dead = false;
          (void)::kill(pid, SIGKILL);
        }
        return all_dead;
      },
      limit);
}

}  // namespace railhead::soak
