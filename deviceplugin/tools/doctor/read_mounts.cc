// Whether the directories that other programs own are theirs where railheadd looks for them.
#include <sys/stat.h>

#include <string_view>

#include "cni/state/paths.h"
#include "deviceplugin/tools/doctor/read_facts.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/ns/propagation.h"

namespace railhead::doctor {
namespace {

constexpr const char* kDefaultKubeletRoot = "/var/lib/kubelet";
constexpr std::string_view kRootDir = "--root-dir";

// Of its command line: the option is in no configuration file (cmd/kubelet/app/options).
std::string RootDirOf(const std::string& command_line) {
  std::string root_dir = kDefaultKubeletRoot;
  const auto words = Split(command_line, '\0');
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (word.starts_with("--root-dir=")) root_dir = word.substr(kRootDir.size() + 1);
    if (word == kRootDir && i + 1 < words.size()) root_dir = words[i + 1];
  }
  while (root_dir.size() > 1 && root_dir.ends_with('/')) root_dir.pop_back();
  return root_dir;
}

Result<bool> IsSameDirectory(const std::string& ours, const std::string& theirs) {
  struct stat one {};
  struct stat other {};
  if (::stat(theirs.c_str(), &other) != 0) return FailSys(errno, "looking at " + theirs);
  if (::stat(ours.c_str(), &one) != 0) return false;
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

}  // namespace

Fact<KubeletFacts> ReadKubelet(const Root& root) {
  const std::string proc = root.Path("/proc/");
  const auto names = ListDirectory(proc);
  if (!names) return Fact<KubeletFacts>::Unknown(Describe(names.error()));
  for (const std::string& name : names->value_or(std::vector<std::string>{})) {
    if (!ParseInt(name)) continue;
    const auto command = ReadAttribute(proc + name + "/comm");
    if (!command || *command != "kubelet") continue;
    const auto line = ReadFile(proc + name + "/cmdline");
    if (!line) return Fact<KubeletFacts>::Unknown(Describe(line.error()));
    KubeletFacts facts;
    facts.root_dir = RootDirOf(line->value_or(""));
    facts.has_our_pods = Fact<bool>::Of(
        IsSameDirectory(paths::KubeletPods(root), proc + name + "/root" + facts.root_dir + "/pods"));
    return facts;
  }
  return Fact<KubeletFacts>::Unknown("no process called kubelet is seen");
}

Fact<std::vector<std::string>> ReadHiddenDirectories(const Root& root) {
  std::vector<std::string> hidden;
  for (const char* directory : kNetnsDirectories) {
    if (!Exists(root.Path(directory))) continue;
    const auto sees = SeesMountsOfHost(root, directory);
    if (!sees) return Fact<std::vector<std::string>>::Unknown(Describe(sees.error()));
    if (!*sees) hidden.emplace_back(directory);
  }
  return hidden;
}

}  // namespace railhead::doctor
