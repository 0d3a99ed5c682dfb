// railctl explain: what a name of Railhead means, what to do, and which page has more.
#include <memory>
#include <string>
#include <vector>

#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/explain/explanations.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/output.h"

namespace railhead::railctl {
namespace {

struct ExplainArguments {
  Output output;
  std::string name;
};

// Every explanation of one name.
struct ExplainedName {
  std::vector<explain::Explanation> explanations;

  static void List(auto& f) { f("explanations", &ExplainedName::explanations); }
};

std::string TextOf(const ExplainedName& named) {
  std::string text;
  for (const explain::Explanation& one : named.explanations) {
    text.append(text.empty() ? "" : "\n")
        .append(one.name)
        .append(" (")
        .append(WordOf(one.kind))
        .append(")\n");
    text.append("  ").append(one.what).append("\n");
    for (const std::string& detail : one.details) text.append("  ").append(detail).append("\n");
    for (const std::string& todo : one.todo) text.append("  - ").append(todo).append("\n");
    text.append("  More: ").append(one.page).append("\n");
  }
  return text;
}

int ExplainName(const ExplainArguments& arguments) {
  if (arguments.name.empty()) {
    arguments.output.PrintList("explanations", explain::AllExplanations());
    return kDone;
  }
  auto found = explain::Explain(arguments.name);
  if (!found) return Complain(found.error(), kFailed);
  arguments.output.Print(ExplainedName{*std::move(found)},
                         [](const ExplainedName& it) { return TextOf(it); });
  return kDone;
}

}  // namespace

void AddExplainCommand(CLI::App* app, int* status) {
  auto arguments = std::make_shared<ExplainArguments>();
  CLI::App* command =
      app->add_subcommand("explain", "Explain an alert, metric, CNI error code or other name of Railhead");
  command->add_option("NAME", arguments->name,
                      "an alert, CNI error code, exit status, node condition, event, doctor check, health "
                      "rule, metric or taint; default: list all names");
  arguments->output.AddTo(command);
  help::Set(
      command,
      {.more = "It needs no file, no daemon and no network. Pages are in Railhead's source, below docs/.",
       .examples = {{"railctl explain RailheadDown", "an alert, what to do, and its page"},
                    {"railctl explain", "all names, by kind"}},
       .columns = "of all names " + ColumnsOf<explain::Explanation>(),
       .statuses = {{kFailed, "nothing of Railhead has this name"}}});
  command->callback([status, arguments] { *status = ExplainName(*arguments); });
}

}  // namespace railhead::railctl
