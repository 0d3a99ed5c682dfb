#include "tests/system/conformance/target.h"

#include <unistd.h>

#include <algorithm>

#include "netns/base/text.h"
#include "tests/system/conformance/process.h"

namespace railhead::conformance {

namespace {

std::vector<std::string> VersionsOf(const Target& target, const std::string& program) {
  Execution execution;
  execution.arguments = {program};
  execution.environment = target.environment;
  execution.environment["CNI_COMMAND"] = "VERSION";
  execution.input = R"({"cniVersion":"1.0.0"})";
  const auto answer = ParseJson(Execute(execution).out);
  std::vector<std::string> versions;
  if (!answer || !answer->is_object() || !answer->contains("supportedVersions")) return versions;
  for (const auto& version : (*answer)["supportedVersions"]) {
    if (version.is_string()) versions.push_back(version.get<std::string>());
  }
  return versions;
}

}  // namespace

std::string Target::IpamType() const {
  if (kind == Kind::kIpam) return Text(config, "type");
  const auto ipam = config.find("ipam");
  return ipam == config.end() ? std::string() : Text(*ipam, "type");
}

bool Target::Supports(const std::string& cni_version) const {
  return std::find(versions.begin(), versions.end(), cni_version) != versions.end();
}

std::string FindProgram(const std::string& plugin_path, const std::string& type) {
  for (const auto& directory : Split(plugin_path, ':')) {
    std::string program = directory + "/" + type;
    if (!type.empty() && ::access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

const std::vector<std::string>& KnownVersions() {
  static const std::vector<std::string> versions = {"0.1.0", "0.2.0", "0.3.0", "0.3.1",
                                                    "0.4.0", "1.0.0", "1.1.0"};
  return versions;
}

void ProbeVersions(Target& target) {
  target.versions = VersionsOf(target, target.program);
  if (target.versions.empty()) target.versions.push_back(Text(target.config, "cniVersion"));
  target.version = target.versions.back();
  for (const auto& known : KnownVersions()) {
    if (target.Supports(known)) target.version = known;
  }
  if (target.ipam_program.empty()) return;
  target.ipam_version = target.version;
  const auto of_ipam = VersionsOf(target, target.ipam_program);
  for (const auto& known : KnownVersions()) {
    const bool common = std::find(of_ipam.begin(), of_ipam.end(), known) != of_ipam.end();
    if (common && AtLeast(target.version, known)) target.ipam_version = known;
  }
}

Result<std::string> RunShell(const std::string& command,
                             const std::map<std::string, std::string>& environment) {
  Execution execution;
  execution.arguments = {"/bin/sh", "-ec", command};
  execution.environment = environment;
  execution.environment["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  const Outcome outcome = Execute(execution);
  if (!outcome.Succeeded()) return Fail(ErrorCode::kIo, "'" + command + "': " + outcome.Describe());
  return outcome.out;
}

}  // namespace railhead::conformance
