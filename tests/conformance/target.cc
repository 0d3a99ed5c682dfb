#include "tests/conformance/target.h"

#include <unistd.h>

#include <algorithm>

#include "netns/base/text.h"
#include "tests/conformance/process.h"

namespace railhead::conformance {

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
  Execution execution;
  execution.arguments = {target.program};
  execution.environment = target.environment;
  execution.environment["CNI_COMMAND"] = "VERSION";
  execution.input = R"({"cniVersion":"1.0.0"})";
  const auto answer = ParseJson(Execute(execution).out);
  target.versions.clear();
  if (answer && answer->is_object() && answer->contains("supportedVersions")) {
    for (const auto& version : (*answer)["supportedVersions"]) {
      if (version.is_string()) target.versions.push_back(version.get<std::string>());
    }
  }
  if (target.versions.empty()) target.versions.push_back(Text(target.config, "cniVersion"));
  for (const auto& known : KnownVersions()) {
    if (target.Supports(known)) target.version = known;
  }
  if (target.version.empty()) target.version = target.versions.back();
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
