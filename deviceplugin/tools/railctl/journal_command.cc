// railctl journal: the attachments of this node as the journal has them, and the way out for one that cannot
// be read.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cni/attachment/device_locks.h"
#include "cni/attachment/pod_network.h"
#include "cni/attachment/recover.h"
#include "cni/attachment/release.h"
#include "cni/protocol/cni_args.h"
#include "cni/protocol/cni_request.h"
#include "cni/state/journal.h"
#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/output.h"
#include "deviceplugin/tools/railctl/rail_filter.h"
#include "deviceplugin/tools/railctl/subject.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/text.h"
#include "netns/linux_kernel.h"

namespace railhead::railctl {
namespace {

struct JournalArguments {
  std::string which;
  bool force = false;
  RailFilter rail;
  Output output;
};

// An attachment as it is printed.
struct AttachmentLine {
  std::string path;
  std::string network;
  std::string container;
  std::string interface;
  std::string state;
  std::set<std::string> devices;
  std::string pod;
  std::optional<std::string> error;

  static void List(auto& f) {
    f.Column("STATE", &AttachmentLine::state);
    f.Column("POD", &AttachmentLine::pod);
    f.Column("CONTAINER", [](const AttachmentLine& line) { return line.container.substr(0, 12); });
    f("path", &AttachmentLine::path);
    f("network", &AttachmentLine::network, {.column = "NETWORK"});
    f("container", &AttachmentLine::container);
    f("interface", &AttachmentLine::interface, {.column = "INTERFACE"});
    f("state", &AttachmentLine::state);
    f("devices", &AttachmentLine::devices, {.column = "DEVICES"});
    f("pod", &AttachmentLine::pod);
    f("error", &AttachmentLine::error);
    f.Column("PATH", &AttachmentLine::path, kWide);
  }
};

// What became of one that was to be restored.
struct RestoreReport {
  AttachmentLine attachment;
  std::vector<std::string> restored;
  std::optional<std::vector<std::string>> reset;  // of an entry that cannot be read
  std::optional<std::vector<std::string>> lost;
  bool ended = false;

  static void List(auto& f) {
    f.Part(&RestoreReport::attachment);
    f("restored", &RestoreReport::restored);
    f("reset", &RestoreReport::reset);
    f("lost", &RestoreReport::lost);
    f("ended", &RestoreReport::ended);
  }
};

// One file of the journal, read or not.
struct JournalFile {
  std::string path;
  AttachmentKey key;
  std::string state;  // "attached", "unfinished", "earlier boot", "unreadable"
  std::set<std::string> devices;
  std::optional<JournalEntry> entry;
  std::optional<UnreadableEntry> unreadable;
};

JournalFile FileOf(const Journal& journal, JournalEntry entry, const char* state) {
  JournalFile file{journal.PathOf(entry.key), entry.key, state, DevicesOf(entry), std::nullopt, std::nullopt};
  file.entry = std::move(entry);
  return file;
}

Result<std::vector<JournalFile>> ReadFiles(const Root& root) {
  const Journal journal(root);
  auto scan = RH_TRY(journal.Scan());
  std::vector<JournalFile> files;
  for (JournalEntry& entry : scan.entries) {
    const char* state = entry.phase == Phase::kDone ? "attached" : "unfinished";
    files.push_back(FileOf(journal, std::move(entry), state));
  }
  for (JournalEntry& entry : scan.earlier) files.push_back(FileOf(journal, std::move(entry), "earlier boot"));
  for (UnreadableEntry& entry : scan.unreadable) {
    files.push_back({entry.path, entry.key, "unreadable", entry.devices, std::nullopt, std::nullopt});
    files.back().unreadable = std::move(entry);
  }
  std::ranges::sort(files, [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

std::string PodOf(const JournalFile& file) {
  return file.entry ? PodName(file.entry->cni_args) : std::string();
}

// What only the journal names so: a file, an attachment's key, or a device of an entry that cannot be read.
bool IsNamed(const JournalFile& file, const std::string& which) {
  return file.path == which || file.devices.contains(which) || file.key.ToString() == which;
}

bool IsOf(const JournalFile& file, const Subject& subject) {
  if (!subject.IsDevice()) return Contains(subject.containers, file.key.container_id);
  return std::ranges::any_of(subject.devices,
                             [&](const std::string& device) { return file.devices.contains(device); });
}

// Those that are meant; at least one.
Result<std::vector<JournalFile>> Meant(const Root& root, const std::string& which) {
  auto files = RH_TRY(ReadFiles(root));
  if (std::ranges::any_of(files, [&](const JournalFile& file) { return IsNamed(file, which); })) {
    std::erase_if(files, [&](const JournalFile& file) { return !IsNamed(file, which); });
    return files;
  }
  const Subject subject = RH_TRY(FindSubject(root, which));
  std::erase_if(files, [&](const JournalFile& file) { return !IsOf(file, subject); });
  if (files.empty()) {
    return Fail(ErrorCode::kNotFound, "the " + subject.Title() + " has no attachment",
                "see railctl journal list for all attachments");
  }
  return files;
}

AttachmentLine LineOf(const JournalFile& file) {
  AttachmentLine line{file.path,  file.key.network, file.key.container_id, file.key.ifname,
                      file.state, file.devices,     PodOf(file),           std::nullopt};
  if (file.unreadable) line.error = Describe(file.unreadable->error);
  return line;
}

// Of an entry that cannot be read nobody knows the rails: it is of any.
bool IsOnRail(const JournalFile& file, const RailFilter& filter) {
  if (!file.entry) return true;
  return std::ranges::any_of(file.entry->devices,
                             [&](const AttachedDevice& device) { return filter.Wants(device.rail); });
}

int List(const Root& root, const JournalArguments& arguments) {
  auto files = ReadFiles(root);
  if (!files) return Complain(files.error(), kFailed);
  const auto rails = RailsToFilterBy(root, arguments.rail);
  if (!rails) return Complain(rails.error(), kFailed);
  if (*rails) std::erase_if(*files, [&](const JournalFile& file) { return !IsOnRail(file, arguments.rail); });
  std::vector<AttachmentLine> lines;
  for (const JournalFile& file : *files) lines.push_back(LineOf(file));
  arguments.output.PrintList("attachments", lines);
  return std::ranges::none_of(lines, [](const auto& line) { return line.error.has_value(); }) ? kDone
                                                                                              : kFailed;
}

int Show(const Root& root, const JournalArguments& arguments) {
  const auto files = Meant(root, arguments.which);
  if (!files) return Complain(files.error(), kFailed);
  bool well = true;
  for (const JournalFile& file : *files) {
    const auto text = ReadFile(file.path);
    if (!text) return Complain(text.error(), kFailed);
    (void)std::printf("%s: %s\n%s", file.path.c_str(), file.state.c_str(),
                      text->value_or("(gone)\n").c_str());
    if (!file.unreadable) continue;
    well = false;
    (void)std::printf("\nit cannot be read: %s\nits devices: %s\n", Describe(file.unreadable->error).c_str(),
                      Join({file.devices.begin(), file.devices.end()}, ", ").c_str());
  }
  return well ? kDone : kFailed;
}

std::string Lines(const char* what, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text.append(what).append(": ").append(line).append("\n");
  return text;
}

std::string TextOf(const RestoreReport& report) {
  return Lines("restored", report.restored) +
         Lines("reset to defaults", report.reset.value_or(std::vector<std::string>{})) +
         Lines("not restored", report.lost.value_or(std::vector<std::string>{})) +
         (report.ended ? "the entry is removed\n"
                       : "the entry stays, and its devices are not given out: --force ends it\n");
}

Result<RestoreReport> RestoreUnreadable(const Root& root, Kernel& kernel, const JournalFile& file,
                                        const JournalArguments& arguments) {
  const auto recovery =
      RH_TRY(attachment::RecoverAttachment(root, kernel, Journal(root), *file.unreadable, arguments.force));
  return RestoreReport{LineOf(file), recovery.restored, recovery.reset, recovery.lost, recovery.ended};
}

Result<RestoreReport> RestoreReadable(const Root& root, Kernel& kernel, const JournalFile& file,
                                      const JournalArguments& arguments) {
  const auto pod = RH_TRY(attachment::OpenPodOf(kernel, *file.entry));
  if (pod && !arguments.force && RH_TRY(kernel.HasProcesses(*pod))) {
    return Fail(ErrorCode::kBusy, "the pod of " + file.key.ToString() + " is still running in " + pod->path(),
                "delete the pod first; or take its NICs away: --force");
  }
  RH_TRY(attachment::ReleaseAttachment(root, kernel, Journal(root), CniRequest{}, *file.entry));
  return RestoreReport{
      LineOf(file), {file.devices.begin(), file.devices.end()}, std::nullopt, std::nullopt, true};
}

int Restore(const Root& root, const JournalArguments& arguments) {
  const auto files = Meant(root, arguments.which);
  if (!files) return Complain(files.error(), kFailed);
  if (files->size() > 1) {
    return Complain(
        {ErrorCode::kInvalid, std::to_string(files->size()) + " attachments are '" + arguments.which + "'",
         "name one by a device or by its file: railctl journal list", 0},
        kFailed);
  }
  const JournalFile& file = files->front();
  LinuxKernel kernel(root);
  const auto restore = [&]() -> Result<RestoreReport> {
    const auto locks = RH_TRY(attachment::DeviceLocks::Acquire(root, file.devices, attachment::kLockLimit));
    return file.unreadable ? RestoreUnreadable(root, kernel, file, arguments)
                           : RestoreReadable(root, kernel, file, arguments);
  };
  const auto report = restore();
  if (!report) return Complain(report.error(), kFailed);
  arguments.output.Print(*report, [](const RestoreReport& it) { return TextOf(it); });
  return report->ended ? kDone : kFailed;
}

using JournalAction = int (*)(const Root& root, const JournalArguments& arguments);

CLI::App* AddJournalAction(CLI::App* journal, const char* name, const char* help, JournalAction action,
                           const std::shared_ptr<JournalArguments>& arguments, const Root& root,
                           int* status) {
  CLI::App* command = journal->add_subcommand(name, help);
  command->callback([&root, status, arguments, action] {
    *status = arguments->output.Watched([&] { return action(root, *arguments); });
  });
  return command;
}

void AddWhich(CLI::App* command, JournalArguments* arguments) {
  command
      ->add_option(
          "ATTACHMENT", arguments->which,
          "a device, an address, NAMESPACE/POD, a pod's UID, a container's id or its beginning, or a "
          "file of the journal")
      ->required();
}

}  // namespace

void AddJournalCommand(CLI::App* app, const Root& root, int* status) {
  CLI::App* journal =
      app->add_subcommand("journal", "Show the attachments of this node, and what they restore");
  journal->require_subcommand(1);
  auto arguments = std::make_shared<JournalArguments>();
  CLI::App* list = AddJournalAction(journal, "list", "List all attachments", List, arguments, root, status);
  arguments->rail.AddTo(list);
  arguments->output.AddTo(list);
  arguments->output.AddWatchTo(list);
  help::Set(list, {.examples = {{"railctl journal list", "the pods of this node, and their devices"},
                                {"railctl journal list --rail rail0 -w", "as pods come and go on one rail"}},
                   .columns = ColumnsOf<AttachmentLine>(),
                   .statuses = {{kFailed, "an entry cannot be read"}}});
  CLI::App* show =
      AddJournalAction(journal, "show", "Print the entry as it is on record", Show, arguments, root, status);
  AddWhich(show, arguments.get());
  help::Set(show, {.examples = {{"railctl journal show train/worker-0", "all entries of a pod"},
                                {"railctl journal show 0000:43:10.0", "the entry that holds a device"}},
                   .statuses = {{kFailed, "no such entry, or it cannot be read"}}});
  CLI::App* restore =
      AddJournalAction(journal, "restore", "Bring the devices of an attachment back to the host and end it",
                       Restore, arguments, root, status);
  AddWhich(restore, arguments.get());
  restore->add_flag(
      "--force", arguments->force,
      "also while its pod runs; and of an entry that cannot be read: give the devices whose settings "
      "are lost their defaults, and remove the entry");
  arguments->output.AddTo(restore);
  help::Set(restore, {.examples = {{"railctl journal restore 0000:43:10.0", "the pod of the device is gone"},
                                   {"railctl journal restore 0000:43:10.0 --force",
                                    "its entry cannot be read: the device gets its defaults"}},
                      .statuses = {{kDone, "the attachment is over"},
                                   {kFailed, "something was not restored, or its pod runs"}}});
}

}  // namespace railhead::railctl
