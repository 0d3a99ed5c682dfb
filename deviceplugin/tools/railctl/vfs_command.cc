// railctl vfs plan, railctl vfs apply.
#include <memory>
#include <optional>
#include <string>

#include "deviceplugin/services/provision/provisioner.h"
#include "deviceplugin/services/provision/report.h"
#include "deviceplugin/services/provision/vf_control.h"
#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/output.h"
#include "deviceplugin/tools/railctl/rail_filter.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/linux_kernel.h"

namespace railhead::railctl {
namespace {

struct VfsArguments {
  std::string fabric = kFabricPath;
  RailFilter rail;
  Output output;

  [[nodiscard]] std::optional<std::string> Rail() const {
    return rail.IsGiven() ? std::optional(rail.rail()) : std::nullopt;
  }
};

// What fabric.json says, or the status to exit with.
std::optional<provision::Provision> Read(const Root& root, const VfsArguments& arguments, int* status) {
  auto provision = provision::ReadProvision(root, arguments.fabric);
  if (!provision) {
    *status = Complain(provision.error(), kBadConfig);
    return std::nullopt;
  }
  if (!*provision && !Exists(root.Path(arguments.fabric))) {
    *status = Complain(NoSuchFabric(arguments.fabric), kBadConfig);
    return std::nullopt;
  }
  if (!*provision) {
    *status = Complain({ErrorCode::kNotFound, arguments.fabric + " says nothing of VFs to be made",
                        "it needs an object \"provision\": see docs/operate/provisioning.md", 0},
                       kBadConfig);
    return std::nullopt;
  }
  return **std::move(provision);
}

int Plan(const Root& root, const VfsArguments& arguments) {
  int status = kDone;
  const auto provision = Read(root, arguments, &status);
  if (!provision) return status;
  LinuxKernel kernel(root);
  const auto plan = PlanVfs(root, kernel, *provision, arguments.Rail());
  if (!plan) return Complain(plan.error(), kFailed);
  arguments.output.Print(*plan, provision::PlanAsText);
  if (plan->Refused()) return kFailed;
  return plan->NothingToDo() ? kDone : kChangesNeeded;
}

int Apply(const Root& root, const VfsArguments& arguments) {
  int status = kDone;
  const auto provision = Read(root, arguments, &status);
  if (!provision) return status;
  LinuxKernel kernel(root);
  provision::SysfsControl control(root);
  const auto outcome = ApplyVfs(root, kernel, control, *provision, arguments.Rail());
  if (!outcome) return Complain(outcome.error(), kFailed);
  arguments.output.Print(*outcome, provision::OutcomeAsText);
  return outcome->Failed() ? kFailed : kDone;
}

void AddOptions(CLI::App* command, VfsArguments* arguments) {
  command->add_option("--fabric", arguments->fabric, "fabric.json")->capture_default_str();
  arguments->rail.AddTo(command);
  arguments->output.AddTo(command);
}

}  // namespace

void AddVfsCommand(CLI::App* app, const Root& root, int* status) {
  CLI::App* vfs = app->add_subcommand("vfs", "Bring the PFs to the VFs that fabric.json states");
  vfs->require_subcommand(1);

  const auto plan_arguments = std::make_shared<VfsArguments>();
  CLI::App* plan = vfs->add_subcommand("plan", "Say what would be changed; touches nothing");
  AddOptions(plan, plan_arguments.get());
  help::Set(plan, {.examples = {{"railctl vfs plan", "all rails of fabric.json"},
                                {"railctl vfs plan --rail rail0 -o json", "one rail, for a script"}},
                   .statuses = {{kDone, "nothing is to be done"},
                                {kFailed, "something is to be done, and is refused"},
                                {kBadConfig, "fabric.json is missing or invalid, or says nothing of VFs"},
                                {kChangesNeeded, "something is to be done"}}});
  plan->callback([&root, status, plan_arguments] { *status = Plan(root, *plan_arguments); });

  const auto apply_arguments = std::make_shared<VfsArguments>();
  CLI::App* apply = vfs->add_subcommand("apply", "Do it, for every PF none of whose VFs is in use");
  AddOptions(apply, apply_arguments.get());
  help::Set(
      apply,
      {.examples = {{"railctl vfs apply --rail rail0", "make the VFs of one rail"},
                    {"railctl vfs apply --fabric /root/fabric.json", "of a file that is not installed yet"}},
       .statuses = {{kDone, "all PFs are as stated"},
                    {kFailed, "a PF was refused, or a change failed"},
                    {kBadConfig, "fabric.json is missing or invalid, or says nothing of VFs"}}});
  apply->callback([&root, status, apply_arguments] { *status = Apply(root, *apply_arguments); });
}

}  // namespace railhead::railctl
