// railctl config check, railctl config migrate.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "deviceplugin/pools/config_check.h"
#include "deviceplugin/pools/migrate.h"
#include "deviceplugin/pools/sriovdp_config.h"
#include "deviceplugin/railctl/commands.h"
#include "deviceplugin/railctl/config_errors.h"
#include "netns/base/files.h"
#include "netns/linux_kernel.h"

namespace railhead::railctl {
namespace {

struct ConfigArguments {
  std::string file;
  std::string prefix = kSriovdpPrefix;
  bool json = false;
};

Result<HostNetwork> AskHostNetwork(const Root& root) {
  LinuxKernel kernel(root);
  const NetNs host = RH_TRY(kernel.HostNetns());
  const auto route = RH_TRY(kernel.OpenRoute(host));
  return ReadHostNetwork(*route);
}

// All that is wrong with the file by itself, on whatever node it is.
std::vector<Error> ErrorsIn(const Root& root, const ConfigSource& source) {
  std::vector<Error> errors;
  const std::string path = source.fabric ? *source.fabric : *source.sriovdp;
  const auto text = ReadFile(root.Path(path));
  if (!text || !*text) return errors;  // found a moment ago: planning says what has become of it
  if (source.sriovdp) {
    (void)ParseSriovdpConfig(**text, path, source.resource_prefix, &errors);
    return errors;
  }
  return ErrorsInFabric(**text, path);
}

Result<Plan> PlanOf(const Root& root, const ConfigSource& source) {
  const HostNetwork host = RH_TRY(AskHostNetwork(root));
  return MakePlan(root, source, host, DdpOfKernel(root));
}

int CheckConfig(const Root& root, const ConfigArguments& arguments) {
  const auto source = TellConfig(root, arguments.file, arguments.prefix);
  if (!source) return Refuse({source.error()}, arguments.json, kBadConfig);
  if (const auto errors = ErrorsIn(root, *source); !errors.empty())
    return Refuse(errors, arguments.json, kBadConfig);
  const auto plan = PlanOf(root, *source);
  if (!plan) return Refuse({plan.error()}, arguments.json, kBadConfig);
  if (arguments.json) {
    (void)std::printf("{\"ok\": true, \"plan\": %s}\n", PlanAsJson(*plan).c_str());
  } else {
    for (const Error& warning : plan->warnings)
      (void)std::fprintf(stderr, "warning: %s\n", warning.message.c_str());
    (void)std::printf("ok\n%s", PlanAsText(*plan).c_str());
  }
  return kDone;
}

int Migrate(const Root& root, const ConfigArguments& arguments) {
  const auto text = ReadFile(root.Path(arguments.file));
  if (!text) return Complain(text.error(), kFailed);
  if (!*text) {
    return Complain({ErrorCode::kNotFound, "reading " + arguments.file + ": no such file",
                     "name a config.json of sriov-network-device-plugin", 0},
                    kBadConfig);
  }
  const auto migration = MigrateSriovdpConfig(**text, arguments.file, arguments.prefix);
  if (!migration) {
    const bool nothing = migration.error().code == ErrorCode::kUnsupported;
    return Complain(migration.error(), nothing ? kFailed : kBadConfig);
  }
  for (const std::string& note : migration->notes) (void)std::fprintf(stderr, "%s\n", note.c_str());
  (void)std::printf("%s", migration->fabric.c_str());
  return kDone;
}

void AddFile(CLI::App* command, ConfigArguments* arguments, const char* what) {
  command->add_option("FILE", arguments->file, what)->required();
  command->add_option("--resource-prefix", arguments->prefix, "Prefix of resources without resourcePrefix")
      ->capture_default_str();
}

}  // namespace

void AddConfigCommand(CLI::App* app, const Root& root, int* status) {
  CLI::App* config = app->add_subcommand("config", "Check or migrate a configuration");
  config->require_subcommand(1);

  const auto check_arguments = std::make_shared<ConfigArguments>();
  CLI::App* check = config->add_subcommand(
      "check", "Say what is wrong with a configuration, or which devices of this node its resources get");
  AddFile(check, check_arguments.get(), "fabric.json, or sriov-network-device-plugin's config.json");
  check->add_flag("--json", check_arguments->json, "Print JSON");
  check->callback([&root, status, check_arguments] { *status = CheckConfig(root, *check_arguments); });

  const auto migrate_arguments = std::make_shared<ConfigArguments>();
  CLI::App* migrate = config->add_subcommand(
      "migrate", "Print a fabric.json to begin with; what it lacks is told on standard error");
  AddFile(migrate, migrate_arguments.get(), "sriov-network-device-plugin's config.json");
  migrate->callback([&root, status, migrate_arguments] { *status = Migrate(root, *migrate_arguments); });
}

}  // namespace railhead::railctl
