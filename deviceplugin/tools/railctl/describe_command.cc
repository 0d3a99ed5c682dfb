// railctl describe: everything that this node knows about one thing.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/config_sections.h"
#include "deviceplugin/tools/railctl/description.h"
#include "deviceplugin/tools/railctl/output.h"
#include "deviceplugin/tools/railctl/print.h"
#include "deviceplugin/tools/railctl/subject.h"

namespace railhead::railctl {
namespace {

struct DescribeArguments {
  std::string what;
  Output output;
};

void PrintDevices(const Output& output, const Description& description) {
  if (description.devices.empty()) return;
  const bool of_device = description.kind <= SubjectKind::kAccelerator || description.address;
  if (!of_device) {
    (void)std::printf("\n");
    return output.PrintTable(description.devices);
  }
  if (description.address) (void)std::printf("\n");
  output.PrintCard(description.devices.front());
  const std::vector<DescribedDevice> others(description.devices.begin() + 1, description.devices.end());
  if (others.empty()) return;
  (void)std::printf("\n");
  output.PrintTable(others);
}

void PrintDescription(const Output& output, const Description& description) {
  if (description.kind == SubjectKind::kRail)
    (void)std::printf("rail %s\n", OneLine(description.name).c_str());
  if (description.pod) output.PrintCard(*description.pod);
  if (description.address) output.PrintCard(*description.address);
  PrintDevices(output, description);
  if (description.address) {
    for (const std::string& event : description.address->events)
      (void)std::printf("event: %s\n", OneLine(event).c_str());
  }
  for (const std::string& note : description.notes) (void)std::printf("note: %s\n", OneLine(note).c_str());
}

int RunDescribe(const Root& root, const DescribeArguments& arguments) {
  NodeRecords records = ReadNodeRecords(root);
  // Without a configuration nothing is offered, and other commands say so.
  if (const auto node = SnapshotOfThisNode(root)) {
    for (const ExcludedDevice& excluded : NotAdvertised(*node))
      records.not_offered[excluded.function->id] = excluded.because;
  }
  const auto subject = FindSubject(root, records, arguments.what);
  if (!subject) return Complain(subject.error(), kFailed);
  const auto description = DescribeSubject(root, records, *subject);
  if (!description) return Complain(description.error(), kFailed);
  if (arguments.output.is_text()) {
    PrintDescription(arguments.output, *description);
  } else {
    arguments.output.PrintData(ToJson(*description));
  }
  return kDone;
}

}  // namespace

void AddDescribeCommand(CLI::App* app, const Root& root, int* status) {
  auto arguments = std::make_shared<DescribeArguments>();
  CLI::App* command =
      app->add_subcommand("describe", "Show what a device, address, pod or switch port is, and whose it is");
  command
      ->add_option("WHAT", arguments->what,
                   "a rail, PF, VF, PCI address, network device, RDMA device, address, MAC, switch port, "
                   "NAMESPACE/POD, pod UID, or container id or its beginning")
      ->required()
      ->type_name("");
  arguments->output.AddTo(command);
  arguments->output.AddWatchTo(command);
  help::Set(command,
            {.examples = {{"railctl describe rail0", "its PF and VFs, and the pods that have them"},
                          {"railctl describe 10.100.0.7", "the pod that has an address, or had it last"}},
             .columns = "of devices " + ColumnsOf<DescribedDevice>(),
             .statuses = {{kFailed, "nothing on this node has this name, or several things have it"}}});
  command->callback([arguments, &root, status] {
    *status = arguments->output.Watched([&] { return RunDescribe(root, *arguments); });
  });
}

}  // namespace railhead::railctl
