#include "deviceplugin/tools/railctl/overrides.h"

#include <cerrno>
#include <iterator>

#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/ns/processes.h"

namespace railhead {

std::vector<Override> OverridesIn(pid_t pid, const std::string& environ, const ToldLines& told) {
  std::vector<Override> overrides;
  for (const std::string& line : Split(told.text, '\n')) {
    const std::string name = line.substr(0, line.find('='));
    if (name.size() == line.size()) continue;
    for (const std::string& variable : Split(environ, '\0')) {
      if (variable == line || !variable.starts_with(name + "=")) continue;
      overrides.push_back(
          {pid, name, variable.substr(name.size() + 1), line.substr(name.size() + 1), told.where});
    }
  }
  return overrides;
}

Result<std::vector<Override>> FindOverrides(const NetNs& pod, const std::vector<ToldLines>& told) {
  std::vector<Override> overrides;
  for (const pid_t pid : RH_TRY(ProcessesIn(pod))) {
    const auto environ = ReadFile("/proc/" + std::to_string(pid) + "/environ");
    if (!environ && environ.error().sys_errno == ESRCH) continue;
    if (!environ) return Fail(environ.error());
    if (!*environ) continue;
    for (const ToldLines& lines : told) {
      auto of_process = OverridesIn(pid, **environ, lines);
      std::move(of_process.begin(), of_process.end(), std::back_inserter(overrides));
    }
  }
  return overrides;
}

}  // namespace railhead
