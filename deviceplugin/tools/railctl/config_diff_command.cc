// railctl config diff: what a new fabric.json would change on this node, and for whom.
#include <cstdio>
#include <memory>
#include <string>

#include "deviceplugin/services/fabric_follow/fabric_errors.h"
#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/config_diff.h"
#include "deviceplugin/tools/railctl/config_sections.h"
#include "deviceplugin/tools/railctl/output.h"
#include "netns/base/files.h"
#include "netns/base/root.h"

namespace railhead::railctl {
namespace {

struct DiffArguments {
  std::string file;
  std::string from = kFabricPath;
  Output output;
};

void PrintDiff(const Output& output, const ConfigDiff& diff) {
  if (!output.is_text()) return output.PrintData(ToJson(diff));
  if (diff.changes.empty()) {
    (void)std::printf("%s changes nothing on this node\n", diff.file.c_str());
    return;
  }
  output.PrintTable(diff.changes);
  for (const std::string& target : diff.Drain()) {
    (void)std::printf(
        "before the change: railctl drain %s, and wait for its pods to end, since they keep the old "
        "settings; after it: railctl undrain %s\n",
        target.c_str(), target.c_str());
  }
}

int DiffConfig(const Root& root, const DiffArguments& arguments) {
  const auto text = ReadFile(root.Path(arguments.file));
  if (!text) return Refuse({text.error()}, arguments.output, kBadConfig);
  if (!*text) return Refuse({NoSuchFabric(arguments.file)}, arguments.output, kBadConfig);
  if (const auto errors = fabric_follow::ErrorsInFabric(**text, arguments.file); !errors.empty())
    return Refuse(errors, arguments.output, kBadConfig);
  const auto before = ReadNodeConfig(root, arguments.from);
  if (!before) return Refuse({before.error()}, arguments.output, kBadConfig);
  // A node without a fabric has nothing to compare with. A file that the command line names is to be there.
  if (!*before && arguments.from != kFabricPath)
    return Refuse({NoSuchFabric(arguments.from)}, arguments.output, kBadConfig);
  const auto after = ReadNodeConfig(root, arguments.file);
  if (!after) return Refuse({after.error()}, arguments.output, kBadConfig);
  const auto holders = ReadHolders(root);
  if (!holders) return Refuse({holders.error()}, arguments.output, kFailed);
  const ConfigDiff diff{arguments.file, DiffConfigs(*before ? &**before : nullptr, **after, *holders)};
  PrintDiff(arguments.output, diff);
  return diff.changes.empty() ? kDone : kChangesNeeded;
}

}  // namespace

void AddConfigDiffCommand(CLI::App* config, const Root& root, int* status) {
  const auto arguments = std::make_shared<DiffArguments>();
  CLI::App* diff =
      config->add_subcommand("diff", "Say what a new fabric.json would change on this node, and for whom");
  diff->add_option("FILE", arguments->file, "the new fabric.json")->required();
  diff->add_option("--from", arguments->from, "the present one")->capture_default_str();
  arguments->output.AddTo(diff);
  help::Set(
      diff,
      {.more = "It lists changed rails, resources and devices, the pods that hold them, and what must be "
               "drained first.",
       .examples = {{"railctl config diff new.json", "against /etc/railhead/fabric.json"},
                    {"railctl config diff new.json -o json", "for a script"}},
       .columns = ColumnsOf<ConfigChange>(),
       .statuses = {{kDone, "nothing changes on this node"},
                    {kBadConfig, "one of the files is missing or invalid"},
                    {kChangesNeeded, "something changes"}}});
  diff->callback([&root, status, arguments] { *status = DiffConfig(root, *arguments); });
}

}  // namespace railhead::railctl
