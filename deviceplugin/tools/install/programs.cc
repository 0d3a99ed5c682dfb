#include "deviceplugin/tools/install/programs.h"

#include <utility>

#include "deviceplugin/tools/install/version.h"
#include "netns/base/files.h"

namespace railhead {
namespace {

// A program that prints its version needs milliseconds; a disk that has to spin up, seconds.
constexpr std::chrono::seconds kAnswerWithin{30};
constexpr mode_t kMode = 0755;

Result<FileToInstall> ReadProgram(const std::string& path, const std::string& name) {
  auto content = RH_TRY(ReadFile(path, kMaxInstalledSize));
  if (!content) {
    return Fail(ErrorCode::kNotFound, "there is no " + path,
                "name the directory that has railhead and railhead-ipam with --from");
  }
  return FileToInstall{name, std::move(*content)};
}

// What does not run here would not run for the container runtime either.
Result<std::string> OurVersion(const std::string& path, const std::string& name) {
  auto version = AskVersion(path, name, kAnswerWithin);
  if (!version) {
    return Fail(ErrorCode::kInvalid, path + " does not tell its version: it is damaged, or no " + name,
                "run " + path + " --version");
  }
  return std::move(*version);
}

Result<void> RefuseOlder(const InstalledProgram& program, const std::string& path) {
  if (!program.previous || *ParseVersion(*program.previous) <= *ParseVersion(program.version)) return {};
  return Fail(ErrorCode::kConflict,
              path + " is version " + *program.previous + ", newer than " + program.version + "; it is kept",
              "to go back to the older one: --force");
}

}  // namespace

Result<std::vector<InstalledProgram>> InstallPrograms(const ProgramOrder& order) {
  const InstallDirectory directory = RH_TRY(InstallDirectory::Open(order.to));
  std::vector<FileToInstall> files;
  std::vector<InstalledProgram> programs;
  for (const std::string& name : order.names) {
    const std::string ours = order.from + "/" + name;
    const std::string hosts = directory.PathOf(name);
    files.push_back(RH_TRY(ReadProgram(ours, name)));
    const auto version = RH_TRY(OurVersion(ours, name));
    InstalledProgram program{name, InstallOutcome::kUnchanged, version,
                             AskVersion(hosts, name, kAnswerWithin)};
    if (!order.force) RH_TRY(RefuseOlder(program, hosts));
    programs.push_back(std::move(program));
  }
  const auto installed = RH_TRY(directory.Put(files, kMode));
  for (std::size_t i = 0; i < programs.size(); ++i) programs[i].outcome = installed[i].outcome;
  return programs;
}

}  // namespace railhead
