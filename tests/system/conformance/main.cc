// cni-conformance: checks a CNI plugin against the specification. See --help.
//
// Exit status: 0 no MUST failed; 1 one did; 2 wrong command line. Status 3: nothing could be checked (no
// root, no plugin, a prepare command that failed).
#include <getopt.h>
#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <optional>

#include "netns/base/files.h"
#include "netns/base/text.h"
#include "tests/system/conformance/sandbox.h"
#include "tests/system/conformance/suite.h"

namespace railhead::conformance {
namespace {

enum ExitStatus : int { kConforms = 0, kFails = 1, kUsage = 2, kCannot = 3 };

constexpr const char* kHelp =
    "cni-conformance - checks a CNI plugin against the specification, 0.1.0 to 1.1.0\n"
    "\n"
    "usage: cni-conformance --plugin-dir DIR[:DIR...] --config FILE [options]\n"
    "       cni-conformance --list | --help | --version\n"
    "\n"
    "  --plugin-dir DIRS  where the plugin and the plugins that it calls are (CNI_PATH)\n"
    "  --config FILE      its network configuration: one object with name and type\n"
    "  --kind KIND        interface (default), or ipam: a plugin that only gives addresses\n"
    "  --cap-args JSON    runtimeConfig of every ADD, CHECK and DEL\n"
    "  --cni-args TEXT    CNI_ARGS\n"
    "  --env NAME=VALUE   for the plugin; may be repeated. It gets no other environment\n"
    "  --prepare CMD      run once, in the host's namespaces, before everything\n"
    "  --setup CMD        run before an attachment is made. What it prints is a JSON object\n"
    "                     that is merged into the configuration. It gets the --env, CNI_NETNS,\n"
    "                     CNI_CONTAINERID, CNI_IFNAME and CONFORMANCE_SLOT: a number from 0,\n"
    "                     different for all attachments that there are at a time\n"
    "  --cleanup CMD      run after its DEL\n"
    "  --containers N     how many containers at once (default 8)\n"
    "  --settle SECONDS   how long the kernel may take to remove interfaces (default 3)\n"
    "  --here             in the present namespaces: for plugins that need the machine's\n"
    "                     devices. Without it the host is an empty network namespace with\n"
    "                     an empty /run and /var/lib/cni, which goes at the end\n"
    "  --only ID          these checks only: an id, or its first part; may be repeated\n"
    "  --json             the report as JSON on standard output\n"
    "  --quiet            failures and the summary only\n"
    "\n"
    "Needs root. Exit status: 0 no MUST failed, 1 one did, 2 wrong command line, 3 nothing\n"
    "could be checked.\n";

struct CommandLine {
  Target target;
  std::string config_path;
  std::vector<std::string> only;
  bool here = false;
  bool json = false;
  bool quiet = false;
};

int Complain(const std::string& what) {
  (void)std::fprintf(stderr, "cni-conformance: %s\nSee cni-conformance --help\n", what.c_str());
  return kUsage;
}

enum Option : int {
  kDir = 1,
  kConfig,
  kKind,
  kCap,
  kArgs,
  kEnv,
  kPrepare,
  kSetup,
  kCleanup,
  kContainers,
  kSettle,
  kHere,
  kOnly,
  kJson,
  kQuiet,
  kList,
  kHelpOption,
  kVersion
};

constexpr option kOptions[] = {{"plugin-dir", required_argument, nullptr, kDir},
                               {"config", required_argument, nullptr, kConfig},
                               {"kind", required_argument, nullptr, kKind},
                               {"cap-args", required_argument, nullptr, kCap},
                               {"cni-args", required_argument, nullptr, kArgs},
                               {"env", required_argument, nullptr, kEnv},
                               {"prepare", required_argument, nullptr, kPrepare},
                               {"setup", required_argument, nullptr, kSetup},
                               {"cleanup", required_argument, nullptr, kCleanup},
                               {"containers", required_argument, nullptr, kContainers},
                               {"settle", required_argument, nullptr, kSettle},
                               {"here", no_argument, nullptr, kHere},
                               {"only", required_argument, nullptr, kOnly},
                               {"json", no_argument, nullptr, kJson},
                               {"quiet", no_argument, nullptr, kQuiet},
                               {"list", no_argument, nullptr, kList},
                               {"help", no_argument, nullptr, kHelpOption},
                               {"version", no_argument, nullptr, kVersion},
                               {nullptr, 0, nullptr, 0}};

// Reads an option's value. Returns what is wrong with it, or "".
std::string ReadValue(int option, const std::string& value, CommandLine& line) {
  Target& target = line.target;
  if (option == kKind) {
    if (value != "interface" && value != "ipam") return "--kind is interface or ipam, not " + value;
    target.kind = value == "ipam" ? Kind::kIpam : Kind::kInterface;
  } else if (option == kCap) {
    const auto json = ParseJson(value);
    if (!json || !json->is_object()) return "--cap-args is no JSON object: " + value;
    target.runtime = *json;
  } else if (option == kEnv) {
    const auto equals = value.find('=');
    if (equals == std::string::npos || equals == 0) return "--env wants NAME=VALUE, not " + value;
    target.environment[value.substr(0, equals)] = value.substr(equals + 1);
  } else {
    const auto number = ParseInt(value);
    const char* const name = option == kSettle ? "--settle" : "--containers";
    if (!number || *number < 1 || *number > 64)
      return std::string(name) + " wants a number from 1 to 64, not " + value;
    if (option == kSettle) {
      target.settle = std::chrono::seconds(*number);
    } else {
      target.containers = static_cast<int>(*number);
    }
  }
  return {};
}

std::string ReadOption(int option, CommandLine& line) {
  const std::string value = optarg == nullptr ? "" : optarg;
  switch (option) {
    case kDir:
      line.target.plugin_path = value;
      return {};
    case kConfig:
      line.config_path = value;
      return {};
    case kArgs:
      line.target.args = value;
      return {};
    case kPrepare:
      line.target.prepare = value;
      return {};
    case kSetup:
      line.target.setup = value;
      return {};
    case kCleanup:
      line.target.cleanup = value;
      return {};
    case kHere:
      line.here = true;
      return {};
    case kOnly:
      line.only.push_back(value);
      return {};
    case kJson:
      line.json = true;
      return {};
    case kQuiet:
      line.quiet = true;
      return {};
    default:
      return ReadValue(option, value, line);
  }
}

// Returns the exit status if the program should end without checking.
std::optional<int> ReadCommandLine(int argc, char** argv, CommandLine& line) {
  for (;;) {
    const int option = ::getopt_long(argc, argv, "h", kOptions, nullptr);
    if (option == -1) break;
    if (option == '?') return Complain("wrong option");
    if (option == kHelpOption || option == 'h') return std::fputs(kHelp, stdout) < 0 ? kFails : kConforms;
    if (option == kVersion) return std::puts("cni-conformance " RAILHEAD_VERSION) < 0 ? kFails : kConforms;
    if (option == kList) return std::fputs(ListOfChecks().c_str(), stdout) < 0 ? kFails : kConforms;
    if (const std::string wrong = ReadOption(option, line); !wrong.empty()) return Complain(wrong);
  }
  if (optind < argc) return Complain(std::string("unexpected argument ") + argv[optind]);
  if (line.target.plugin_path.empty() || line.config_path.empty()) {
    return Complain("--plugin-dir and --config are needed");
  }
  const auto checks = AllChecks();
  for (const auto& id : line.only) {
    bool known = false;
    for (const auto& check : checks)
      known = known || check.id == id || check.id.compare(0, id.size() + 1, id + ".") == 0;
    if (!known) return Complain("--only " + id + ": there is no such check; --list shows all");
  }
  return std::nullopt;
}

Result<void> ReadTarget(CommandLine& line) {
  const auto text = RH_TRY(ReadFile(line.config_path));
  if (!text) return Fail(ErrorCode::kNotFound, "there is no " + line.config_path);
  const auto config = ParseJson(*text);
  if (!config || !config->is_object())
    return Fail(ErrorCode::kMalformed, line.config_path + " is no JSON object");
  if (config->contains("plugins")) {
    return Fail(ErrorCode::kInvalid, line.config_path + " is a list of plugins",
                "give the configuration of one plugin, with name and cniVersion in it");
  }
  Target& target = line.target;
  target.config = *config;
  const std::string type = Text(*config, "type");
  if (type.empty() || Text(*config, "name").empty()) {
    return Fail(ErrorCode::kInvalid, line.config_path + " has no name or no type");
  }
  target.program = FindProgram(target.plugin_path, type);
  if (target.program.empty())
    return Fail(ErrorCode::kNotFound, "there is no " + type + " in " + target.plugin_path);
  target.ipam_program = FindProgram(target.plugin_path, target.IpamType());
  if (target.ipam_program.empty() && !target.IpamType().empty()) {
    return Fail(ErrorCode::kNotFound,
                "there is no IPAM plugin " + target.IpamType() + " in " + target.plugin_path);
  }
  return {};
}

// Lets the plugin make what it makes once for all containers (a bridge, for example), before any comparison.
void WarmUp(const Target& target) {
  Fixture fixture(target);
  (void)fixture.Attached();
}

Result<std::vector<Finding>> Run(CommandLine& line) {
  RH_TRY(ReadTarget(line));
  if (!line.here) RH_TRY(EnterOwnHost());
  if (!line.target.prepare.empty()) {
    (void)RH_TRY_WRAP(RunShell(line.target.prepare, line.target.environment), "the prepare command");
  }
  ProbeVersions(line.target);
  WarmUp(line.target);
  return RunChecks(line.target, line.only, [&](const Finding& finding) {
    if (line.json || (line.quiet && finding.verdict != Verdict::kFail)) return;
    (void)std::fputs(LineOf(finding).c_str(), stdout);
    (void)std::fflush(stdout);
  });
}

int Main(int argc, char** argv) {
  CommandLine line;
  if (const auto status = ReadCommandLine(argc, argv, line)) return *status;
  // The plugin's orphans become our children, so that we can find them.
  (void)::prctl(PR_SET_CHILD_SUBREAPER, 1);
  (void)::signal(SIGPIPE, SIG_IGN);
  const auto findings = Run(line);
  if (!findings) {
    (void)std::fprintf(stderr, "cni-conformance: %s\n", Describe(findings.error()).c_str());
    return kCannot;
  }
  const std::string text = line.json ? JsonReport(line.target, *findings) : Summary(line.target, *findings);
  (void)std::fputs(text.c_str(), stdout);
  return Conforms(*findings) ? kConforms : kFails;
}

}  // namespace
}  // namespace railhead::conformance

int main(int argc, char** argv) {
  return railhead::conformance::Main(argc, argv);
}
