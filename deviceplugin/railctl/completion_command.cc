// railctl completion: scripts by which shells complete railctl's command line.
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "deviceplugin/railctl/commands.h"
#include "deviceplugin/railctl/completion.h"

namespace railhead::railctl {

void AddCompletionCommand(CLI::App* app, int* status) {
  CLI::App* command = app->add_subcommand("completion", "print a script by which a shell completes railctl");
  auto shell = std::make_shared<Shell>(Shell::kBash);
  static const std::map<std::string, Shell> shells = {
      {"bash", Shell::kBash}, {"zsh", Shell::kZsh}, {"fish", Shell::kFish}};
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->type_name("")
      ->transform(CLI::CheckedTransformer(shells));
  command->callback([app, status, shell] {
    const std::string script = CompletionScript(*app, "railctl", *shell);
    *status = std::fputs(script.c_str(), stdout) < 0 ? kFailed : kDone;
  });
}

}  // namespace railhead::railctl
