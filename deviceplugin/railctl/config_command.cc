// railctl config check, railctl config migrate.
#include <cstdio>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cni/fabric/fabric.h"
#include "cni/skel/json_reader.h"
#include "deviceplugin/health/rules.h"
#include "deviceplugin/pools/config_check.h"
#include "deviceplugin/pools/migrate.h"
#include "deviceplugin/pools/sriovdp_config.h"
#include "deviceplugin/provision/settings.h"
#include "deviceplugin/railctl/commands.h"
#include "netns/base/files.h"
#include "netns/linux_kernel.h"

namespace railhead::railctl {
namespace {

struct Arguments {
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

// Of fabric.json's object "health", whatever else is wrong beside it.
void AddHealthErrors(const std::string& text, const std::string& path, std::vector<Error>* errors) {
  const auto document = JsonDocument::Parse(text, path);
  if (!document) return;  // the fabric's reader says so
  const auto* health = document->Root().Raw("health");
  if (health == nullptr) return;
  std::vector<Error> of_health;
  (void)ParseHealthRules(health->dump(), path, &of_health);
  std::move(of_health.begin(), of_health.end(), std::back_inserter(*errors));
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
  const auto fabric = ParseFabric(**text, path, &errors);
  AddHealthErrors(**text, path, &errors);
  // It names rails: without them all of it would be wrong.
  if (!fabric) return errors;
  std::vector<Error> of_provision;
  (void)ReadProvisionSettings(*fabric, path, &of_provision);
  std::move(of_provision.begin(), of_provision.end(), std::back_inserter(errors));
  return errors;
}

Result<Plan> PlanOf(const Root& root, const ConfigSource& source) {
  const HostNetwork host = RH_TRY(AskHostNetwork(root));
  return MakePlan(root, source, host, DdpOfKernel(root));
}

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

int Refuse(const std::vector<Error>& errors, const Arguments& arguments) {
  if (arguments.json) PrintErrorsAsJson(errors);
  for (const Error& error : errors) (void)Complain(error, kBadConfig);
  return kBadConfig;
}

int Check(const Root& root, const Arguments& arguments) {
  const auto source = TellConfig(root, arguments.file, arguments.prefix);
  if (!source) return Refuse({source.error()}, arguments);
  if (const auto errors = ErrorsIn(root, *source); !errors.empty()) return Refuse(errors, arguments);
  const auto plan = PlanOf(root, *source);
  if (!plan) return Refuse({plan.error()}, arguments);
  if (arguments.json) {
    (void)std::printf("{\"ok\": true, \"plan\": %s}\n", PlanAsJson(*plan).c_str());
  } else {
    for (const Error& warning : plan->warnings)
      (void)std::fprintf(stderr, "warning: %s\n", warning.message.c_str());
    (void)std::printf("ok\n%s", PlanAsText(*plan).c_str());
  }
  return kDone;
}

int Migrate(const Root& root, const Arguments& arguments) {
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

void AddFile(CLI::App* command, Arguments* arguments, const char* what) {
  command->add_option("FILE", arguments->file, what)->required();
  command->add_option("--resource-prefix", arguments->prefix, "Prefix of resources without resourcePrefix")
      ->capture_default_str();
}

}  // namespace

void AddConfigCommand(CLI::App* app, const Root& root, int* status) {
  CLI::App* config = app->add_subcommand("config", "Check or migrate a configuration");
  config->require_subcommand(1);

  const auto check_arguments = std::make_shared<Arguments>();
  CLI::App* check = config->add_subcommand(
      "check", "Say what is wrong with a configuration, or which devices of this node its resources get");
  AddFile(check, check_arguments.get(), "fabric.json, or sriov-network-device-plugin's config.json");
  check->add_flag("--json", check_arguments->json, "Print JSON");
  check->callback([&root, status, check_arguments] { *status = Check(root, *check_arguments); });

  const auto migrate_arguments = std::make_shared<Arguments>();
  CLI::App* migrate = config->add_subcommand(
      "migrate", "Print a fabric.json to begin with; what it lacks is told on standard error");
  AddFile(migrate, migrate_arguments.get(), "sriov-network-device-plugin's config.json");
  migrate->callback([&root, status, migrate_arguments] { *status = Migrate(root, *migrate_arguments); });
}

}  // namespace railhead::railctl
