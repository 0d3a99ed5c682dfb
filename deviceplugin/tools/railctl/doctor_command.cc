// railctl doctor: what of this node is not as RoCE training needs it.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/doctor/checks.h"
#include "deviceplugin/tools/doctor/read_facts.h"
#include "deviceplugin/tools/doctor/report.h"
#include "deviceplugin/tools/doctor/verdict.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/output.h"

namespace railhead::railctl {
namespace {

struct DoctorOptions {
  Output output;
  bool list = false;
  bool strict = false;
  std::vector<std::string> only;
  std::vector<std::string> skip;
};

int RunDoctor(const Root& root, const DoctorOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const auto checks = doctor::SelectChecks(options.only, options.skip);
  if (!checks) return Complain(checks.error(), kUsage);
  if (options.list) {
    const auto all = doctor::AllChecks();
    options.output.PrintList("checks", std::vector(all.begin(), all.end()));
    return kDone;
  }
  const auto facts = doctor::ReadFacts(root, doctor::QuestionsFor(root));
  auto report = doctor::RunChecks(facts, *checks);
  report.elapsed_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  options.output.Print(report, doctor::ReportAsText);
  const auto bad = options.strict ? doctor::Status::kWarning : doctor::Status::kFailure;
  return report.Worst() >= bad ? kFailed : kDone;
}

}  // namespace

void AddDoctorCommand(CLI::App* app, const Root& root, int* status) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = app->add_subcommand(
      "doctor", "Find what on this node is not as RoCE training needs it, and what to do");
  options->output.AddTo(command);
  command->add_flag("--list", options->list, "only say which checks there are");
  command->add_flag("--strict", options->strict, "warnings count as failures");
  command->add_option("--only", options->only, "only these checks: rdma.port, or rdma for all of rdma.*")
      ->type_name("ID");
  command->add_option("--skip", options->skip, "all but these")->type_name("ID");
  help::Set(
      command,
      {.more = "It changes nothing.",
       .examples = {{"railctl doctor", "what fails and what is doubtful, and what to do"},
                    {"railctl doctor --only rdma --strict -o json", "one group of checks, for a script"}},
       .columns = "of --list " + ColumnsOf<doctor::Check>(),
       .notes = "Run it as root on the host, or with hostPID and hostNetwork. What it cannot see it skips.",
       .statuses = {{kDone, "no failure"}, {kFailed, "a failure; with --strict also a warning"}}});
  command->callback([options, &root, status] { *status = RunDoctor(root, *options); });
}

}  // namespace railhead::railctl
