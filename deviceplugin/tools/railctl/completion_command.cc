// railctl completion: scripts by which shells complete railctl's command line.
#include <cstdio>
#include <memory>
#include <string>

#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/completion.h"

namespace railhead::railctl {

void AddCompletionCommand(CLI::App* app, int* status) {
  CLI::App* command = app->add_subcommand("completion", "print a script by which a shell completes railctl");
  auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([app, status, shell] {
    Shell kind = Shell::kBash;
    if (*shell == "zsh") kind = Shell::kZsh;
    if (*shell == "fish") kind = Shell::kFish;
    const std::string script = CompletionScript(*app, "railctl", kind);
    *status = std::fputs(script.c_str(), stdout) < 0 ? kFailed : kDone;
  });
}

}  // namespace railhead::railctl
