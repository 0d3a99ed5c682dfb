// railctl migrate: from the configuration of the SR-IOV suite to Railhead's.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/node/resources/sriovdp_config.h"
#include "deviceplugin/services/fabric_follow/fabric_errors.h"
#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/migrate/migration.h"
#include "deviceplugin/tools/migrate/migration_report.h"
#include "deviceplugin/tools/migrate/read_documents.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/config_sections.h"
#include "deviceplugin/tools/railctl/output.h"
#include "netns/base/files.h"
#include "netns/base/root.h"

namespace railhead::railctl {
namespace {

constexpr mode_t kOutputMode = 0644;

struct MigrateArguments {
  std::vector<std::string> from;
  std::string to;
  migrate::Options options;
  bool force = false;
  Output output;
};

struct Migrated {
  migrate::MigrationReport report;
  std::vector<std::string> files;

  static void List(auto& f) {
    f.Output("ok", [](const Migrated&) { return true; });
    f.Part(&Migrated::report);
    f("files", &Migrated::files);
  }
};

int StatusOfRefusal(const Error& error) {
  switch (error.code) {
    case ErrorCode::kMalformed:
    case ErrorCode::kInvalid:
    case ErrorCode::kConflict:
    case ErrorCode::kUnsupported:
    case ErrorCode::kNotFound:
      return kBadConfig;
    default:
      return kFailed;
  }
}

Result<migrate::Outcome> MigrateAll(const Root& root, const MigrateArguments& arguments) {
  std::vector<std::string> paths;
  for (const std::string& path : arguments.from) paths.push_back(root.Path(path));
  const auto documents = RH_TRY(migrate::ReadDocuments(paths));
  return migrate::Migrate(documents, arguments.options);
}

// The errors that `railctl config check` would report on every node.
std::vector<Error> ErrorsInOutcome(const migrate::Outcome& outcome) {
  for (const migrate::OutputFile& file : outcome.files) {
    if (file.name == "fabric.json") return fabric_follow::ErrorsInFabric(file.content, "the new fabric.json");
  }
  return {};
}

Result<void> WriteFiles(const std::string& directory, const migrate::Outcome& outcome, bool force) {
  std::vector<FileContent> contents;
  for (const migrate::OutputFile& file : outcome.files) {
    const std::string path = std::string(directory).append("/").append(file.name);
    const auto there = RH_TRY(ReadFile(path));
    if (there && *there != file.content && !force) {
      return Fail(ErrorCode::kExists, path + " is there already, with another content",
                  "name an empty directory, or write over it with --force");
    }
    contents.push_back({path, file.content});
  }
  RH_TRY(MakeDirectories(directory));
  return WriteAllAtomic(std::move(contents), Sync::kDurable, kOutputMode);
}

int RunMigrate(const Root& root, const MigrateArguments& arguments) {
  const auto outcome = MigrateAll(root, arguments);
  if (!outcome) return Refuse({outcome.error()}, arguments.output, StatusOfRefusal(outcome.error()));
  if (const auto errors = ErrorsInOutcome(*outcome); !errors.empty())
    return Refuse(errors, arguments.output, kBadConfig);
  if (!arguments.to.empty()) {
    const auto written = WriteFiles(root.Path(arguments.to), *outcome, arguments.force);
    if (!written) return Refuse({written.error()}, arguments.output, kFailed);
  }
  Migrated migrated{outcome->report, {}};
  for (const migrate::OutputFile& file : outcome->files) migrated.files.push_back(file.name);
  arguments.output.Print(migrated, [](const Migrated& it) { return ReportAsMarkdown(it.report); });
  return outcome->report.NeedsDecision() ? kChangesNeeded : kDone;
}

}  // namespace

void AddMigrateCommand(CLI::App* app, const Root& root, int* status) {
  const auto arguments = std::make_shared<MigrateArguments>();
  arguments->options.resource_prefix = resources::kSriovdpPrefix;
  CLI::App* command = app->add_subcommand(
      "migrate", "Make Railhead's configuration of the SR-IOV suite's, and say what became of each key");
  command
      ->add_option("--from", arguments->from,
                   "Files and directories: the device plugin's config.json or ConfigMap, "
                   "NetworkAttachmentDefinitions (JSON or YAML, as kubectl prints them), host-local's state")
      ->required();
  command->add_option(
      "--to", arguments->to,
      "Directory for fabric.json, the networks and the report; without it nothing is written");
  command->add_option("--node", arguments->options.node,
                      "The node that host-local's ranges are for, and whose entry of a ConfigMap counts");
  CLI::Option* nodes =
      command
          ->add_option(
              "--nodes", arguments->options.nodes,
              "Give each of so many nodes a block of whereabouts' ranges, by an index that it claims")
          ->check(CLI::Range(1, 65536));
  command->add_option("--vfs", arguments->options.vfs, "VFs of a node on each rail, for --nodes")
      ->needs(nodes)
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      ->add_option("--resource-prefix", arguments->options.resource_prefix,
                   "Prefix of resources without resourcePrefix")
      ->capture_default_str();
  command->add_flag("--force", arguments->force, "Write over files that are there");
  arguments->output.AddTo(command);
  help::Set(command,
            {.examples = {{"railctl migrate --from /etc/pcidp", "what becomes of each key"},
                          {"railctl migrate --from suite/ --to railhead/", "write fabric.json and networks"}},
             .statuses = {{kDone, "all is carried over"},
                          {kFailed, "it could not be written"},
                          {kBadConfig, "a document is missing or wrong, and nothing was written"},
                          {kChangesNeeded, "something needs a decision"}}});
  command->callback([&root, status, arguments] { *status = RunMigrate(root, *arguments); });
}

}  // namespace railhead::railctl
