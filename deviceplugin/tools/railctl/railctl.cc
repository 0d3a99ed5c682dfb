#include "deviceplugin/tools/railctl/railctl.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/print.h"

namespace railhead::railctl {
namespace {

constexpr const char* kFooter =
    "Exit status: 0 done; 1 it could not be done, or what was checked is not well; 2 wrong command line; "
    "3 a configuration is missing or wrong; 4 vfs plan, migrate: there is something to do; "
    "5 precheck: not all could be judged.";

}  // namespace

int RunRailctl(int argc, char** argv) {
  const EscapedOutput output;
  const char* prefix = std::getenv("RAILHEAD_ROOT");
  const Root root(prefix != nullptr ? prefix : "");
  int status = kDone;
  CLI::App app("railctl: what Railhead does on this node");
  app.set_version_flag("--version", std::string("railctl ") + RAILHEAD_VERSION);
  app.set_help_all_flag("--help-all", "Print the help of all commands and exit");
  app.require_subcommand(1);
  app.footer(kFooter);
  AddCompletionCommand(&app, &status);
  AddConfigCommand(&app, root, &status);
  AddDoctorCommand(&app, root, &status);
  AddDrainCommands(&app, root, &status);
  AddHandoffCommand(&app, root, &status);
  AddHealthCommand(&app, root, &status);
  AddInstallCommand(&app, root, &status);
  AddIpamCommand(&app, root, &status);
  AddJournalCommand(&app, root, &status);
  AddLeavesCommand(&app, root, &status);
  AddMigrateCommand(&app, root, &status);
  AddNetCommand(&app, root, &status);
  AddNodeFactsCommand(&app, root, &status);
  AddPrecheckCommand(&app, root, &status);
  AddRdmaTestCommand(&app, root, &status);
  AddReplayCommand(&app, root, &status);
  AddTopoCommand(&app, root, &status);
  AddVfsCommand(&app, root, &status);
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

}  // namespace railhead::railctl
