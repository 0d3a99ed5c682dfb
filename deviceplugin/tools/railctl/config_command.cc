// railctl config check.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "deviceplugin/node/resources/config_check.h"
#include "deviceplugin/node/resources/sriovdp_config.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/config_errors.h"
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

}  // namespace

void AddConfigCommand(CLI::App* app, const Root& root, int* status) {
  CLI::App* config = app->add_subcommand("config", "Check a configuration");
  config->require_subcommand(1);
  const auto arguments = std::make_shared<ConfigArguments>();
  CLI::App* check = config->add_subcommand(
      "check", "Say what is wrong with a configuration, or which devices of this node its resources get");
  check->add_option("FILE", arguments->file, "fabric.json, or sriov-network-device-plugin's config.json")
      ->required();
  check->add_option("--resource-prefix", arguments->prefix, "Prefix of resources without resourcePrefix")
      ->capture_default_str();
  check->add_flag("--json", arguments->json, "Print JSON");
  check->callback([&root, status, arguments] { *status = CheckConfig(root, *arguments); });
}

}  // namespace railhead::railctl
