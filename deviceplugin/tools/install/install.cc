#include "deviceplugin/tools/install/install.h"

#include <elf.h>

#include <cstring>
#include <utility>

#include "deviceplugin/tools/install/version.h"
#include "netns/base/files.h"

namespace railhead::install {
namespace {

// Printing a version takes milliseconds. A disk that must spin up needs seconds.
constexpr std::chrono::seconds kAnswerWithin{30};
constexpr mode_t kMode = 0755;

Result<FileToInstall> ReadProgram(const std::string& path, const std::string& name) {
  auto content = RH_TRY(ReadFile(path, kMaxInstalledSize));
  if (!content) {
    return Fail(ErrorCode::kNotFound, "no such file: " + path, "name the directory that has it with --from");
  }
  return FileToInstall{name, std::move(*content)};
}

// The machine that an ELF file is for; nullopt for another file.
std::optional<std::string> MachineOf(std::string_view content) {
  Elf32_Ehdr header{};  // to its machine as that of 64 bits
  if (content.size() < sizeof header || content.substr(0, SELFMAG) != ELFMAG) return std::nullopt;
  std::memcpy(&header, content.data(), sizeof header);
  switch (header.e_machine) {
    case EM_X86_64:
      return "x86_64";
    case EM_AARCH64:
      return "aarch64";
    default:
      return "machine " + std::to_string(header.e_machine);
  }
}

// Why a program does not run here, if it is for another machine than this one; otherwise "".
Result<std::string> OtherMachine(const std::string& path, std::string_view content) {
  const auto theirs = MachineOf(content);
  const auto self = RH_TRY(ReadFile("/proc/self/exe", kMaxInstalledSize));
  const auto ours = self ? MachineOf(*self) : std::nullopt;
  if (!theirs || !ours || *theirs == *ours) return std::string();
  return path + " is a program for " + *theirs + ", and this node is " + *ours;
}

// A program that does not run here would not run for the container runtime either.
Result<std::string> OurVersion(const std::string& path, const FileToInstall& file) {
  const std::string& name = file.name;
  auto version = AskVersion(path, name, kAnswerWithin);
  if (!version) {
    if (auto why = RH_TRY(OtherMachine(path, file.content)); !why.empty())
      return Fail(ErrorCode::kInvalid, std::move(why), "take the programs or the image for this node");
    return Fail(ErrorCode::kInvalid, path + " does not tell its version: it is damaged, or no " + name,
                "run " + path + " --version");
  }
  return std::move(*version);
}

// The caller replaces a program that does not run, and its user learns why it did not.
Result<std::string> WarningOf(const std::string& path) {
  const auto content = RH_TRY(ReadFile(path, kMaxInstalledSize));
  if (!content) return std::string();
  auto why = RH_TRY(OtherMachine(path, *content));
  if (!why.empty()) why.append("; it is replaced");
  return why;
}

Result<void> RefuseOlder(const InstalledProgram& program, const std::string& path) {
  if (!program.previous || *ParseVersion(*program.previous) <= *ParseVersion(program.version)) return {};
  return Fail(ErrorCode::kConflict,
              path + " is version " + *program.previous + ", newer than " + program.version + "; it is kept",
              "to go back to the older one: --allow-downgrade; with Helm: cniInstall.allowDowngrade");
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
    const auto version = RH_TRY(OurVersion(ours, files.back()));
    InstalledProgram program{
        name, InstallOutcome::kUnchanged, version, AskVersion(hosts, name, kAnswerWithin), {}};
    if (!program.previous) program.warning = RH_TRY(WarningOf(hosts));
    if (!order.allow_downgrade) RH_TRY(RefuseOlder(program, hosts));
    programs.push_back(std::move(program));
  }
  const auto installed = RH_TRY(directory.Put(files, kMode));
  for (std::size_t i = 0; i < programs.size(); ++i) programs[i].outcome = installed[i].outcome;
  return programs;
}

}  // namespace railhead::install
