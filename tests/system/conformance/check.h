// Checks: the requirements on a plugin, one by one.
//
// A check is a function on a fixture. It returns an error that describes the fault, or
// Fixture::NotApplicable() if it does not apply to this plugin. Each call makes the lists again, without a
// registry.
// Threads: checks run one after another.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "tests/system/conformance/fixture.h"

namespace railhead::conformance {

// The specification's words. kExtra: the specification does not demand it, but runtimes and operators rely on
// it.
enum class Severity : std::uint8_t { kMust, kShould, kExtra };

// What a check needs from the target. The check itself may still not apply.
struct Needs {
  bool interface = false;    // a plugin that makes interfaces
  bool ipam = false;         // the plugin is an IPAM plugin or calls one
  const char* version = "";  // the plugin supports at least this version
};

struct Check {
  std::string id;
  std::string title;
  std::string section;  // of SPEC.md 1.1.0, or another source
  Severity severity = Severity::kMust;
  Needs needs;
  std::function<Result<void>(Fixture&)> body;
};

std::vector<Check> VersionChecks();
std::vector<Check> EnvironmentChecks();
std::vector<Check> ConfigurationChecks();
std::vector<Check> ErrorChecks();
std::vector<Check> AddChecks();
std::vector<Check> ResultChecks();
std::vector<Check> CheckChecks();
std::vector<Check> DelChecks();
std::vector<Check> ChainChecks();
std::vector<Check> GcChecks();
std::vector<Check> StatusChecks();
std::vector<Check> ConcurrencyChecks();
std::vector<Check> ProcessChecks();

// All checks, in the order in which they should run.
std::vector<Check> AllChecks();

inline constexpr Needs kInterface{true, false, ""};

}  // namespace railhead::conformance
