// railctl why: the step at which the start of a pod hangs, since when, and what to do.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/pod_start/pod_trace.h"
#include "deviceplugin/tools/pod_start/start_report.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/output.h"
#include "netns/linux_kernel.h"

namespace railhead::railctl {
namespace {

struct WhyArguments {
  Output output;
  std::string which;
};

std::string HeadingOf(const std::string& which, const pod_start::StartReport& report) {
  std::string heading = report.pod.empty() ? which : "pod " + report.pod;
  if (!report.uid.empty()) heading += " (UID " + report.uid + ")";
  heading.append(": ").append(WordOf(report.state));
  if (report.since) heading += ", since " + AgeOf(*report.since);
  return heading;
}

void AddTo(std::string& text, const char* title, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) text.append(title).append(line).append("\n");
}

std::string WhyText(const std::string& which, const pod_start::StartReport& report) {
  std::string text = HeadingOf(which, report) + "\n";
  AddTo(text, "  ", {report.what});
  AddTo(text, "  tried: ", report.tried);
  AddTo(text, "  next:  ", {report.next});
  AddTo(text, "  to do: ", report.todo);
  AddTo(text, "  note:  ", report.notes);
  return text;
}

void PrintWhy(const WhyArguments& arguments, const pod_start::StartReport& report) {
  const Output& output = arguments.output;
  if (!output.is_text()) return output.PrintData(ToJson(report));
  (void)std::fputs(WhyText(arguments.which, report).c_str(), stdout);
  if (!report.devices.empty()) {
    (void)std::printf("\n");
    output.PrintTable(report.devices);
  }
  if (!report.resources.empty()) {
    (void)std::printf("\n");
    output.PrintTable(report.resources);
  }
}

int Why(const Root& root, const WhyArguments& arguments) {
  LinuxKernel kernel(root);
  const auto trace = pod_start::ReadPodTrace(root, kernel, arguments.which);
  if (!trace) return Complain(trace.error(), kFailed);
  const pod_start::StartReport report = pod_start::ExplainStart(*trace);
  PrintWhy(arguments, report);
  return report.state == pod_start::StartState::kAttached ? kDone : kFailed;
}

}  // namespace

void AddWhyCommand(CLI::App* app, const Root& root, int* status) {
  auto arguments = std::make_shared<WhyArguments>();
  CLI::App* command =
      app->add_subcommand("why", "Show where the start of a pod hangs on this node, and what to do");
  command
      ->add_option("POD", arguments->which, "NAMESPACE/NAME, a pod's UID, or a container ID or its beginning")
      ->required();
  arguments->output.AddTo(command);
  help::Set(command,
            {.examples = {{"railctl why train/worker-0", "a pod by its name"},
                          {"railctl why 3f2a -o json", "by the beginning of its container ID, for a script"}},
             .columns = "of devices " + ColumnsOf<pod_start::DeviceStep>() + "; of resources " +
                        ColumnsOf<pod_start::ResourceUse>(),
             .notes = "Run it as root on the pod's node, or with hostPID. Otherwise it sees no running ADD.",
             .statuses = {{kDone, "all devices of the pod are attached"},
                          {kFailed, "they are not, or the node does not know the pod"}}});
  command->callback([&root, status, arguments] { *status = Why(root, *arguments); });
}

}  // namespace railhead::railctl
