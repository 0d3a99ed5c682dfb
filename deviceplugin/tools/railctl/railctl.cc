#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/print.h"
#include "netns/base/text.h"

namespace railhead::railctl {
namespace {

// The headings of --help, and what is below each.
struct CommandGroup {
  const char* heading;
  std::vector<std::string> commands;
};

std::vector<CommandGroup> CommandGroups() {
  return {
      {"Look",
       {"status", "describe", "why", "devices", "topology", "health", "reachability", "lldp", "nccl", "ipam",
        "vfs", "journal"}},
      {"Act", {"drain", "undrain", "install", "migrate"}},
      {"Prove", {"doctor", "preflight", "rdma-test", "config"}},
      {"Set up", {"fabric", "labels", "explain", "completion"}},
  };
}

Error NoSuchCommand(const std::string& path, const std::string& word,
                    const std::vector<const CLI::App*>& commands) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands) {
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  const auto near = Nearest(word, names);
  return {ErrorCode::kInvalid, path + " has no command '" + word + "'",
          near ? "did you mean " + path + " " + *near + "?" : "all commands: " + path + " --help", 0};
}

// A word of the command line that is not a command, where one has to be. CLI11 says only that one is missing,
// and prints another command's help behind a wrong word.
std::optional<Error> UnknownCommand(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* parent = &app;
  std::string path = kProgram;
  for (const std::string& word : words) {
    if (word.starts_with('-') || parent->get_require_subcommand_min() == 0) return std::nullopt;
    const auto commands = parent->get_subcommands([](const CLI::App*) { return true; });
    const auto named =
        std::ranges::find_if(commands, [&](const CLI::App* one) { return one->check_name(word); });
    if (named != commands.end()) {
      parent = *named;
      path.append(" ").append(word);
      continue;
    }
    return NoSuchCommand(path, word, commands);
  }
  return std::nullopt;
}

}  // namespace

void AddCommands(CLI::App* app, const Root& root, int* status) {
  AddStatusCommand(app, root, status);
  AddDescribeCommand(app, root, status);
  AddWhyCommand(app, root, status);
  AddDevicesCommand(app, root, status);
  AddTopologyCommand(app, root, status);
  AddHealthCommand(app, root, status);
  AddReachabilityCommand(app, root, status);
  AddLldpCommand(app, root, status);
  AddNcclCommand(app, root, status);
  AddIpamCommand(app, root, status);
  AddVfsCommand(app, root, status);
  AddJournalCommand(app, root, status);
  AddDrainCommands(app, root, status);
  AddInstallCommand(app, root, status);
  AddMigrateCommand(app, root, status);
  AddDoctorCommand(app, root, status);
  AddPreflightCommand(app, root, status);
  AddRdmaTestCommand(app, root, status);
  AddConfigCommand(app, root, status);
  AddFabricCommand(app, root, status);
  AddLabelsCommand(app, root, status);
  AddExplainCommand(app, status);
  AddCompletionCommands(app, status);
  for (const CommandGroup& group : CommandGroups()) {
    const auto is_in_it = [&](const CLI::App* command) {
      return Contains(group.commands, command->get_name());
    };
    for (CLI::App* command : app->get_subcommands(is_in_it)) command->group(group.heading);
  }
}

int RunRailctl(int argc, char** argv) {
  const EscapedOutput output;
  const char* prefix = std::getenv("RAILHEAD_ROOT");
  const Root root(prefix != nullptr ? prefix : "");
  int status = kDone;
  CLI::App app("railctl: what Railhead does on this node", kProgram);
  app.formatter(help::MakeFormatter());
  app.set_version_flag("--version", std::string("railctl ") + RAILHEAD_VERSION);
  app.set_help_all_flag("--help-all", "Print the help of all commands and exit");
  app.require_subcommand(1);
  app.footer(help::AllStatuses());
  AddCommands(&app, root, &status);
  if (const auto unknown = UnknownCommand(app, {argv + 1, argv + argc})) return Complain(*unknown, kUsage);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  }
  return status;
}

int Complain(const Error& error, int status) {
  (void)std::fprintf(stderr, "railctl: %s\n", OneLine(error.message).c_str());
  if (!error.hint.empty()) (void)std::fprintf(stderr, "  %s\n", OneLine(error.hint).c_str());
  return status;
}

Error NoSuchFabric(const std::string& path) {
  return {
      ErrorCode::kNotFound, "no such file: " + path,
      "railctl fabric suggest proposes one, and railctl install config --from DIRECTORY puts it in its place "
      "(docs/reference/fabric.md)",
      0};
}

}  // namespace railhead::railctl
