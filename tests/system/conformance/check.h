// Checks: what is asked of a plugin, one by one.
//
// A check is a function on a fixture. It returns an error that says what is wrong, or
// Fixture::NotApplicable() when it says nothing about this plugin. The lists are made
// anew by each call; there is no registry.
// Threads: checks run one after another.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "tests/system/conformance/fixture.h"

namespace railhead::conformance {

// The specification's words; kExtra: not in it, but runtimes and operators rely on it.
enum class Severity : std::uint8_t { kMust, kShould, kExtra };

// What makes a check applicable, beside its own judgement.
struct Needs {
  bool interface = false;    // a plugin that makes interfaces
  bool ipam = false;         // an IPAM plugin, itself or below
  const char* version = "";  // the plugin supports at least this version
};

struct Check {
  std::string id;
  std::string title;
  std::string section;  // of SPEC.md 1.1.0, or where else it comes from
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

// All of them, in the order in which they are worth running.
std::vector<Check> AllChecks();

inline constexpr Needs kInterface{true, false, ""};

}  // namespace railhead::conformance
