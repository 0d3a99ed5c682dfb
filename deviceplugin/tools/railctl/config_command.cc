// railctl config check and railctl config schema.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cni/attachment/plugin_config_shape.h"
#include "deviceplugin/node/resources/advertised.h"
#include "deviceplugin/node/resources/sriovdp_config.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/fabric_sections.h"
#include "netns/base/files.h"
#include "netns/json/record_schema.h"
#include "netns/linux_kernel.h"

namespace railhead::railctl {
namespace {

struct ConfigArguments {
  std::string file;
  std::string prefix = resources::kSriovdpPrefix;
  bool json = false;
};

Result<inventory::HostNetwork> AskHostNetwork(const Root& root) {
  LinuxKernel kernel(root);
  const NetNs host = RH_TRY(kernel.HostNetns());
  const auto route = RH_TRY(kernel.OpenRoute(host));
  return inventory::ReadHostNetwork(*route);
}

// All that is wrong with the file by itself, on whatever node it is.
std::vector<Error> ErrorsIn(const Root& root, const resources::ConfigSource& source) {
  std::vector<Error> errors;
  const std::string path = source.fabric ? *source.fabric : *source.sriovdp;
  const auto text = ReadFile(root.Path(path));
  if (!text || !*text) return errors;  // found a moment ago: planning says what has become of it
  if (source.sriovdp) {
    (void)resources::ParseSriovdpConfig(**text, path, source.resource_prefix, &errors);
    return errors;
  }
  return ErrorsInFabric(**text, path);
}

Result<resources::Plan> PlanOf(const Root& root, const resources::ConfigSource& source) {
  const inventory::HostNetwork host = RH_TRY(AskHostNetwork(root));
  return MakePlan(root, source, host, resources::DdpOfKernel(root));
}

int CheckConfig(const Root& root, const ConfigArguments& arguments) {
  const auto source = resources::TellConfig(root, arguments.file, arguments.prefix);
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

void PrintSchema(const std::string& of) {
  const auto schema = of == "fabric"
                          ? FabricSchema()
                          : SchemaOf<attachment::PluginConfig>("Railhead: a network configuration");
  (void)std::printf("%s\n", schema.dump(2).c_str());
}

}  // namespace

void AddConfigCommand(CLI::App* app, const Root& root, int* status) {
  CLI::App* config = app->add_subcommand("config", "Check or describe a configuration");
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
  const auto of = std::make_shared<std::string>();
  CLI::App* schema = config->add_subcommand("schema", "Print a JSON schema, for editors and validators");
  schema->add_option("WHAT", *of, "fabric.json, or the network configurations of railhead")
      ->required()
      ->check(CLI::IsMember({"fabric", "network"}));
  schema->callback([of] { PrintSchema(*of); });
}

namespace {

nlohmann::ordered_json AsJson(const Error& error) {
  nlohmann::ordered_json json;
  json["code"] = std::string(NameOf(error.code));
  json["message"] = error.message;
  if (!error.hint.empty()) json["hint"] = error.hint;
  return json;
}

// "error" is the first of "errors", for scripts that know of no more.
void PrintErrorsAsJson(const std::vector<Error>& errors) {
  nlohmann::ordered_json json;
  json["ok"] = false;
  json["error"] = AsJson(errors.front());
  json["errors"] = nlohmann::ordered_json::array();
  for (const Error& error : errors) json["errors"].push_back(AsJson(error));
  // A message may quote a file's bytes.
  const std::string text = json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  (void)std::printf("%s\n", text.c_str());
}

}  // namespace

int Refuse(const std::vector<Error>& errors, bool json, int status) {
  if (json) PrintErrorsAsJson(errors);
  for (const Error& error : errors) (void)Complain(error, status);
  return status;
}

}  // namespace railhead::railctl
