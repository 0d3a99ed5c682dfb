// The target of the test: a plugin, its configuration, and the needs of an attachment.
// Threads: value.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "tests/system/conformance/json.h"

namespace railhead::conformance {

enum class Kind : std::uint8_t {
  kInterface,  // makes the interface CNI_IFNAME
  kIpam,       // hands out addresses and touches no interface
};

struct Target {
  std::string program;
  std::string ipam_program;  // "": no IPAM plugin
  std::string plugin_path;   // CNI_PATH
  Kind kind = Kind::kInterface;
  Json config;                                     // one plugin's, as an operator writes it
  Json runtime;                                    // runtimeConfig of every ADD, DEL and CHECK; null: none
  std::string args;                                // CNI_ARGS
  std::map<std::string, std::string> environment;  // beside CNI_*
  std::string prepare;                             // shell commands; "": none
  std::string setup;
  std::string cleanup;
  int containers = 8;  // at once
  // How long the kernel may take to remove deleted interfaces.
  std::chrono::seconds settle{3};

  // The answer of VERSION.
  std::vector<std::string> versions;
  // The highest of `versions` that the suite knows.
  std::string version;
  // The IPAM plugin's highest version that is not above `version`; "": no IPAM plugin.
  std::string ipam_version;

  [[nodiscard]] std::string IpamType() const;
  [[nodiscard]] bool Supports(const std::string& cni_version) const;
};

// The first executable of that name in a list of directories; "" if it is not found.
std::string FindProgram(const std::string& plugin_path, const std::string& type);

// The versions of the specification that are checked.
const std::vector<std::string>& KnownVersions();

// Fills `versions`, `version` and `ipam_version`. A plugin that does not answer counts as supporting the
// version in its configuration.
void ProbeVersions(Target& target);

// Runs a shell command in the host's namespaces. Returns its output.
Result<std::string> RunShell(const std::string& command,
                             const std::map<std::string, std::string>& environment);

}  // namespace railhead::conformance
