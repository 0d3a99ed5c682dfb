#include "deviceplugin/tools/railctl/config_errors.h"

#include <cstdio>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "cni/fabric/fabric.h"
#include "deviceplugin/node/resources/fabric_pools.h"
#include "deviceplugin/services/address_leasing/lease_check.h"
#include "deviceplugin/services/health/rules.h"
#include "deviceplugin/services/node_status/node_status_settings.h"
#include "deviceplugin/services/provision/provision_settings.h"
#include "deviceplugin/services/reachability/reachability_settings.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "netns/json/json_reader.h"

namespace railhead::railctl {
namespace {

// Of fabric.json's objects that railheadd's parts read, whatever else is wrong beside them.
void AddPartsErrors(const std::string& text, const std::string& path, std::vector<Error>* errors) {
  const auto document = JsonDocument::Parse(text, path);
  if (!document) return;  // the fabric's reader says so
  JsonReader root = document->Root();
  const auto add = [&](const char* key, const auto& parse) {
    const auto* value = root.Raw(key);
    if (value == nullptr) return;
    std::vector<Error> found;
    (void)parse(value->dump(), path, &found);
    std::move(found.begin(), found.end(), std::back_inserter(*errors));
  };
  add("health", ParseHealthRules);
  add("connectivity", ParseConnectivity);
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

}  // namespace

std::vector<Error> ErrorsInFabric(const std::string& text, const std::string& what) {
  std::vector<Error> errors;
  const auto fabric = ParseFabric(text, what, &errors);
  // Text that is no JSON at all is not in the list.
  if (!fabric && errors.empty()) return {fabric.error()};
  AddPartsErrors(text, what, &errors);
  // It names rails: without them all of it would be wrong.
  if (!fabric) return errors;
  std::vector<Error> of_provision;
  (void)ReadProvisionSettings(*fabric, what, &of_provision);
  std::move(of_provision.begin(), of_provision.end(), std::back_inserter(errors));
  std::vector<Error> of_isolation;
  (void)ParseIsolation(fabric->isolation, what, fabric->rails.size(), &of_isolation);
  std::move(of_isolation.begin(), of_isolation.end(), std::back_inserter(errors));
  if (const auto leasing = CheckLeasing(*fabric, what); !leasing) errors.push_back(leasing.error());
  // What railheadd cannot do is so on a node without NICs, too.
  if (const auto resources = ResourcesOfFabric(*fabric, Inventory{}); !resources) {
    errors.push_back(Wrap(resources.error(), what));
  }
  return errors;
}

int Refuse(const std::vector<Error>& errors, bool json, int status) {
  if (json) PrintErrorsAsJson(errors);
  for (const Error& error : errors) (void)Complain(error, status);
  return status;
}

}  // namespace railhead::railctl
